/** How long the lane rests after a piece, in times of what the piece took: others get two thirds of the process. */
const REST = 2;

/**
 * Keeps uploads from taking a process for themselves: a piece of a body is half a megabyte to search, hash and write, as
 * long as a dozen comments take. While other requests wait for their answers, pieces are worked off one after the other,
 * each followed by a rest; while none do, at once. Measured by the case `mixed` of the bench: without it comments had 0.3 of
 * their undisturbed rate beside uploads, with it 0.65, at the same rate of uploads.
 */
export class UploadLane {
  readonly #pending: () => number;
  #uploads = 0;
  #last: Promise<void> = Promise.resolve();

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
    const before = this.#last;
    let leave = (): void => {};
    this.#last = new Promise((resolve) => (leave = resolve));
    await before;
    const begun = performance.now();
    try {
      return await work();
    } finally {
      if (this.#othersWait()) setTimeout(leave, (performance.now() - begun) * REST);
      else leave();
    }
  }

  #othersWait(): boolean {
    return this.#pending() > this.#uploads;
  }
}
