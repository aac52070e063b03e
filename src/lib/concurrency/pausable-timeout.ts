/** A timer whose time can be stopped. */
export class PausableTimeout {
  readonly #late: () => void;
  #left: number;
  #resumedAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #pauses = 0;

  /** Calls `late` once, after `ms` milliseconds during which it was not paused. */
  constructor(ms: number, late: () => void) {
    this.#left = ms;
    this.#late = late;
    this.#run();
  }

  /** Stops the time until `resume` has been called as often. */
  pause(): void {
    if (this.#pauses++ > 0) return;
    clearTimeout(this.#timer);
    this.#left -= performance.now() - this.#resumedAt;
  }

  resume(): void {
    if (--this.#pauses === 0 && this.#left !== Infinity) this.#run();
  }

  /** Ends it: `late` is not called any more. */
  clear(): void {
    clearTimeout(this.#timer);
    this.#left = Infinity;
  }

  #run(): void {
    this.#resumedAt = performance.now();
    this.#timer = setTimeout(
      () => {
        this.#left = Infinity;
        this.#late();
      },
      Math.max(0, this.#left),
    );
  }
}
