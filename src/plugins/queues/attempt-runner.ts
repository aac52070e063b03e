import type { Context } from '../../domain/context.ts';
import { LeaseLostError } from '../../domain/leases/leases.ts';
import type { QueueAddress, StoredJob } from '../../domain/plugins/job.ts';
import { endAttempt, type FailedAttempt } from '../../domain/plugins/job-attempts.ts';
import { asError } from '../../lib/thrown.ts';
import { isStoreError } from '../../model/errors.ts';
import type { Logger } from '../../observability/log.ts';
import { publicJob } from '../services/local-services.ts';
import type { HookMeter } from '../thread/hook-meter.ts';
import type { PluginInfo } from '../thread/messages.ts';
import { PluginThreadEndedError, type PluginThread } from '../thread/plugin-thread.ts';

const MAX_RETRY_AFTER_MS = 7 * 24 * 3_600_000;
const JITTER = 0.1;
/** How long a job waits after the store has refused a write of it, in milliseconds. */
const STORE_RETRY_MS = 1_000;
/** How long no further failed job of the queue is logged as a warning after one was, in milliseconds. */
const WARN_MS = 60_000;

/** Dependencies of `AttemptRunner`. */
export interface AttemptRunnerDeps {
  readonly ctx: Context;
  readonly log: Logger;
  readonly thread: PluginThread;
  readonly meter: HookMeter;
  /** As `LeaseKeeper.confirm`; called before each attempt. */
  readonly confirm?: (() => Promise<void>) | undefined;
}

/** Runs attempts at the jobs of one queue in the thread of its plugin, and stores how they end. */
export class AttemptRunner {
  readonly #deps: AttemptRunnerDeps;
  readonly #plugin: string;
  /** The place of the queue among those of the plugin. */
  readonly #index: number;
  readonly #queue: PluginInfo['hooks']['queues'][number];
  /** Until when failed jobs are not logged as warnings, by the monotonic clock. */
  #quietUntil = Number.NEGATIVE_INFINITY;

  constructor(deps: AttemptRunnerDeps, plugin: string, index: number, queue: PluginInfo['hooks']['queues'][number]) {
    this.#deps = deps;
    this.#plugin = plugin;
    this.#index = index;
    this.#queue = queue;
  }

  /**
   * Runs an attempt, stores its end, and returns how it failed; null if it succeeded. Never rejects: what cannot be
   * stored is tried again after the lease.
   *
   * @param job as it was stored when the attempt began
   */
  async run(address: QueueAddress, job: StoredJob, context: object): Promise<FailedAttempt | null> {
    const failed = await this.#handle(job, context);
    if (failed !== null) this.#logFailure(job, failed);
    try {
      await endAttempt(this.#deps.ctx, address, job, failed);
    } catch (error) {
      this.#deps.log.warn(
        { err: error, plugin: this.#plugin, queue: this.#queue.name, job: job.id },
        'the end of a job of a plugin could not be stored; the job runs again',
      );
    }
    return failed;
  }

  async #handle(job: StoredJob, context: object): Promise<FailedAttempt | null> {
    const { thread, meter, confirm } = this.#deps;
    const { name, options } = this.#queue;
    const subject = publicJob({ ...job, attempts: job.attempts - 1 });
    try {
      await confirm?.();
      await meter.measure(`queue ${name}`, () =>
        thread.run({ kind: 'job', index: this.#index }, subject, context, options.timeoutMs),
      );
      return null;
    } catch (error) {
      return failureOf(asError(error), options.retryDelaysMs[job.attempts - 1]);
    }
  }

  /** Logs a failure as a warning once a minute only, since thousands of jobs can fail for one reason. */
  #logFailure({ id, attempts }: StoredJob, { error, waitMs }: FailedAttempt): void {
    const { log, ctx } = this.#deps;
    const about = { plugin: this.#plugin, queue: this.#queue.name, job: id, attempt: attempts, reason: error, waitMs };
    const now = ctx.clock.monotonic();
    if (now < this.#quietUntil) return log.debug(about, 'a job of a plugin failed');
    this.#quietUntil = now + WARN_MS;
    return log.warn(
      about,
      'a job of a plugin failed; further failures in this queue within a minute are logged at the level debug only',
    );
  }
}

/**
 * What a failed attempt means for its job.
 *
 * @param retryDelayMs the delay that the queue sets for the next attempt; undefined if there is none
 */
function failureOf(thrown: Error & { ms?: number }, retryDelayMs: number | undefined): FailedAttempt {
  const { name, message: error, ms } = thrown;
  if (thrown instanceof PluginThreadEndedError || thrown instanceof LeaseLostError)
    return { error, waitMs: 0, uncounted: true };
  if (isStoreError(thrown)) return { error, waitMs: STORE_RETRY_MS, uncounted: true };
  if (name === 'Permanent' || retryDelayMs === undefined) return { error, waitMs: null };
  if (name === 'RetryAfter' && ms !== undefined)
    return { error, waitMs: Math.min(MAX_RETRY_AFTER_MS, Math.max(0, ms)) };
  return { error, waitMs: retryDelayMs * (1 - JITTER + Math.random() * 2 * JITTER) };
}
