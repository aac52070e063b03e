/** Free blocks kept for reuse. */
const MAX_SPARE_BLOCKS = 32;

interface Block {
  readonly bytes: Buffer;
  used: number;
  /** Position of the last commit that has bytes in this block; infinite until that is known. */
  position: number;
}

/**
 * Memory for the batches that a process keeps until they are in the base table. Tens of thousands of them become free
 * at the same time: in blocks they are freed at no cost, while single buffers would wait for the garbage collector and
 * hold hundreds of megabytes until then.
 */
export class Arena {
  readonly #blockBytes: number;
  #blocks: Block[] = [];
  readonly #spare: Buffer[] = [];

  /** @param blockBytes as `StoreBounds.arenaBlockBytes` */
  constructor(blockBytes: number) {
    this.#blockBytes = blockBytes;
  }

  /**
   * Returns `size` uninitialized bytes. They stay valid until `release` is called with the position given to the next
   * `assign`, or a later one.
   */
  allocate(size: number): Buffer {
    let block = this.#blocks.at(-1);
    if (block === undefined || block.used + size > block.bytes.byteLength) {
      const bytes =
        size > this.#blockBytes
          ? Buffer.allocUnsafeSlow(size)
          : (this.#spare.pop() ?? Buffer.allocUnsafeSlow(this.#blockBytes));
      block = { bytes, used: 0, position: Number.POSITIVE_INFINITY };
      this.#blocks.push(block);
    }
    const allocated = block.bytes.subarray(block.used, block.used + size);
    block.used += size;
    return allocated;
  }

  /** Assigns everything allocated so far to commits that end at or before `position`. */
  assign(position: number): void {
    // Only the last blocks have no position yet, and the last one gets every commit.
    for (let i = this.#blocks.length - 1; i >= 0; i--) {
      const block = this.#blocks[i] as Block;
      const isLast = i === this.#blocks.length - 1;
      if (!isLast && block.position !== Number.POSITIVE_INFINITY) break;
      block.position = position;
    }
  }

  /** Frees the bytes of commits up to `position`: the caller must not use them any more. */
  release(position: number): void {
    const freed = this.#blocks.slice(0, -1).filter((block) => block.position <= position);
    if (freed.length === 0) return;
    this.#blocks = this.#blocks.filter((block) => !freed.includes(block));
    for (const { bytes } of freed)
      if (bytes.byteLength === this.#blockBytes && this.#spare.length < MAX_SPARE_BLOCKS) this.#spare.push(bytes);
  }
}
