import { setTimeout as delay } from 'node:timers/promises';
import type { PluginEntry } from '../../config/plugin-entries.ts';
import { ReadWriteLock } from '../../lib/concurrency/read-write-lock.ts';
import type { Logger } from '../../observability/log.ts';
import type { Metrics } from '../../observability/metrics.ts';
import type { PluginServices } from '../services/services.ts';
import { type HookCall, HookRun } from './hook-run.ts';
import { type HookReference, type PluginInfo, receivedError, type SentError } from './messages.ts';
import { RestartDelay } from './restart-delay.ts';
import { HEAP_MB, RunningThread, type ThreadEnd } from './running-thread.ts';

/** A thread that does not answer for this long after a deadline is in an endless loop, and is ended. */
const PING_MS = 1_000;

/**
 * A run did not end because its thread was stopped or, for a filter or a route, because another run may have ended the
 * thread.
 */
export class PluginThreadEndedError extends Error {
  override readonly name = 'PluginThreadEndedError';
}

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

/** The thread that runs the hooks of one plugin. It starts with the first run, and again after it was ended. */
export class PluginThread {
  readonly #entry: PluginEntry;
  readonly #deps: PluginThreadDeps;
  /** The runs whose callers wait, by id. */
  readonly #runs = new Map<number, HookRun>();
  /** Runs that the thread may be executing. If the thread ends, one of them is the reason. */
  readonly #executing = new Set<number>();
  /** Actions and jobs run together, except those that are run again because one of them has ended the thread. */
  readonly #lock = new ReadWriteLock();
  readonly #restartDelay = new RestartDelay();
  #thread: RunningThread | null = null;
  #started: Promise<PluginInfo> | null = null;
  #lastRun = 0;
  #stopped = false;

  constructor(entry: PluginEntry, deps: PluginThreadDeps) {
    this.#entry = entry;
    this.#deps = deps;
  }

  /** Whether the thread exists now. */
  get isRunning(): boolean {
    return this.#thread !== null;
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
    const begin = (): Promise<unknown> => this.#begin({ hook, argument, context, timeoutMs });
    if (hook.kind === 'filter' || hook.kind === 'route') return begin();
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

  /** Ends the thread, unless a hook runs or the thread is still loading. The next run starts it again. */
  async endIfIdle(): Promise<void> {
    if (this.#runs.size === 0 && this.#thread?.isLoaded === true) await this.#end();
  }

  /** Ends the thread for good; running hooks are interrupted. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#end();
  }

  /** Runs a hook once. */
  async #begin(call: HookCall): Promise<unknown> {
    if (this.#deps.deadlineIncludesStart !== true) await this.start();
    const run = new HookRun(++this.#lastRun, call, (late) => void this.#interrupt(late));
    this.#runs.set(run.id, run);
    try {
      void this.start().then(
        () => this.#execute(run),
        (error: Error) => run.fail(error),
      );
      return await run.result;
    } finally {
      this.#runs.delete(run.id);
    }
  }

  #execute(run: HookRun): void {
    if (run.isEnded) return;
    this.#executing.add(run.id);
    const { hook, argument, context } = run.call;
    this.#thread?.post({ type: 'run', id: run.id, hook, argument, context, now: this.#deps.now?.() });
  }

  /** Ends a run whose deadline has passed, and the thread with it if it is in an endless loop. */
  async #interrupt(run: HookRun): Promise<void> {
    const failure = new Error(lateMessage(run.call.timeoutMs));
    // A thread that loads answers late, but is in no endless loop.
    const isBegun = this.#executing.has(run.id);
    if (run.hasClient || !isBegun) run.fail(failure);
    if (!isBegun) return;
    this.#thread?.post({ type: 'cancel', id: run.id });
    await this.#requireResponse();
    this.#executing.delete(run.id);
    run.fail(failure);
  }

  async #start(): Promise<PluginInfo> {
    const { ms } = this.#restartDelay;
    if (ms > 0) await delay(ms);
    if (this.#stopped) throw stopped();
    const thread = new RunningThread(this.#entry, this.#deps.publicUrl, {
      services: this.#deps.services,
      onDone: (run, value, error) => this.#done(run, value, error),
      onStoreCall: (run) => this.#runs.get(run)?.pause() ?? (() => {}),
      onExit: (ended, plugin, reason) => this.#exited(ended, plugin, reason),
    });
    this.#thread = thread;
    try {
      return await thread.loaded;
    } catch (error) {
      this.#started = null;
      this.#thread = null;
      await thread.end();
      throw this.#stopped ? stopped() : error;
    }
  }

  #done(id: number, value: unknown, error: SentError | undefined): void {
    this.#executing.delete(id);
    const run = this.#runs.get(id);
    if (error === undefined) run?.succeed(value);
    else run?.fail(receivedError(error));
  }

  /** Ends the thread if it does not answer: it is in an endless loop. Resolves when it has answered or ended. */
  async #requireResponse(): Promise<void> {
    const thread = this.#thread;
    if (thread === null || (await thread.answersWithin(PING_MS))) return;
    if (this.#thread === thread) await thread.end('deadline');
  }

  /** Ends the thread, which is no fault of a run. */
  async #end(): Promise<void> {
    const thread = this.#thread;
    if (thread === null) return;
    this.#forget(null);
    await thread.end();
  }

  #exited(thread: RunningThread, plugin: string, reason: ThreadEnd): void {
    if (this.#thread !== thread) return;
    this.#restartDelay.ended();
    this.#forget(reason);
    this.#deps.onEnd?.(plugin, reason);
  }

  /**
   * Interrupts all runs. The only one that the thread was executing has failed, since it is the reason; null if the
   * thread was stopped.
   */
  #forget(reason: ThreadEnd | null): void {
    this.#thread = null;
    this.#started = null;
    const [failed] = reason !== null && this.#executing.size === 1 ? this.#executing : [];
    this.#executing.clear();
    for (const run of this.#runs.values()) {
      run.fail(
        reason !== null && run.id === failed
          ? new Error(failureMessages[reason](run.call.timeoutMs))
          : new PluginThreadEndedError('the thread of the plugin has ended'),
      );
    }
    this.#runs.clear();
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
