export interface AdmissionBounds {
  /** Requests of one key that may be inside at once. */
  readonly requests: number;
  /** Bytes of them together; a key that has nothing inside may bring more. */
  readonly bytes: number;
  /** Bytes of all keys together; likewise. */
  readonly bytesOfAll: number;
}

/** Bounds what is inside, waiting or being worked on, by key and in all. */
export class AdmissionControl {
  readonly #bounds: AdmissionBounds;
  readonly #inside = new Map<string, { requests: number; bytes: number }>();
  #bytes = 0;

  constructor(bounds: AdmissionBounds) {
    this.#bounds = bounds;
  }

  /** Lets a request in, and gives the way out of it, to be called once; null where a bound forbids it. */
  admit(key: string, bytes: number): (() => void) | null {
    const inside = this.#inside.get(key) ?? { requests: 0, bytes: 0 };
    if (inside.requests >= this.#bounds.requests) return null;
    if (inside.requests > 0 && inside.bytes + bytes > this.#bounds.bytes) return null;
    if (this.#bytes > 0 && this.#bytes + bytes > this.#bounds.bytesOfAll) return null;
    inside.requests += 1;
    inside.bytes += bytes;
    this.#bytes += bytes;
    this.#inside.set(key, inside);
    return () => {
      inside.requests -= 1;
      inside.bytes -= bytes;
      this.#bytes -= bytes;
      if (inside.requests === 0) this.#inside.delete(key);
    };
  }
}
