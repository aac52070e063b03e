import { MEGABYTE } from '../../lib/bytes.ts';
import type { Crdt, CrdtOutcome } from '../../ports/crdt.ts';
import { BoundedThread } from './bounded-thread.ts';
import type { DocumentOperation } from './documents.ts';

/** Merging takes about 40 ms per megabyte, and loading a document of many small changes ten times that. */
const TIME_MS = 3_000;
const TIME_MS_PER_MEGABYTE = 100;
/** Loading a document of many small changes needs up to 16 times its size. */
const HEAP_MB_PER_MEGABYTE = 16;
const MIN_HEAP_MB = 128;
/** An idle thread ends after this time, because it takes some 10 MB. */
const IDLE_MS = 30_000;

/** The limits of operations; for tests. */
export interface YjsThreadOptions {
  /** Maximum duration of an operation on `bytes`, in milliseconds. */
  readonly timeMs?: (bytes: number) => number;
  /** Maximum heap of the thread for an operation on `bytes`, in megabytes. */
  readonly heapMb?: (bytes: number) => number;
}

/** Runs Yjs in a worker thread, which starts with the first operation and ends when it has been idle for a while. */
export class YjsThread implements Crdt {
  readonly #timeMs: (bytes: number) => number;
  readonly #heapMb: (bytes: number) => number;
  #thread: BoundedThread | null = null;
  #closed = false;
  #idle: NodeJS.Timeout | undefined;
  /** Resolves when all operations so far have ended. */
  #tail: Promise<unknown> = Promise.resolve();

  constructor({ timeMs = timeMsFor, heapMb = heapMbFor }: YjsThreadOptions = {}) {
    this.#timeMs = timeMs;
    this.#heapMb = heapMb;
  }

  merge(stored: Uint8Array | null, update: Uint8Array): Promise<CrdtOutcome> {
    return this.#enqueue({ kind: 'merge', stored, update }, (stored?.byteLength ?? 0) + update.byteLength);
  }

  diff(stored: Uint8Array, stateVector: Uint8Array): Promise<CrdtOutcome> {
    return this.#enqueue({ kind: 'diff', stored, stateVector }, stored.byteLength);
  }

  compact(stored: Uint8Array): Promise<CrdtOutcome> {
    return this.#enqueue({ kind: 'compact', stored }, stored.byteLength);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#idle);
    await this.#thread?.end();
  }

  #enqueue(operation: DocumentOperation, bytes: number): Promise<CrdtOutcome> {
    const done = this.#tail.then(() => this.#run(operation, bytes));
    this.#tail = done.catch(() => undefined);
    return done;
  }

  async #run(operation: DocumentOperation, bytes: number): Promise<CrdtOutcome> {
    clearTimeout(this.#idle);
    const thread = await this.#threadFor(this.#heapMb(bytes));
    try {
      return await thread.run(copyOf(operation), this.#timeMs(bytes));
    } finally {
      this.#idle = setTimeout(() => void thread.end(), IDLE_MS).unref();
    }
  }

  /** Returns the running thread, or a new one if that has ended or its heap is too small. */
  async #threadFor(heapMb: number): Promise<BoundedThread> {
    if (this.#thread !== null && !this.#thread.ended && this.#thread.heapMb >= heapMb) return this.#thread;
    if (this.#closed) throw new Error('the thread for Yjs documents is closed');
    await this.#thread?.end();
    this.#thread = await BoundedThread.start(heapMb);
    if (this.#closed) await this.#thread.end();
    return this.#thread;
  }
}

/**
 * Copies the bytes, so that they can be transferred to the thread: an array may be a view of a larger buffer that
 * others use.
 */
function copyOf(operation: DocumentOperation): DocumentOperation {
  const copies = Object.entries(operation).map(([name, value]: [string, unknown]) => [
    name,
    value instanceof Uint8Array ? new Uint8Array(value) : value,
  ]);
  return Object.fromEntries(copies) as DocumentOperation;
}

const timeMsFor = (bytes: number): number => TIME_MS + (bytes / MEGABYTE) * TIME_MS_PER_MEGABYTE;

/** A power of two, so that few documents need a new thread. */
function heapMbFor(bytes: number): number {
  const wanted = MIN_HEAP_MB / 2 + (bytes / MEGABYTE) * HEAP_MB_PER_MEGABYTE;
  return Math.max(MIN_HEAP_MB, 2 ** Math.ceil(Math.log2(wanted)));
}
