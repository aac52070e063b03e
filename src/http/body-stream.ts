/** How a body that is read piece by piece goes on: with bytes, with its end, or not at all because the client went away. */
export type BodyPiece = Buffer | 'end' | 'gone';

/** Bytes that may wait to be read; past it the client has to wait. */
const MOST_WAITING_BYTES = 1024 * 1024;

/** A body that is read piece by piece while it comes, no faster than it is read. */
export class BodyStream {
  readonly #flow: { pause(): void; resume(): void };
  #waiting: Buffer[] = [];
  #size = 0;
  #over: 'end' | 'gone' | null = null;
  #wake: (() => void) | null = null;

  /** @param flow holds the client up, and lets it go on */
  constructor(flow: { pause(): void; resume(): void }) {
    this.#flow = flow;
  }

  /** The next bytes, all that have come. Not to be called again before it resolves. */
  async read(): Promise<BodyPiece> {
    if (this.#size === 0 && this.#over === null) await new Promise<void>((resolve) => (this.#wake = resolve));
    if (this.#over === 'gone') return 'gone';
    if (this.#size === 0) return 'end';
    const [first = Buffer.alloc(0), ...more] = this.#waiting;
    const bytes = more.length === 0 ? first : Buffer.concat(this.#waiting);
    this.#waiting = [];
    this.#size = 0;
    this.#flow.resume();
    return bytes;
  }

  /** Takes bytes that came; they are kept. */
  take(bytes: Buffer, isLast: boolean): void {
    if (bytes.length > 0) this.#waiting.push(bytes);
    this.#size += bytes.length;
    if (isLast) this.#over = 'end';
    else if (this.#size > MOST_WAITING_BYTES) this.#flow.pause();
    if (this.#size > 0 || isLast) this.#awake();
  }

  /** Says that no more will come. */
  abandon(): void {
    this.#over = 'gone';
    this.#waiting = [];
    this.#awake();
  }

  #awake(): void {
    this.#wake?.();
    this.#wake = null;
  }
}
