import { Worker } from 'node:worker_threads';
import { setTimeout as delay } from 'node:timers/promises';
import { firstLine } from '../../lib/thrown.ts';
import type { PluginEntry } from '../../config/plugin-entries.ts';
import { withTimeout } from '../../lib/concurrency/deadline.ts';
import { PausableTimeout } from '../../lib/concurrency/pausable-timeout.ts';
import { ReadWriteLock } from '../../lib/concurrency/read-write-lock.ts';
import type { Logger } from '../../observability/log.ts';
import type { Metrics } from '../../observability/metrics.ts';
import type { PluginLog } from '../api.ts';
import { failLoading, LOAD_MS } from '../loading/load.ts';
import { PluginError } from '../loading/plugin-error.ts';
import { callService, isStoreMethod, type PluginServices } from '../services/services.ts';
import {
  type FromPluginThread,
  type HookReference,
  type PluginInfo,
  receivedError,
  sentError,
  type PluginThreadData,
  type ToPluginThread,
} from './messages.ts';

const HEAP_MB = 256;
const YOUNG_GENERATION_MB = 32;
/** A thread that does not answer for this long after a deadline is in an endless loop, and is ended. */
const PING_MS = 1_000;
/** Ends in this time that do not delay the next start. */
const RESTART_WINDOW_MS = 60_000;
const FREE_RESTARTS = 3;
const MAX_RESTART_DELAY_MS = 30_000;

/**
 * A run did not end because its thread was stopped or, for a filter or a route, because another run may have ended the
 * thread.
 */
export class PluginThreadEndedError extends Error {
  override readonly name = 'PluginThreadEndedError';
}

/** Why a thread ended. */
export type ThreadEnd = 'deadline' | 'memory' | 'ended';

/** Dependencies of the thread of a plugin. */
export interface PluginThreadDeps {
  readonly publicUrl: string;
  /** The services of the plugin with this name. */
  readonly services: (plugin: string) => PluginServices;
  /**
   * For a dry run: the time that a hook sees. The thread has one such time, so its hooks must run one after the other.
   */
  readonly now?: (() => number) | undefined;
  /**
   * Whether the deadline of a run includes the start of the thread, because a request waits for the run; false if
   * absent.
   */
  readonly deadlineIncludesStart?: boolean;
  /** Called when the thread has ended although it was not stopped. */
  readonly onEnd?: (plugin: string, reason: ThreadEnd) => void;
}

/** A run whose caller waits. */
interface Run {
  readonly timeoutMs: number;
  readonly deadline: PausableTimeout;
  /** Whether its deadline includes the time that the store takes, because a request waits for it. */
  readonly includesStore: boolean;
  readonly settle: (outcome: { value?: unknown } | Error) => void;
}

/** The thread that runs the hooks of one plugin. It starts with the first run, and again after it was ended. */
export class PluginThread {
  readonly #entry: PluginEntry;
  readonly #deps: PluginThreadDeps;
  readonly #runs = new Map<number, Run>();
  /** Runs that the thread may be executing. If the thread ends, one of them is the reason. */
  readonly #executing = new Set<number>();
  /** Actions and jobs run together, except those that are run again because one of them has ended the thread. */
  readonly #lock = new ReadWriteLock();
  readonly #ends: number[] = [];
  #worker: Worker | null = null;
  #started: Promise<PluginInfo> | null = null;
  #isLoading = false;
  /** Called with the next answer to a ping. */
  #onPong: (() => void)[] = [];
  #lastRun = 0;
  #stopped = false;
  /** Why `end` ends the worker. */
  #ending: ThreadEnd = 'ended';

  constructor(entry: PluginEntry, deps: PluginThreadDeps) {
    this.#entry = entry;
    this.#deps = deps;
  }

  /** Whether the thread exists now. */
  get isRunning(): boolean {
    return this.#worker !== null;
  }

  /** Starts the thread unless it runs, and returns what the plugin has registered. Rejects with `PluginError`. */
  start(): Promise<PluginInfo> {
    this.#started ??= this.#start();
    return this.#started;
  }

