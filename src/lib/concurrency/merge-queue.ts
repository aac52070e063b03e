/**
 * Collects values by key within one event loop iteration and sends them as one batch, with one merged value per key.
 * While a batch is being sent, further values wait for the next one. If too many keys wait, the batch says only that
 * any key may have changed: so the queue needs a bounded amount of memory, however slow the receiver is.
 */
export class MergeQueue<V> {
  readonly #send: (batch: ReadonlyMap<string, V> | null, sent: () => void) => void;
  readonly #merge: (earlier: V, later: V) => V;
  readonly #maxKeys: number;
  /** Null if any key may have changed. */
  #waiting: Map<string, V> | null = new Map();
  #sending = false;

  /**
   * @param send sends a batch, null for any key, and calls `sent` once it has left the process
   * @param merge the value to send in place of two values of one key
   * @param maxKeys the number of keys that may wait
   */
  constructor(
    send: (batch: ReadonlyMap<string, V> | null, sent: () => void) => void,
    merge: (earlier: V, later: V) => V,
    maxKeys: number,
  ) {
    this.#send = send;
    this.#merge = merge;
    this.#maxKeys = maxKeys;
  }

  /** Queues values by key; null if any key may have changed. */
  add(values: Iterable<readonly [key: string, value: V]> | null): void {
    if (values === null) this.#waiting = null;
    else for (const [key, value] of values) this.#addOne(key, value);
    if (!this.#sending && (this.#waiting === null || this.#waiting.size > 0)) this.#scheduleSend();
  }

  #addOne(key: string, value: V): void {
    if (this.#waiting === null) return;
    const earlier = this.#waiting.get(key);
    this.#waiting.set(key, earlier === undefined ? value : this.#merge(earlier, value));
    if (this.#waiting.size > this.#maxKeys) this.#waiting = null;
  }

  #scheduleSend(): void {
    this.#sending = true;
    setImmediate(() => {
      const batch = this.#waiting;
      this.#waiting = new Map();
      this.#send(batch, () => {
        this.#sending = false;
        if (this.#waiting === null || this.#waiting.size > 0) this.#scheduleSend();
      });
    });
  }
}
