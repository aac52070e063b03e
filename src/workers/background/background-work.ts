import type { Config } from '../../config/schema.ts';
import type { Context } from '../../domain/context.ts';
import type { Logger } from '../../observability/log.ts';
import type { Metrics } from '../../observability/metrics.ts';
import type { BackgroundPlugins } from '../../plugins/background/background-plugins.ts';
import type { Consumer } from '../../domain/events/consumer.ts';
import { Consumers } from './consumers.ts';
import { FileJobs } from './file-jobs.ts';
import { notificationConsumer } from './notification-consumer.ts';
import { type Sweep, Sweeper } from './sweeper.ts';
import { storeSweeps } from './sweeps.ts';

/**
 * How often a store on another machine is asked for jobs of files, and every store for jobs of plugins that became due
 * or that other processes have added, in milliseconds: both in one round trip. Less than a tick of the sweeper, so that
 * each tick does it.
 */
const POLL_MS = 200;

/** Loads the plugins of the background work. `confirm` as `LeaseKeeper.confirm`. Must not reject. */
export type LoadPlugins = (ctx: Context, confirm: () => Promise<void>) => Promise<BackgroundPlugins>;

/** Options of the background work. */
export interface BackgroundWorkOptions {
  readonly config: Config;
  /** Its store refuses commits once the lease of the work is lost. */
  readonly ctx: Context;
  readonly log: Logger;
  /** When the server was started, in milliseconds since the epoch. */
  readonly startedAt: number;
  /** As `LeaseKeeper.confirm`. */
  readonly confirm: () => Promise<void>;
  /** As `BackgroundWorkerOptions.consumers`. */
  readonly consumers: readonly Consumer[];
  /** None if absent. */
  readonly loadPlugins?: LoadPlugins | undefined;
  /** As `ConsumersOptions.onDemand`. */
  readonly onDemand: (isWanted: boolean) => void;
  readonly metrics?: Metrics | undefined;
}

/** What one background worker of all at a time does: sweeps, file jobs, consumers of events and queues of plugins. */
export class BackgroundWork {
  readonly #consumers: Consumers;
  readonly #fileJobs: FileJobs;
  /** Whether reading the store costs a round trip. */
  readonly #isRemote: boolean;
  readonly #sweeper: Sweeper;
  readonly #plugins: BackgroundPlugins | undefined;
  readonly #log: Logger;

  private constructor(options: BackgroundWorkOptions, plugins: BackgroundPlugins | undefined) {
    const { config, log, metrics, confirm } = options;
    const ctx = { ...options.ctx, inboxFilter: plugins?.inboxFilter };
    this.#plugins = plugins;
    this.#log = log;
    const others = [...options.consumers, ...(plugins?.consumers ?? [])];
    this.#consumers = new Consumers(
      [notificationConsumer(ctx), ...others.map((consumer) => confirmedConsumer(consumer, confirm))],
      { ...options, ctx },
    );
    const consumers = this.#consumers;
    metrics?.gauge('consumer_lag_events', () => [...consumers.lags()].map(([consumer, lag]) => [{ consumer }, lag]));
    this.#fileJobs = new FileJobs(ctx, log, confirm);
    this.#isRemote = ctx.operations === undefined;
    const poll = (): void => {
      if (this.#isRemote) this.#fileJobs.poll();
      plugins?.poll();
    };
    const sweeps = storeSweeps(ctx, config, this.#consumers).map((sweep) => confirmedSweep(sweep, confirm));
    // Each job is confirmed by itself.
    this.#sweeper = new Sweeper([{ name: 'jobs', everyMs: POLL_MS, run: poll }, ...sweeps], { clock: ctx.clock, log });
  }

  /** Loads what the work needs, without beginning it. Never rejects. */
  static async load(options: BackgroundWorkOptions): Promise<BackgroundWork> {
    return new BackgroundWork(options, await options.loadPlugins?.(options.ctx, options.confirm));
  }

  /**
   * Begins the work. Resolves once its consumers receive every event since the start of the server, or wait for the
   * store to accept writes. Never rejects.
   */
  async start(): Promise<void> {
    this.#sweeper.start();
    if (!this.#isRemote) this.#fileJobs.start();
    this.#plugins?.start();
    await this.#consumers
      .start()
      .catch((error: unknown) =>
        this.#log.error(
          { err: error },
          'the consumers of events could not be started; restart the server after fixing the cause',
        ),
      );
  }

  /** Begins nothing more. Resolves once what is under way has ended, or is left to be resumed. */
  async stop(): Promise<void> {
    await Promise.all([this.#sweeper.stop(), this.#fileJobs.stop(), this.#consumers.stop()]);
    await this.#plugins?.stop();
  }
}

/** The consumer, which calls `confirm` before each event: what it does may be more than commits. */
function confirmedConsumer(consumer: Consumer, confirm: () => Promise<void>): Consumer {
  return {
    ...consumer,
    handle: async (...event) => {
      await confirm();
      await consumer.handle(...event);
    },
  };
}

function confirmedSweep({ name, everyMs, run }: Sweep, confirm: () => Promise<void>): Sweep {
  return {
    name,
    everyMs,
    run: async () => {
      await confirm();
      await run();
    },
  };
}
