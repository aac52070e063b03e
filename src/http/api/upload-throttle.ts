import { setTimeout as delay } from 'node:timers/promises';
import { Semaphore } from '../../lib/semaphore.ts';

/** How long the lane rests after a piece, in times of what the piece took: others get two thirds of the process. */
const REST = 2;

/**
 * Keeps uploads from taking a process for themselves: a piece of a body is half a megabyte to search, hash and write, as
 * long as a dozen comments take. While other requests wait for their answers, pieces are worked off one after the other,
 * each followed by a rest; while none do, at once. Measured by the case `mixed` of the bench: without it comments had 0.3 of
 * their undisturbed rate beside uploads, with it 0.65, at the same rate of uploads.
 */
export class UploadThrottle {
  readonly #pending: () => number;
  readonly #turns = new Semaphore(1);
  #uploads = 0;

  /** @param pending how many requests wait for their answer now, uploads among them */
  constructor(pending: () => number) {
    this.#pending = pending;
  }

  /** Runs one upload from its first piece to its answer, and gives what it gives. */
  async upload<T>(work: () => Promise<T>): Promise<T> {
    this.#uploads += 1;
    try {
      return await work();
    } finally {
      this.#uploads -= 1;
    }
  }

  /** Runs a piece of an upload in its turn, and gives what it gives or throws what it throws. */
  async piece<T>(work: () => Promise<T>): Promise<T> {
    if (!this.#othersWait()) return work();
    return new Promise((resolve, reject) => {
      void this.#turns.run(async () => {
        const begun = performance.now();
        await work().then(resolve, reject);
        if (this.#othersWait()) await delay((performance.now() - begun) * REST);
      });
    });
  }

  #othersWait(): boolean {
    return this.#pending() > this.#uploads;
  }
}