  /**
   * Runs a hook. Rejects with what it throws, with an `Error` after `timeoutMs` or if it ends the thread, and with
   * `PluginThreadEndedError`. The deadline of an action or job does not count the time that the store takes for it. A
   * run whose deadline passes before the thread has started is not started.
   *
   * If the thread ends while several actions and jobs run, each of them may be the reason: they are run again, one at a
   * time, so that only the one that ends the thread again fails. No request waits for them: their caller hears of a
   * passed deadline only once the thread has answered, or was ended.
   */
  async run(hook: HookReference, argument: unknown, context: object, timeoutMs: number): Promise<unknown> {
    const waits = hook.kind === 'filter' || hook.kind === 'route';
    const begin = (): Promise<unknown> => this.#begin(hook, argument, context, timeoutMs, waits);
    if (waits) return begin();
    const interrupted = (error: unknown): boolean => error instanceof PluginThreadEndedError && !this.#stopped;
    try {
      return await this.#lock.shared(begin);
    } catch (error) {
      if (!interrupted(error)) throw error;
    }
    return this.#lock.exclusive(begin).catch((error: unknown) => {
      throw interrupted(error) ? new Error('did not end, because a filter of its plugin has ended the thread') : error;
    });
  }

  /** Runs a hook once. With `failsAtDeadline` it fails at its deadline, even if the thread does not answer. */
  async #begin(
    hook: HookReference,
    argument: unknown,
    context: object,
    timeoutMs: number,
    failsAtDeadline: boolean,
  ): Promise<unknown> {
    if (this.#deps.deadlineIncludesStart !== true) await this.start();
    const id = ++this.#lastRun;
    return new Promise((resolve, reject) => {
      const deadline = new PausableTimeout(timeoutMs, () => {
        const failure = new Error(lateMessage(timeoutMs));
        // A thread that loads answers late, but is in no endless loop.
        const isBegun = this.#executing.has(id);
        if (failsAtDeadline || !isBegun) settle(failure);
        if (!isBegun) return;
        this.#post({ type: 'cancel', id });
        void this.#requireResponse().then(() => {
          this.#executing.delete(id);
          settle(failure);
        });
      });
      const settle = (outcome: { value?: unknown } | Error): void => {
        deadline.clear();
        this.#runs.delete(id);
        if (outcome instanceof Error) reject(outcome);
        else resolve(outcome.value);
      };
      this.#runs.set(id, { timeoutMs, deadline, includesStore: failsAtDeadline, settle });
      this.start().then(() => {
        if (!this.#runs.has(id)) return;
        this.#executing.add(id);
        this.#post({ type: 'run', id, hook, argument: argument, context, now: this.#deps.now?.() });
      }, settle);
    });
  }

  /** Ends the thread, unless a hook runs or the thread is still loading. The next run starts it again. */
  async endIfIdle(): Promise<void> {
    if (this.#runs.size === 0 && !this.#isLoading) await this.#end(null);
  }

  /** Ends the thread for good; running hooks are interrupted. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#end(null);
  }

  async #start(): Promise<PluginInfo> {
    const wait = this.#restartDelay();
    if (wait > 0) await delay(wait);
    if (this.#stopped) throw stopped();
    const data: PluginThreadData = { entry: this.#entry, publicUrl: this.#deps.publicUrl };
    const worker = new Worker(threadFile(), {
      workerData: data,
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
    });
    this.#worker = worker;
    this.#ending = 'ended';
    worker.unref();
    this.#isLoading = true;
    try {
      return await this.#ready(worker);
    } catch (error) {
      this.#started = null;
      this.#worker = null;
      await worker.terminate();
      throw this.#stopped ? stopped() : error;
    } finally {
      this.#isLoading = false;
    }
  }

  #ready(worker: Worker): Promise<PluginInfo> {
    const { use } = this.#entry;
    const ready = new Promise<PluginInfo>((resolve, reject) => {
      let services: PluginServices | null = null;
      worker.on('message', (message: FromPluginThread) => {
        if (message.type === 'failed')
          reject(Object.assign(new PluginError(use, '', message.options), { message: message.message }));
        if (message.type === 'ready') {
          services = this.#deps.services(message.info.name);
          this.#logOutput(worker, services.log);
          worker.on('exit', () => this.#exited(worker, message.info.name));
          resolve(message.info);
        }
        if (services !== null) this.#receive(worker, services, message);
      });
      worker.on('error', (error) => {
        if ('code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY') this.#ending = 'memory';
        services?.log.error({ reason: firstLine(error) }, 'the thread of a plugin has failed');
        reject(new PluginError(use, `its thread failed: ${firstLine(error)}`));
      });
      worker.once('exit', () => reject(new PluginError(use, 'its thread ended while it loaded')));
    });
    return withTimeout(LOAD_MS, ready, () => failLoading(use));
  }

  #receive(worker: Worker, services: PluginServices, message: FromPluginThread): void {
    if (message.type === 'pong') for (const answered of this.#onPong.splice(0)) answered();
    if (message.type === 'log') services.log[message.level](message.fields, message.message);
    if (message.type === 'done') {
      this.#executing.delete(message.id);
      this.#runs
        .get(message.id)
        ?.settle(message.error === undefined ? { value: message.value } : receivedError(message.error));
    }
    if (message.type === 'call') {
      const answer = (result: Omit<Extract<ToPluginThread, { type: 'result' }>, 'type' | 'id'>): void =>
        worker.postMessage({ type: 'result', id: message.id, ...result } satisfies ToPluginThread);
      const resume = this.#pauseDeadline(message);
      callService(services, message.method, message.args)
        .finally(resume)
        .then(
          (value) => answer({ value }),
          (error: unknown) => answer({ error: sentError(error) }),
        );
    }
  }

  /**
   * Stops the deadline of a run while it waits for the store, which is no fault of the plugin. Returns what ends that.
   */
  #pauseDeadline({ run, method }: Extract<FromPluginThread, { type: 'call' }>): () => void {
    const waiting = run === undefined || !isStoreMethod(method) ? undefined : this.#runs.get(run);
    if (waiting === undefined || waiting.includesStore) return () => {};
    waiting.deadline.pause();
    return () => waiting.deadline.resume();
  }

  #logOutput(worker: Worker, log: PluginLog): void {
    worker.stdout
      .setEncoding('utf8')
      .on('data', (output: string) => log.info({ output: output.trimEnd() }, 'output of a plugin'));
    worker.stderr
      .setEncoding('utf8')
      .on('data', (output: string) => log.warn({ output: output.trimEnd() }, 'output of a plugin'));
  }

  #post(message: ToPluginThread): void {
    this.#worker?.postMessage(message);
  }

  /** Ends the thread if it does not answer: it is in an endless loop. Resolves when it has answered or ended. */
  async #requireResponse(): Promise<void> {
    const worker = this.#worker;
    if (worker === null) return;
    const pong = new Promise<true>((resolve) => {
      this.#onPong.push(() => resolve(true));
      this.#post({ type: 'ping' });
    });
    const isAnswered = await withTimeout(PING_MS, pong, () => false);
    if (!isAnswered && this.#worker === worker) await this.#end('deadline');
  }

  async #end(reason: ThreadEnd | null): Promise<void> {
    const worker = this.#worker;
    if (worker === null) return;
    if (reason === null) this.#forget(null);
    else this.#ending = reason;
    await worker.terminate();
  }

  #exited(worker: Worker, plugin: string): void {
    if (this.#worker !== worker) return;
    this.#ends.push(performance.now());
    this.#forget(this.#ending);
    this.#deps.onEnd?.(plugin, this.#ending);
  }

  /**
   * Interrupts all runs. The only one that the thread was executing has failed, since it is the reason; null if the
   * thread was stopped.
   */
  #forget(reason: ThreadEnd | null): void {
    this.#worker = null;
    this.#started = null;
    this.#onPong = [];
    const [failed] = reason !== null && this.#executing.size === 1 ? this.#executing : [];
    this.#executing.clear();
    for (const [id, { settle, timeoutMs }] of [...this.#runs]) {
      settle(
        reason !== null && id === failed
          ? new Error(failureMessages[reason](timeoutMs))
          : new PluginThreadEndedError('the thread of the plugin has ended'),
      );
    }
  }

  #restartDelay(): number {
    const since = performance.now() - RESTART_WINDOW_MS;
    while (this.#ends[0] !== undefined && this.#ends[0] < since) this.#ends.shift();
    const excess = this.#ends.length - FREE_RESTARTS;
    return excess <= 0 ? 0 : Math.min(MAX_RESTART_DELAY_MS, 1_000 * 2 ** (excess - 1));
  }
}

const stopped = (): PluginThreadEndedError => new PluginThreadEndedError('the thread of the plugin is stopped');

const lateMessage = (timeoutMs: number): string => `did not end within ${timeoutMs} ms`;

/** What a run has done that was the reason for the end of its thread. */
const failureMessages: Readonly<Record<ThreadEnd, (timeoutMs: number) => string>> = {
  deadline: lateMessage,
  memory: () => `used up the ${HEAP_MB} MB of memory of its thread`,
  ended: () => 'ended its thread',
};

/** An `onEnd` that logs and counts the ends of threads. */
export function reportEnds(log: Logger, metrics: Metrics | undefined): (plugin: string, reason: ThreadEnd) => void {
  return (plugin, reason) => {
    log.warn({ plugin, reason }, 'the thread of a plugin was ended; it starts again with its next work');
    if (metrics !== undefined) metrics.counter('plugin_restarts_total', { plugin, reason }).value += 1;
  };
}

/** The built file of the thread: the TypeScript loader of the tests does not apply to threads on every Node. */
function threadFile(): URL {
  return new URL(
    import.meta.url.endsWith('.ts') ? '../../../dist/threads/plugin.js' : '../threads/plugin.js',
    import.meta.url,
  );
}
