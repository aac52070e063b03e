/** How a body that is read piece by piece goes on: with bytes, with its end, or not at all because the client went away. */
export type BodyPiece = Buffer | 'end' | 'gone';

/** Bytes that may wait to be read once the request is admitted; past it the client has to wait. */
const MOST_WAITING_BYTES = 1024 * 1024;
/** As much as the core hands over at once. */
const BLOCK_BYTES = 512 * 1024;
const MOST_SPARE_BLOCKS = 16;

/**
 * Memory that was read and written out, for the next bytes. To get half a megabyte anew for every piece would keep the
 * garbage collector busier than everything else that an upload costs.
 */
const spareBlocks: Buffer[] = [];

/** Memory that is being filled. */
interface Block {
  readonly memory: Buffer;
  filled: number;
}

/** A body that is read piece by piece while it comes, no faster than it is read. */
export class BodyStream {
  readonly #flow: { pause(): void; resume(): void };
  readonly #waiting: Block[] = [];
  #size = 0;
  #mostWaiting: number;
  #over: 'end' | 'gone' | null = null;
  #wake: (() => void) | null = null;
  /** What the reader has. */
  #read: Buffer | null = null;

  /**
   * @param flow holds the client up, and lets it go on
   * @param unadmitted bytes that may wait to be read until `admit` is called
   */
  constructor(flow: { pause(): void; resume(): void }, unadmitted = MOST_WAITING_BYTES) {
    this.#flow = flow;
    this.#mostWaiting = unadmitted;
  }

  /** Bytes that wait to be read. */
  get heldBytes(): number {
    return this.#size;
  }

  /** Lets as much wait as a reader needs that reads to the end. */
  admit(): void {
    this.#mostWaiting = MOST_WAITING_BYTES;
    if (this.#size <= this.#mostWaiting) this.#flow.resume();
  }

  /** The next bytes, which are good until the next call. Not to be called again before it resolves. */
  async read(): Promise<BodyPiece> {
    if (this.#read !== null && spareBlocks.length < MOST_SPARE_BLOCKS) spareBlocks.push(this.#read);
    this.#read = null;
    if (this.#size === 0 && this.#over === null) await new Promise<void>((resolve) => (this.#wake = resolve));
    if (this.#over === 'gone') return 'gone';
    const block = this.#waiting.shift();
    if (block === undefined) return 'end';
    this.#size -= block.filled;
    this.#read = block.memory;
    if (this.#size <= this.#mostWaiting) this.#flow.resume();
    return block.memory.subarray(0, block.filled);
  }

  /** Takes bytes that came, by copying them. */
  take(bytes: Uint8Array, isLast: boolean): void {
    if (this.#over !== null) return;
    for (let from = 0; from < bytes.length; ) {
      const block = this.#blockWithRoom();
      const part = bytes.subarray(from, from + BLOCK_BYTES - block.filled);
      block.memory.set(part, block.filled);
      block.filled += part.length;
      from += part.length;
    }
    this.#size += bytes.length;
    if (isLast) this.#over = 'end';
    else if (this.#size > this.#mostWaiting) this.#flow.pause();
    if (this.#size > 0 || isLast) this.#awake();
  }

  /** Frees what waits to be read; no more is taken. */
  abandon(): void {
    this.#over = 'gone';
    for (const { memory } of this.#waiting.splice(0)) if (spareBlocks.length < MOST_SPARE_BLOCKS) spareBlocks.push(memory);
    this.#size = 0;
    this.#awake();
  }

  #blockWithRoom(): Block {
    const last = this.#waiting.at(-1);
    if (last !== undefined && last.filled < BLOCK_BYTES) return last;
    const block = { memory: spareBlocks.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES), filled: 0 };
    this.#waiting.push(block);
    return block;
  }

  #awake(): void {
    this.#wake?.();
    this.#wake = null;
  }
}
