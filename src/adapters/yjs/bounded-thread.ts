import { Worker } from 'node:worker_threads';
import type { CrdtOutcome } from '../../ports/crdt.ts';
import type { DocumentWork } from './documents.ts';

const YOUNG_GENERATION_MB = 16;

/** A worker thread that does one piece of work at a time. It ends for good when a piece passes its bound of time or memory. */
export class BoundedThread {
  /** The size that its heap may reach, in megabytes. */
  readonly heapMb: number;
  readonly #worker: Worker;
  #ended = false;

  private constructor(worker: Worker, heapMb: number) {
    this.#worker = worker;
    this.heapMb = heapMb;
    worker.once('exit', () => (this.#ended = true));
  }

  /** Starts a thread and waits until it takes work. It does not keep the process alive. Rejects when it cannot start. */
  static async start(heapMb: number): Promise<BoundedThread> {
    const worker = new Worker(entry(), { resourceLimits: { maxOldGenerationSizeMb: heapMb, maxYoungGenerationSizeMb: YOUNG_GENERATION_MB } });
    const thread = new BoundedThread(worker, heapMb);
    await thread.#next(() => {});
    worker.unref();
    return thread;
  }

  /** Whether it has ended, and takes no more work. */
  get ended(): boolean {
    return this.#ended;
  }

  /**
   * Does a piece of work and gives its outcome: the faults `time` after `timeMs` milliseconds, and `memory` when its heap has
   * no room; both end the thread. Rejects when the thread ends for another reason.
   */
  async run(work: DocumentWork, timeMs: number): Promise<CrdtOutcome> {
    const begun = performance.now();
    let isLate = false;
    const deadline = setTimeout(() => {
      isLate = true;
      void this.end();
    }, timeMs);
    try {
      return await this.#next<CrdtOutcome>(() => this.#worker.postMessage(work, buffersOf(work)));
    } catch (error) {
      const fault = isLate ? 'time' : isOutOfMemory(error) ? 'memory' : null;
      if (fault === null) throw error;
      return { result: fault, ms: performance.now() - begun };
    } finally {
      clearTimeout(deadline);
    }
  }

  /** Ends the thread, whatever it does. */
  async end(): Promise<void> {
    this.#ended = true;
    await this.#worker.terminate();
  }

  /** What the thread says next. Rejects when it ends before. */
  #next<T>(ask: () => void): Promise<T> {
    return new Promise((resolve, reject) => {
      const worker = this.#worker;
      const settle = (act: () => void): void => {
        worker.off('message', onMessage).off('error', onError).off('exit', onExit);
        act();
      };
      const onMessage = (message: T): void => settle(() => resolve(message));
      const onError = (error: Error): void => {
        this.#ended = true;
        settle(() => reject(error));
      };
      const onExit = (code: number): void => settle(() => reject(new Error(`the thread for Yjs documents has ended (${code})`)));
      worker.on('message', onMessage).on('error', onError).on('exit', onExit);
      ask();
    });
  }
}

/** The file of the thread, as it was built: TypeScript loaders of tests do not reach into threads on every Node. */
function entry(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? '../../../dist/threads/yjs.js' : '../threads/yjs.js', import.meta.url);
}

function buffersOf(work: DocumentWork): ArrayBuffer[] {
  return Object.values(work).flatMap((value: unknown) => (value instanceof Uint8Array ? [value.buffer as ArrayBuffer] : []));
}

function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
}
