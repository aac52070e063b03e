import { setTimeout as delay } from 'node:timers/promises';
import { Semaphore } from '../../lib/concurrency/semaphore.ts';

/**
 * The pause after a chunk, as a multiple of the time that the chunk took: other requests get two thirds of the process.
 */
const PAUSE_FACTOR = 2;

/**
 * Keeps uploads from monopolizing a process: to search, hash and write a chunk of half a megabyte takes as long as a
 * dozen comments. While other requests wait for their responses, chunks are processed one at a time, each followed by a
 * pause; otherwise at once. Measured with the benchmark case `mixed`: beside uploads, comments had 0.3 of their
 * undisturbed rate without this and 0.65 with it, at the same rate of uploads. Each process does this for itself and
 * looks at its own requests alone: it is about its event loop.
 */
export class UploadThrottle {
  readonly #pendingRequests: () => number;
  readonly #chunks = new Semaphore(1);
  #uploads = 0;

  /** @param pendingRequests the number of requests that wait for their response now, uploads included */
  constructor(pendingRequests: () => number) {
    this.#pendingRequests = pendingRequests;
  }

  /**
   * Counts an upload as long as `work` runs, from its first chunk to its response. Returns or throws what `work` does.
   */
  async upload<T>(work: () => Promise<T>): Promise<T> {
    this.#uploads += 1;
    try {
      return await work();
    } finally {
      this.#uploads -= 1;
    }
  }

  /** Processes a chunk of an upload when the throttle allows it. Returns or throws what `work` does. */
  async chunk<T>(work: () => Promise<T>): Promise<T> {
    if (!this.#othersWait()) return work();
    return new Promise((resolve, reject) => {
      void this.#chunks.run(async () => {
        const startedAt = performance.now();
        await work().then(resolve, reject);
        if (this.#othersWait()) await delay((performance.now() - startedAt) * PAUSE_FACTOR);
      });
    });
  }

  #othersWait(): boolean {
    return this.#pendingRequests() > this.#uploads;
  }
}
