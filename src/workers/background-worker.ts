import type { Config } from '../config/schema.ts';
import type { Context } from '../domain/context.ts';
import { FencedStore } from '../domain/leases/fenced-store.ts';
import type { Lease, LeaseHolder, LeaseLostError } from '../domain/leases/leases.ts';
import { releaseOwner } from '../domain/rooms/presence.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Logger } from '../observability/log.ts';
import { eventTypes, typeOfEvent } from '../model/event.ts';
import type { Bus } from '../ports/bus.ts';
import { LEASE_MS } from '../ports/shared.ts';
import { announceCommits, followAnnouncements } from './announcements.ts';
import { BackgroundWork, type LoadPlugins } from './background/background-work.ts';
import type { Consumer } from '../domain/events/consumer.ts';
import { LeaseKeeper } from './background/lease-keeper.ts';
import { logListenerErrors } from './listener-errors.ts';
import { SnapshotWatch } from './background/snapshot-watch.ts';
import { Sweeper } from './background/sweeper.ts';
import { maintain, ownSweeps } from './background/sweeps.ts';
import type { ProcessChannel } from '../cluster/channel.ts';
import type { ShutdownStep } from '../cluster/shutdown.ts';

/** The lease of all background work. */
const LEASE = 'background';

/** Options of a background worker. */
export interface BackgroundWorkerOptions {
  readonly config: Config;
  readonly ctx: Context;
  readonly bus: Bus;
  readonly channel: ProcessChannel;
  readonly log: Logger;
  /** When the server was started, in milliseconds since the epoch. */
  readonly startedAt: number;
  /** This worker, as holder of the lease of the background work. */
  readonly holder: LeaseHolder;
  /** Each handles every committed event, besides the one that notifies users and the actions of plugins. */
  readonly consumers?: readonly Consumer[] | undefined;
  /** None if absent. */
  readonly loadPlugins?: LoadPlugins | undefined;
  /** Where events are counted; absent while metrics are disabled. */
  readonly metrics?: Metrics | undefined;
}

/** A running background worker. */
export interface BackgroundWorker {
  /**
   * Resolves once its consumers receive every event since the start of the server, or wait for the store to accept
   * writes; or once it waits for the worker of another node that does the work. Never rejects.
   */
  readonly started: Promise<void>;
  /** Resolves if another worker has taken the lease of the work: then this one must end, and wait for the lease anew. */
  readonly failed: Promise<LeaseLostError>;
  /** The steps of its shutdown: it finishes its work or leaves it to be resumed. */
  drain(): readonly ShutdownStep[];
}

/**
 * Does the sweeps, file jobs and consumers of events while it holds their lease (decision 71), and always cleans up
 * after workers that the primary reports as ended. It listens to the announcements of commits only while a consumer
 * waits for events (decision 31).
 */
export function runBackgroundWorker({
  config,
  ctx,
  bus,
  channel,
  log,
  startedAt,
  holder,
  metrics,
  consumers = [],
  loadPlugins,
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
  const sweeps = [
    ...ownSweeps(ctx),
    { name: 'snapshots that are open for long', everyMs: 1_000, run: () => snapshots?.check() },
  ];
  const sweeper = new Sweeper(sweeps, { clock: ctx.clock, log });
  const stopCleaning = channel.onMessage((message) => {
    if (message.type === 'ended') void cleanUp(message.data.owner);
  });
  const stopAnnouncing = announceCommits(ctx.store, bus);
  if (metrics !== undefined) {
    countEvents(ctx, metrics);
    metrics.gauge('lmdb_held_snapshot_seconds', () =>
      (snapshots?.longOpen ?? []).map(({ table, pid, command, heldMs }) => [
        { table, pid: String(pid), command: command ?? '' },
        heldMs / 1_000,
      ]),
    );
  }
  logListenerErrors(ctx.store, log);

  let work: Promise<BackgroundWork> | null = null;
  let stopWaiting = (): void => {};
  const begin = (lease: Lease): void => {
    stopWaiting();
    const store = new FencedStore(ctx.store, lease, keeper.lost);
    const { confirm } = keeper;
    const options = { config, log, startedAt, confirm, consumers, loadPlugins, onDemand, metrics };
    work = BackgroundWork.load({ ...options, ctx: { ...ctx, store } }).then(async (loaded) => {
      sweeper.start();
      await loaded.start();
      return loaded;
    });
  };
  let fail: (error: LeaseLostError) => void = () => {};
  const failed = new Promise<LeaseLostError>((resolve) => (fail = resolve));
  const onLost = (error: LeaseLostError): void => {
    void work?.then((running) => running.stop());
    fail(error);
  };
  const keeper = new LeaseKeeper({
    store: ctx.store,
    clock: ctx.clock,
    log,
    name: LEASE,
    holder,
    onTaken: begin,
    onLost,
  });
  // The worker that gives the lease up announces it.
  const waitForLease = (): void => {
    if (work !== null) return;
    stopWaiting = bus.onAnnounce((announcement) => {
      if (announcement === null) void keeper.look();
    });
  };
  // While plugins are loaded, the sweeps would cost a start processor time that the web workers need.
  const started = keeper.start().then(async () => {
    waitForLease();
    await work;
    sweeper.start();
  });

  async function cleanUp(owner: string): Promise<void> {
    try {
      await releaseOwner(ctx, owner);
      await maintain(ctx);
      channel.send({ type: 'cleaned', data: { owner } });
    } catch (error) {
      log.error(
        { err: error, ended: owner },
        'cleaning up after an ended worker failed: its connections and counts stay in shared memory until its lease ' +
          `ends, at most ${LEASE_MS / 1_000} s after its end`,
      );
    }
  }

  return {
    started,
    failed,
    drain: () => [
      {
        name: 'finish the work in progress',
        withinMs: config.shutdown.drainSeconds * 1_000,
        run: async () => {
          stopCleaning();
          stopWaiting();
          await keeper.stop();
          await started;
          await Promise.all([sweeper.stop(), work?.then((running) => running.stop())]);
          // A folder has one node, so nobody waits for the lease: its next worker has it, on a full disk too.
          if (ctx.operations === undefined && (await keeper.release())) bus.announce(null);
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
