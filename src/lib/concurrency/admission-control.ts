/** The limits of an `AdmissionControl`. */
export interface AdmissionBounds {
  /** Requests of one key that may be in progress at once. */
  readonly requests: number;
  /** Their total bytes. A key with nothing in progress may exceed it with one request. */
  readonly bytes: number;
  /** The total bytes of all keys. May be exceeded by one request when nothing is in progress. */
  readonly bytesOfAll: number;
}

/** Bounds the requests in progress (waiting or being processed) in this process, per key and in total. */
export class AdmissionControl {
  readonly #bounds: AdmissionBounds;
  readonly #inProgress = new Map<string, { requests: number; bytes: number }>();
  #bytes = 0;

  constructor(bounds: AdmissionBounds) {
    this.#bounds = bounds;
  }

  /** Admits a request. Returns a function to call once when the request has ended, or null if a limit forbids it. */
  admit(key: string, bytes: number): (() => void) | null {
    const current = this.#inProgress.get(key) ?? { requests: 0, bytes: 0 };
    if (current.requests >= this.#bounds.requests) return null;
    if (current.requests > 0 && current.bytes + bytes > this.#bounds.bytes) return null;
    if (this.#bytes > 0 && this.#bytes + bytes > this.#bounds.bytesOfAll) return null;
    current.requests += 1;
    current.bytes += bytes;
    this.#bytes += bytes;
    this.#inProgress.set(key, current);
    return () => {
      current.requests -= 1;
      current.bytes -= bytes;
      this.#bytes -= bytes;
      if (current.requests === 0) this.#inProgress.delete(key);
    };
  }
}
