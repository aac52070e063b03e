/**
 * Runs at most `limit` tasks at once. Further tasks wait in the queue of their key, first in first out, and the queues
 * are served round robin: a key with one task waits for at most two tasks of each other key. It knows the tasks of this
 * process alone.
 */
export class FairSemaphore {
  #free: number;
  /** The queues that are not empty, in the order in which they are served. */
  readonly #queues = new Map<string, (() => void)[]>();

  /** @param limit how many tasks may run at once, at least 1 */
  constructor(limit: number) {
    this.#free = limit;
  }

  /** Runs `work` once a place is free. Resolves and rejects as `work` does. */
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
