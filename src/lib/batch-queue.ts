/**
 * Collects what is added within one turn of the event loop and sends it as one batch; while a batch is under way, what is
 * added waits for the next. What would make more wait than the bound is dropped.
 */
export class BatchQueue<T> {
  readonly #send: (items: readonly T[], sent: () => void) => void;
  readonly #sizeOf: (item: T) => number;
  readonly #most: number;
  #waiting: T[] = [];
  #size = 0;
  #underWay = false;

  /**
   * @param send hands a batch on and calls `sent` once it has left
   * @param sizeOf the size of one item
   * @param most the total size that may wait
   */
  constructor(send: (items: readonly T[], sent: () => void) => void, sizeOf: (item: T) => number, most: number) {
    this.#send = send;
    this.#sizeOf = sizeOf;
    this.#most = most;
  }

  add(item: T): void {
    const size = this.#sizeOf(item);
    if (this.#size + size > this.#most) return;
    this.#waiting.push(item);
    this.#size += size;
    if (!this.#underWay) this.#plan();
  }

  #plan(): void {
    this.#underWay = true;
    setImmediate(() => {
      const items = this.#waiting;
      this.#waiting = [];
      this.#size = 0;
      this.#send(items, () => {
        this.#underWay = false;
        if (this.#waiting.length > 0) this.#plan();
      });
    });
  }
}
