import type { Flow } from './flow.ts';

/** Why there is no body: it is larger than allowed, or no more of it will come. */
export type NoBody = 'too_large' | 'aborted';

/** The most that is kept of a body before its request is admitted, besides what the core reads at once (512 KiB). */
export const UNADMITTED_BYTES = 64 * 1024;

/** Collects a body that is read as a whole. */
export class BodyCollector {
  readonly #flow: Flow;
  /** The declared length; null when none is. */
  readonly #length: number | null;
  #limit: number | null;
  #resolve: ((body: Buffer | NoBody) => void) | null;
  #chunks: Buffer[] = [];
  #size = 0;
  #isAdmitted = false;
  #isComplete = false;

  /**
   * @param length the declared length in bytes; null for a chunked body
   * @param limit the largest body in bytes; null if `admit` will set it
   * @param resolve called once with the body
   */
  constructor(flow: Flow, length: number | null, limit: number | null, resolve: (body: Buffer | NoBody) => void) {
    this.#flow = flow;
    this.#length = length;
    this.#limit = limit;
    this.#resolve = resolve;
    this.#checkSize();
  }

  /** Bytes that are kept. */
  get bufferedBytes(): number {
    return this.#resolve === null ? 0 : this.#size;
  }

  /** Adds bytes that have arrived. They are copied. */
  push(bytes: Uint8Array, isLast: boolean): void {
    if (this.#resolve === null) return;
    this.#size += bytes.length;
    if (this.#checkSize()) return;
    this.#chunks.push(Buffer.from(bytes));
    if (!isLast && !this.#isAdmitted && this.#size > UNADMITTED_BYTES) this.#flow.pause();
  }

  /** As `Exchange.admitBody`. */
  admit(limit: number | null): void {
    this.#isAdmitted = true;
    this.#limit = limit ?? this.#limit;
    this.#flow.resume();
    if (this.#resolve === null) return;
    if (!this.#checkSize() && this.#isComplete) this.end();
  }

  /** The body has ended. Without a limit, it waits for `admit`. */
  end(): void {
    this.#isComplete = true;
    if (this.#limit === null) return;
    const [first = Buffer.alloc(0), ...more] = this.#chunks;
    this.#finish(more.length === 0 ? first : Buffer.concat(this.#chunks));
  }

  /** Frees what is kept: no more will come. */
  abandon(): void {
    this.#finish('aborted');
  }

  /** Finishes if the body is too large, as declared or as it has arrived, and returns whether it is. */
  #checkSize(): boolean {
    const isTooLarge = this.#limit !== null && Math.max(this.#length ?? 0, this.#size) > this.#limit;
    if (isTooLarge) this.#finish('too_large');
    return isTooLarge;
  }

  #finish(body: Buffer | NoBody): void {
    this.#resolve?.(body);
    this.#resolve = null;
    this.#chunks = [];
  }
}
