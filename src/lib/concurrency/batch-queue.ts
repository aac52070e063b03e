/**
 * Collects the items added within one event loop iteration and sends them as one batch. While a batch is being sent,
 * further items wait for the next one. Items that would exceed the size limit are dropped.
 */
export class BatchQueue<T> {
  readonly #send: (items: readonly T[], sent: () => void) => void;
  readonly #sizeOf: (item: T) => number;
  readonly #maxSize: number;
  #waiting: T[] = [];
  #size = 0;
  #sending = false;

  /**
   * @param send sends a batch and calls `sent` once it has left the process
   * @param sizeOf the size of one item
   * @param maxSize the total size of the items that may wait
   */
  constructor(send: (items: readonly T[], sent: () => void) => void, sizeOf: (item: T) => number, maxSize: number) {
    this.#send = send;
    this.#sizeOf = sizeOf;
    this.#maxSize = maxSize;
  }

  /** Queues an item, or drops it if the queue is full. */
  add(item: T): void {
    const size = this.#sizeOf(item);
    if (this.#size + size > this.#maxSize) return;
    this.#waiting.push(item);
    this.#size += size;
    if (!this.#sending) this.#scheduleSend();
  }

  #scheduleSend(): void {
    this.#sending = true;
    setImmediate(() => {
      const items = this.#waiting;
      this.#waiting = [];
      this.#size = 0;
      this.#send(items, () => {
        this.#sending = false;
        if (this.#waiting.length > 0) this.#scheduleSend();
      });
    });
  }
}
