import type { Flow } from './flow.ts';

/** The result of a read: bytes, the end of the body, or `aborted` if no more will come. */
export type BodyChunk = Buffer | 'end' | 'aborted';

/** Bytes that may wait to be read once the request is admitted. Beyond that the connection is paused. */
const MAX_WAITING_BYTES = 1024 * 1024;
/** The most that the core delivers at once. */
const BLOCK_BYTES = 512 * 1024;
const MAX_SPARE_BLOCKS = 16;

/**
 * Blocks that were read, to be reused. To allocate half a megabyte for every chunk would keep the garbage collector
 * busier than everything else that an upload costs.
 */
const spareBlocks: Buffer[] = [];

/** A block that is being filled. */
interface Block {
  readonly memory: Buffer;
  filled: number;
}

/** A body that is read in chunks as it arrives. The connection is paused while the reader is behind. */
export class BodyStream {
  readonly #flow: Flow;
  readonly #waiting: Block[] = [];
  #size = 0;
  #maxWaiting: number;
  #ended: 'end' | 'aborted' | null = null;
  #wakeReader: (() => void) | null = null;
  /** The block that the reader has. */
  #lent: Buffer | null = null;

  /**
   * @param flow pauses and resumes the connection
   * @param unadmittedBytes bytes that may wait to be read until `admit` is called
   */
  constructor(flow: Flow, unadmittedBytes = MAX_WAITING_BYTES) {
    this.#flow = flow;
    this.#maxWaiting = unadmittedBytes;
  }

  /** Bytes that wait to be read. */
  get bufferedBytes(): number {
    return this.#size;
  }

  /** Admits the body: 1 MiB may wait to be read from now on. */
  admit(): void {
    this.#maxWaiting = MAX_WAITING_BYTES;
    if (this.#size <= this.#maxWaiting) this.#flow.resume();
  }

  /**
   * Returns the next bytes, which are valid until the next call. Must not be called again before it resolves. Never
   * rejects.
   */
  async read(): Promise<BodyChunk> {
    if (this.#lent !== null) reuse(this.#lent);
    this.#lent = null;
    if (this.#size === 0 && this.#ended === null) await new Promise<void>((resolve) => (this.#wakeReader = resolve));
    if (this.#ended === 'aborted') return 'aborted';
    const block = this.#waiting.shift();
    if (block === undefined) return 'end';
    this.#size -= block.filled;
    this.#lent = block.memory;
    if (this.#size <= this.#maxWaiting) this.#flow.resume();
    return block.memory.subarray(0, block.filled);
  }

  /** Adds bytes that have arrived. They are copied. */
  push(bytes: Uint8Array, isLast: boolean): void {
    if (this.#ended !== null) return;
    for (let from = 0; from < bytes.length;) {
      const block = this.#blockToFill();
      const part = bytes.subarray(from, from + BLOCK_BYTES - block.filled);
      block.memory.set(part, block.filled);
      block.filled += part.length;
      from += part.length;
    }
    this.#size += bytes.length;
    if (isLast) this.#ended = 'end';
    else if (this.#size > this.#maxWaiting) this.#flow.pause();
    if (this.#size > 0 || isLast) this.#wake();
  }

  /** Frees what waits to be read and ends the stream with `aborted`. */
  abandon(): void {
    this.#ended = 'aborted';
    for (const { memory } of this.#waiting.splice(0)) reuse(memory);
    this.#size = 0;
    this.#wake();
  }

  #blockToFill(): Block {
    const last = this.#waiting.at(-1);
    if (last !== undefined && last.filled < BLOCK_BYTES) return last;
    const block = { memory: spareBlocks.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES), filled: 0 };
    this.#waiting.push(block);
    return block;
  }

  #wake(): void {
    this.#wakeReader?.();
    this.#wakeReader = null;
  }
}

function reuse(memory: Buffer): void {
  if (spareBlocks.length < MAX_SPARE_BLOCKS) spareBlocks.push(memory);
}
