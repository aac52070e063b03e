import { Worker } from 'node:worker_threads';
import type { CrdtOutcome } from '../../ports/crdt.ts';
import type { DocumentOperation } from './documents.ts';

const YOUNG_GENERATION_MB = 16;

/** A worker thread that runs one operation at a time. It ends when an operation exceeds its limit of time or memory. */
export class BoundedThread {
  /** Maximum size of its heap, in megabytes. */
  readonly heapMb: number;
  readonly #worker: Worker;
  #ended = false;

  private constructor(worker: Worker, heapMb: number) {
    this.#worker = worker;
    this.heapMb = heapMb;
    worker.once('exit', () => (this.#ended = true));
  }

  /** Starts a thread and waits until it is ready. It does not keep the process alive. Rejects if it cannot start. */
  static async start(heapMb: number): Promise<BoundedThread> {
    const worker = new Worker(entry(), {
      resourceLimits: { maxOldGenerationSizeMb: heapMb, maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
    });
    const thread = new BoundedThread(worker, heapMb);
    await thread.#next(() => {});
    worker.unref();
    return thread;
  }

  /** Whether it has ended. */
  get ended(): boolean {
    return this.#ended;
  }

  /**
   * Runs an operation and returns its outcome: the fault `time` if it takes longer than `timeMs` milliseconds, `memory`
   * if it exceeds the heap; both end the thread. Rejects if the thread ends for another reason.
   */
  async run(operation: DocumentOperation, timeMs: number): Promise<CrdtOutcome> {
    const startedAt = performance.now();
    let isTimedOut = false;
    const deadline = setTimeout(() => {
      isTimedOut = true;
      void this.end();
    }, timeMs);
    try {
      return await this.#next<CrdtOutcome>(() => this.#worker.postMessage(operation, buffersOf(operation)));
    } catch (error) {
      const fault = isTimedOut ? 'time' : isOutOfMemory(error) ? 'memory' : null;
      if (fault === null) throw error;
      return { result: fault, ms: performance.now() - startedAt };
    } finally {
      clearTimeout(deadline);
    }
  }

  /** Ends the thread and the operation that it runs. */
  async end(): Promise<void> {
    this.#ended = true;
    await this.#worker.terminate();
  }

  /** Calls `request` and resolves with the next message of the thread. Rejects if the thread ends before. */
  #next<T>(request: () => void): Promise<T> {
    return new Promise((resolve, reject) => {
      const worker = this.#worker;
      const unsubscribe = (): void => void worker.off('message', onMessage).off('error', onError).off('exit', onExit);
      const onMessage = (message: T): void => {
        unsubscribe();
        resolve(message);
      };
      const onError = (error: Error): void => {
        this.#ended = true;
        unsubscribe();
        reject(error);
      };
      const onExit = (code: number): void => {
        unsubscribe();
        reject(new Error(`the thread for Yjs documents has ended (${code})`));
      };
      worker.on('message', onMessage).on('error', onError).on('exit', onExit);
      request();
    });
  }
}

/** The built file of the thread: the TypeScript loader of the tests does not apply to threads on every Node. */
function entry(): URL {
  return new URL(
    import.meta.url.endsWith('.ts') ? '../../../dist/threads/yjs.js' : '../threads/yjs.js',
    import.meta.url,
  );
}

function buffersOf(operation: DocumentOperation): ArrayBuffer[] {
  return Object.values(operation).flatMap((value: unknown) =>
    value instanceof Uint8Array ? [value.buffer as ArrayBuffer] : [],
  );
}

function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
}
