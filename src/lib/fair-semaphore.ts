/**
 * Lets at most so many pieces of work run at once. The others wait in the queue of their key, first in first out, and the
 * queues take turns (round robin): a key with one piece waits for at most two pieces of each other key.
 */
export class FairSemaphore {
  #free: number;
  /** The queues that are not empty, in the order of their turns. */
  readonly #queues = new Map<string, (() => void)[]>();

  /** @param width how many may run at once, at least 1 */
  constructor(width: number) {
    this.#free = width;
  }

  /** Runs `work` when it is its turn, and gives what it gives or throws what it throws. */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#queueOf(key).push(resolve));
    try {
      return await work();
    } finally {
      this.#startNext();
    }
  }

  #queueOf(key: string): (() => void)[] {
    let queue = this.#queues.get(key);
    if (queue === undefined) this.#queues.set(key, (queue = []));
    return queue;
  }

  #startNext(): void {
    for (const [key, queue] of this.#queues) {
      const start = queue.shift();
      this.#queues.delete(key);
      if (queue.length > 0) this.#queues.set(key, queue);
      start?.();
      return;
    }
    this.#free++;
  }
}
