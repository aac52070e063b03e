const CHUNK_BYTES = 1024 * 1024;
/** Chunks kept for the next batches once they are free. */
const SPARE_CHUNKS = 32;

interface Chunk {
  readonly bytes: Buffer;
  used: number;
  /** Position of the last commit that has bytes here; infinite until it is known. */
  position: number;
}

/**
 * Memory for the batches that a process holds until they are folded. They come and go by the ten thousand, all of one
 * age: given back chunk by chunk they cost nothing, while as buffers of their own they would wait for the collector, and
 * hundreds of megabytes with them.
 */
export class Arena {
  #chunks: Chunk[] = [];
  readonly #spare: Buffer[] = [];

  /** Room for `size` bytes with any content, valid until `release` passes the position that is noted next. */
  take(size: number): Buffer {
    let chunk = this.#chunks.at(-1);
    if (chunk === undefined || chunk.used + size > chunk.bytes.byteLength) {
      const bytes = size > CHUNK_BYTES ? Buffer.allocUnsafeSlow(size) : (this.#spare.pop() ?? Buffer.allocUnsafeSlow(CHUNK_BYTES));
      chunk = { bytes, used: 0, position: Number.POSITIVE_INFINITY };
      this.#chunks.push(chunk);
    }
    const room = chunk.bytes.subarray(chunk.used, chunk.used + size);
    chunk.used += size;
    return room;
  }

  /** What was taken until now belongs to commits that end at or before `position`, or to none. */
  note(position: number): void {
    const last = this.#chunks.at(-1);
    if (last !== undefined) last.position = position;
    for (const chunk of this.#chunks) if (chunk.position === Number.POSITIVE_INFINITY) chunk.position = position;
  }

  /** Nothing of commits up to `position` is used any longer. */
  release(position: number): void {
    const freed = this.#chunks.slice(0, -1).filter((chunk) => chunk.position <= position);
    if (freed.length === 0) return;
    this.#chunks = this.#chunks.filter((chunk) => !freed.includes(chunk));
    for (const { bytes } of freed) if (bytes.byteLength === CHUNK_BYTES && this.#spare.length < SPARE_CHUNKS) this.#spare.push(bytes);
  }
}
