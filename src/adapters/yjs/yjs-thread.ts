import type { Crdt, CrdtOutcome } from '../../ports/crdt.ts';
import { BoundedThread } from './bounded-thread.ts';
import type { DocumentWork } from './documents.ts';

const MEGABYTE = 1024 * 1024;
/** Merging takes about 40 ms per megabyte, and loading a document of many small changes ten times that. */
const TIME_MS = 3_000;
const TIME_MS_PER_MEGABYTE = 100;
/** Loading a document of many small changes needs up to 16 times its size. */
const HEAP_MB_PER_MEGABYTE = 16;
const LEAST_HEAP_MB = 128;
/** A thread without work ends after this: it holds some 10 MB. */
const IDLE_MS = 30_000;

export interface YjsThreadOptions {
  /** Milliseconds that work on so many bytes may take. */
  readonly timeMs?: (bytes: number) => number;
  /** Megabytes that the heap of the thread may have for it. */
  readonly heapMb?: (bytes: number) => number;
}

/** Yjs in a worker thread, which starts with the first piece of work and ends when there is none for a while. */
export class YjsThread implements Crdt {
  readonly #timeMs: (bytes: number) => number;
  readonly #heapMb: (bytes: number) => number;
  #thread: BoundedThread | null = null;
  #closed = false;
  #idle: NodeJS.Timeout | undefined;
  /** Settles once all work so far has. */
  #tail: Promise<unknown> = Promise.resolve();

  constructor({ timeMs = timeMsFor, heapMb = heapMbFor }: YjsThreadOptions = {}) {
    this.#timeMs = timeMs;
    this.#heapMb = heapMb;
  }

  merge(stored: Uint8Array | null, update: Uint8Array): Promise<CrdtOutcome> {
    return this.#do({ kind: 'merge', stored, update }, (stored?.byteLength ?? 0) + update.byteLength);
  }

  diff(stored: Uint8Array, stateVector: Uint8Array): Promise<CrdtOutcome> {
    return this.#do({ kind: 'diff', stored, stateVector }, stored.byteLength);
  }

  compact(stored: Uint8Array): Promise<CrdtOutcome> {
    return this.#do({ kind: 'compact', stored }, stored.byteLength);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#idle);
    await this.#thread?.end();
  }

  #do(work: DocumentWork, bytes: number): Promise<CrdtOutcome> {
    const done = this.#tail.then(() => this.#run(work, bytes));
    this.#tail = done.catch(() => undefined);
    return done;
  }

  async #run(work: DocumentWork, bytes: number): Promise<CrdtOutcome> {
    clearTimeout(this.#idle);
    const thread = await this.#threadOf(this.#heapMb(bytes));
    try {
      return await thread.run(copyOf(work), this.#timeMs(bytes));
    } finally {
      this.#idle = setTimeout(() => void thread.end(), IDLE_MS).unref();
    }
  }

  /** The running thread, or a new one where that has ended or its heap is too small. */
  async #threadOf(heapMb: number): Promise<BoundedThread> {
    if (this.#thread !== null && !this.#thread.ended && this.#thread.heapMb >= heapMb) return this.#thread;
    if (this.#closed) throw new Error('the thread for Yjs documents is closed');
    await this.#thread?.end();
    this.#thread = await BoundedThread.start(heapMb);
    if (this.#closed) await this.#thread.end();
    return this.#thread;
  }
}

/** The bytes are copied, so that they can be handed over: a view may be of more than its own bytes, and its owner keeps it. */
function copyOf(work: DocumentWork): DocumentWork {
  const copies = Object.entries(work).map(([name, value]: [string, unknown]) => [name, value instanceof Uint8Array ? new Uint8Array(value) : value]);
  return Object.fromEntries(copies) as DocumentWork;
}

const timeMsFor = (bytes: number): number => TIME_MS + (bytes / MEGABYTE) * TIME_MS_PER_MEGABYTE;

/** In powers of two, so that few documents need a new thread. */
function heapMbFor(bytes: number): number {
  const wanted = LEAST_HEAP_MB / 2 + (bytes / MEGABYTE) * HEAP_MB_PER_MEGABYTE;
  return Math.max(LEAST_HEAP_MB, 2 ** Math.ceil(Math.log2(wanted)));
}
