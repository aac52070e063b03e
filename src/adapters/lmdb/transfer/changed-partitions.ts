/** The most names that are kept. Past that, reading everything again is not dearer. */
const MOST = 1_000_000;

/** The partitions that were written to since the last `take`. */
export class ChangedPartitions {
  /** Null: it is not known. */
  #names: Set<string> | null = null;

  /** @param partition null if it is not known which */
  add(partition: string | null): void {
    if (this.#names === null) return;
    if (partition === null || this.#names.size >= MOST) this.#names = null;
    else this.#names.add(partition);
  }

  /** Returns the partitions, null if they are not known, and begins anew. The first call returns null. */
  take(): ReadonlySet<string> | null {
    const names = this.#names;
    this.#names = new Set();
    return names;
  }
}
