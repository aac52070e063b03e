interface Kept {
  readonly partitions: readonly string[];
  /** Versions of the partitions when computing began. */
  readonly versions: readonly number[];
  readonly value: Promise<unknown>;
  /** What `value` resolved with, once it has. */
  result: unknown;
  bytes: number;
}

const MOST_BYTES = 16 * 1024 * 1024;

/** Values computed from partitions, each good as long as no partition of it has another version. */
export class MemoryValueCache {
  readonly #versionOf: (partition: string) => number;
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;

  constructor(versionOf: (partition: string) => number) {
    this.#versionOf = versionOf;
  }

  get<T>(key: string, partitions: readonly string[], compute: () => Promise<T>): Promise<T> {
    const versions = partitions.map(this.#versionOf);
    const known = this.#kept.get(key);
    if (known !== undefined) this.#drop(key, known);
    if (known?.versions.every((version, i) => version === versions[i])) {
      this.#keep(key, known);
      return known.value as Promise<T>;
    }
    const kept: Kept = { partitions, versions, value: compute(), result: undefined, bytes: 0 };
    this.#keep(key, kept);
    kept.value.then(
      (value) => this.#weigh(key, kept, value),
      () => this.#kept.get(key) === kept && this.#drop(key, kept),
    );
    return kept.value as Promise<T>;
  }

  recall<T>(key: string): T | undefined {
    const kept = this.#kept.get(key);
    return kept?.versions.every((version, i) => version === this.#versionOf(kept.partitions[i] as string)) === true ? (kept.result as T) : undefined;
  }

  #keep(key: string, kept: Kept): void {
    this.#kept.set(key, kept);
    this.#bytes += kept.bytes;
  }

  #drop(key: string, kept: Kept): void {
    this.#kept.delete(key);
    this.#bytes -= kept.bytes;
  }

  #weigh(key: string, kept: Kept, value: unknown): void {
    if (this.#kept.get(key) !== kept) return;
    this.#drop(key, kept);
    kept.result = value;
    kept.bytes = key.length + weightOf(value);
    this.#keep(key, kept);
    for (const [oldestKey, oldest] of this.#kept) {
      if (this.#bytes <= MOST_BYTES) return;
      this.#drop(oldestKey, oldest);
    }
  }
}

/** A guess in bytes: texts and bytes as they are, also inside a page; other objects are settings and the like, small. */
function weightOf(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (value instanceof Uint8Array) return value.byteLength;
  if (typeof value === 'object' && value !== null && 'text' in value) return 64 + weightOf(value.text);
  return 1_024;
}
