import type { Config } from '../../config/schema.ts';
import type { Context } from '../../domain/context.ts';
import { sweepAdminSessions } from '../../domain/admins/admin-sessions.ts';
import { listEnvironments } from '../../domain/environments/environments.ts';
import { STAGED_MS, sweepUnlinked } from '../../domain/files/file-sweep.ts';
import { sweepAdminIdempotency, sweepIdempotency } from '../../domain/idempotency.ts';
import { sweepItems } from '../../domain/moderation/sweep.ts';
import { sweepUnfinishedWork } from '../../domain/environments/unfinished-work.ts';
import { sweepDeadJobs } from '../../domain/plugins/job-attempts.ts';
import { hasRemovals, sweepRemovals } from '../../domain/rooms/room-removal.ts';
import { sweepStages } from '../../domain/rooms/state-bytes.ts';
import { streamOf } from '../../domain/events/streams.ts';
import type { Environment } from '../../model/environments/environment.ts';
import { ensureCounted, isCounted } from '../../domain/quotas/usage-count.ts';
import { completeUserOrder } from '../../domain/users/user-order.ts';
import type { Consumers } from './consumers.ts';
import { trimExpiredEvents } from './event-retention.ts';
import { InboxSweep } from './inbox-sweep.ts';
import type { Sweep } from './sweeper.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Environments that are looked at together. */
const AT_ONCE = 100;

/** A rate window that was not used for this long is empty, whatever its length. */
const IDLE_WINDOW_MS = 5 * MINUTE;

/** Frees the shared memory of killed processes, and runs a checkpoint of the store if one is due. */
export async function maintain({ operations, shared }: Context): Promise<void> {
  await shared.maintain();
  await operations?.maintain();
}

/** The sweeps that every background worker does: each may do them at the same time as others. */
export function ownSweeps(ctx: Context): readonly Sweep[] {
  return [{ name: 'store maintenance', everyMs: SECOND / 4, run: () => maintain(ctx) }];
}

/**
 * Does what is one read of each environment, mostly, for many at once: a store on another machine answers them in one
 * round trip. Rejects with the first failure, after all of those have ended.
 */
async function together(ctx: Context, work: (environment: Environment) => Promise<void>): Promise<void> {
  const environments = await listEnvironments(ctx);
  for (let from = 0; from < environments.length; from += AT_ONCE) {
    const results = await Promise.allSettled(environments.slice(from, from + AT_ONCE).map(work));
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }
}

/** The sweeps of records, files and shared memory, which one background worker at a time does. */
export function storeSweeps(
  ctx: Context,
  { events }: Pick<Config, 'events'>,
  consumers: Pick<Consumers, 'lowestConsumerCursor'>,
): readonly Sweep[] {
  const pruning = new InboxSweep(ctx);
  return [
    {
      name: 'event retention',
      everyMs: MINUTE,
      run: () =>
        together(ctx, (environment) => {
          const stream = streamOf(environment);
          return trimExpiredEvents(ctx, stream, events, consumers.lowestConsumerCursor(stream));
        }),
    },
    { name: 'shared memory', everyMs: MINUTE, run: () => ctx.shared.sweep(IDLE_WINDOW_MS) },
    { name: 'admin sessions', everyMs: HOUR, run: () => sweepAdminSessions(ctx) },
    {
      name: 'removal of deleted rooms',
      everyMs: 10 * SECOND,
      run: async () => {
        const waiting: string[] = [];
        await together(ctx, async ({ id }) => void ((await hasRemovals(ctx, id)) && waiting.push(id)));
        for (const id of waiting) await sweepRemovals(ctx, id);
      },
    },
    {
      name: 'unfinished writes of shared states',
      everyMs: HOUR,
      run: async () => {
        for (const { id } of await listEnvironments(ctx)) await sweepStages(ctx, id);
      },
    },
    { name: 'dead jobs of plugins', everyMs: HOUR, run: async () => void (await sweepDeadJobs(ctx)) },
    { name: 'unfinished work on environments', everyMs: 10 * SECOND, run: () => sweepUnfinishedWork(ctx) },
    {
      name: 'counts for quotas',
      everyMs: 10 * SECOND,
      run: async () => {
        const waiting: string[] = [];
        await together(ctx, async ({ id }) => void ((await isCounted(ctx, id)) || waiting.push(id)));
        for (const id of waiting) await ensureCounted(ctx, id);
      },
    },
    {
      name: 'order of users',
      everyMs: HOUR,
      run: async () => {
        for (const { id } of await listEnvironments(ctx)) await completeUserOrder(ctx, id);
      },
    },
    { name: 'old notifications', everyMs: 10 * SECOND, run: () => pruning.run() },
    {
      name: 'files that no comment links',
      everyMs: HOUR,
      run: async () => {
        for (const { id } of await listEnvironments(ctx)) await sweepUnlinked(ctx, id);
        await ctx.blobs?.sweepStaged(STAGED_MS);
      },
    },
    // It removes the expired ones. A call of `collab gc` is too short to see that a lease expires.
    {
      name: 'expired retention leases of files',
      everyMs: MINUTE,
      run: async () => void (await ctx.blobs?.isRetained()),
    },
    {
      name: 'decided moderation items',
      everyMs: HOUR,
      run: async () => {
        for (const { id } of await listEnvironments(ctx)) await sweepItems(ctx, id);
      },
    },
    {
      name: 'idempotency records',
      everyMs: HOUR,
      run: async () => {
        for (const environment of await listEnvironments(ctx)) await sweepIdempotency(ctx, environment);
        await sweepAdminIdempotency(ctx);
      },
    },
  ];
}
