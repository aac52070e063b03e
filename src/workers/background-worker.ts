import type { Config } from '../config/schema.ts';
import type { Context } from '../domain/context.ts';
import { releaseOwner } from '../domain/rooms/presence.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Logger } from '../observability/log.ts';
import { eventTypes, typeOfEvent } from '../model/event.ts';
import type { Bus } from '../ports/bus.ts';
import { announceCommits, followAnnouncements } from './announcements.ts';
import type { BackgroundPlugins } from './background/background-plugins.ts';
import type { Consumer } from './background/consumer.ts';
import { Consumers } from './background/consumers.ts';
import { logListenerErrors } from './listener-errors.ts';
import { notificationConsumer } from './background/notification-consumer.ts';
import { FileJobs } from './background/file-jobs.ts';
import { SnapshotWatch } from './background/snapshot-watch.ts';
import { Sweeper } from './background/sweeper.ts';
import { maintain, storeSweeps } from './background/sweeps.ts';
import type { ProcessChannel } from '../cluster/channel.ts';
import type { ShutdownStep } from '../cluster/shutdown.ts';

/** Options of a background worker. */
export interface BackgroundWorkerOptions {
  readonly config: Config;
  readonly ctx: Context;
  readonly bus: Bus;
  readonly channel: ProcessChannel;
  readonly log: Logger;
  /** When the server was started, in milliseconds since the epoch. */
  readonly startedAt: number;
  /** Each handles every committed event, besides the one that notifies users and the actions of plugins. */
  readonly consumers?: readonly Consumer[] | undefined;
  /** None if absent. */
  readonly plugins?: BackgroundPlugins | undefined;
  /** Where events are counted; absent while metrics are disabled. */
  readonly metrics?: Metrics | undefined;
}

/** A running background worker. */
export interface BackgroundWorker {
  /**
   * Resolves once its consumers receive every event since the start of the server, or wait for the store to accept
   * writes. Never rejects.
   */
  readonly started: Promise<void>;
  /** The steps of its shutdown: it finishes its work or leaves it to be resumed. */
  drain(): readonly ShutdownStep[];
}

/**
 * Starts the sweeps, file jobs and consumers of events, and cleans up after workers that the primary reports as ended.
 * It listens to the announcements of commits only while a consumer waits for events (decision 31).
 */
export function runBackgroundWorker({
  config,
  ctx,
  bus,
  channel,
  log,
  startedAt,
  metrics,
  plugins,
  ...options
}: BackgroundWorkerOptions): BackgroundWorker {
  const ended = metrics?.counter('lmdb_ended_holders_total', {});
  const snapshots =
    ctx.operations === undefined
      ? undefined
      : new SnapshotWatch(ctx.operations, log, { onEnded: () => ended !== undefined && (ended.value += 1) });
  let stopFollowing: (() => void) | null = null;
  const onDemand = (isWanted: boolean): void => {
    stopFollowing?.();
    stopFollowing = isWanted ? followAnnouncements(ctx.store, bus) : null;
  };
  const consumers = new Consumers(
    [notificationConsumer(ctx), ...(options.consumers ?? []), ...(plugins?.consumers ?? [])],
    { ctx, log, metrics, startedAt, onDemand },
  );
  const sweeps = [
    ...storeSweeps(ctx, config, consumers),
    { name: 'snapshots that are open for long', everyMs: 1_000, run: () => snapshots?.check() },
  ];
  const sweeper = new Sweeper(sweeps, { clock: ctx.clock, log });
  const stopCleaning = channel.onMessage((message) => {
    if (message.type === 'ended') void cleanUp(message.data.workerId);
  });
  const fileJobs = new FileJobs(ctx, log);
  const stopAnnouncing = announceCommits(ctx.store, bus);
  sweeper.start();
  fileJobs.start();
  plugins?.start();
  const started = consumers
    .start()
    .catch((error: unknown) =>
      log.error(
        { err: error },
        'the consumers of events could not be started; restart the server after fixing the cause',
      ),
    );
  if (metrics !== undefined) {
    countEvents(ctx, metrics);
    metrics.gauge('consumer_lag_events', () => [...consumers.lags()].map(([consumer, lag]) => [{ consumer }, lag]));
    metrics.gauge('lmdb_held_snapshot_seconds', () =>
      (snapshots?.longOpen ?? []).map(({ table, pid, command, heldMs }) => [
        { table, pid: String(pid), command: command ?? '' },
        heldMs / 1_000,
      ]),
    );
  }
  logListenerErrors(ctx.store, log);

  async function cleanUp(workerId: string): Promise<void> {
    try {
      await releaseOwner(ctx, workerId);
      await maintain(ctx);
      channel.send({ type: 'cleaned', data: { workerId } });
    } catch (error) {
      log.error(
        { err: error, ended: workerId },
        'cleaning up after an ended worker failed: its connections and counts stay in shared memory until the ' +
          'next background worker starts',
      );
    }
  }

  return {
    started,
    drain: () => [
      {
        name: 'finish the work in progress',
        withinMs: config.shutdown.drainSeconds * 1_000,
        run: async () => {
          stopCleaning();
          await Promise.all([sweeper.stop(), fileJobs.stop(), consumers.stop()]);
          await plugins?.stop();
          stopAnnouncing();
        },
      },
    ],
  };
}

/** Counts committed events. Every process sees all events, so this one counts them and writes cost nothing extra. */
function countEvents({ store }: Context, metrics: Metrics): void {
  const counters = new Map(eventTypes.map((type) => [type as string, metrics.counter('events_total', { type })]));
  store.follow((_stream, event) => {
    if (event === null) return;
    const counter = counters.get(typeOfEvent(event.text));
    if (counter !== undefined) counter.value += 1;
  });
}
