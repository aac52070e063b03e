import { timestamp } from '../../lib/clock.ts';
import type { Context } from '../context.ts';
import { ENVIRONMENTS, PLUGIN_QUEUES } from '../records/partitions.ts';
import {
  countsKey,
  groupPrefix,
  jobsPartition,
  ORDER_PREFIX,
  parseOrderKey,
  type QueueAddress,
  type StoredJob,
  writeJob,
} from './job.ts';
import { changeJob, type JobGroup, jobGroups, readJob } from './jobs.ts';

/** How long a dead job is kept. */
const DEAD_MS = 30 * 24 * 3_600_000;
/**
 * How far the clock of an earlier process, on another machine or before the clock was set, may be ahead of this one's
 * for its leases to be found.
 */
const CLOCKS_APART_MS = 15 * 60_000;
/** Jobs that a sweep changes with one commit. */
const SLICE = 200;
const MAX_ERROR_LENGTH = 500;

/**
 * Begins an attempt at those of these jobs that are due, and returns them. The attempt is counted, and the job is due
 * again in `leaseMs` milliseconds, the lease: so another process runs it if this one ends before `endAttempt`.
 */
export async function leaseJobs(
  ctx: Context,
  address: QueueAddress,
  ids: readonly string[],
  leaseMs: number,
): Promise<StoredJob[]> {
  const now = ctx.clock.now();
  return ctx.store.transact(async (tx) => {
    const leased: StoredJob[] = [];
    for (const id of ids) {
      const job = await readJob(tx, address, id);
      if (job?.state !== 'waiting' || job.dueAt > timestamp(now)) continue;
      const leasedJob = leaseJob(job, now, leaseMs);
      writeJob(tx, address, job, leasedJob);
      leased.push(leasedJob);
    }
    return leased;
  });
}

/** A job with its next attempt begun, as by `leaseJobs`. `now` is in milliseconds since the epoch. */
export function leaseJob(job: StoredJob, now: number, leaseMs: number): StoredJob {
  return { ...job, attempts: job.attempts + 1, dueAt: timestamp(now + leaseMs), leased: true };
}

/** The end of an attempt that did not succeed. */
export interface FailedAttempt {
  readonly error: string;
  /** Milliseconds until the next one; null for none: the job is dead. */
  readonly waitMs: number | null;
  /** Whether the attempt does not count, because something else ended it. */
  readonly uncounted?: boolean;
}

/**
 * Ends the attempt at a leased job: removes the job (null), or stores when it is tried again. No effect on a job that
 * was changed in the meantime.
 */
export async function endAttempt(
  ctx: Context,
  address: QueueAddress,
  leased: StoredJob,
  failed: FailedAttempt | null,
): Promise<void> {
  const now = ctx.clock.now();
  await changeJob(ctx, address, leased.id, (stored) => {
    if (stored.dueAt !== leased.dueAt || stored.attempts !== leased.attempts) return stored;
    const { leased: _, ...job } = stored;
    if (failed === null) return undefined;
    const lastError = failed.error.toWellFormed().slice(0, MAX_ERROR_LENGTH);
    if (failed.waitMs === null) return { ...job, state: 'dead', dueAt: timestamp(now), lastError };
    return {
      ...job,
      attempts: job.attempts - Number(failed.uncounted === true),
      dueAt: timestamp(now + failed.waitMs),
      lastError,
    };
  });
}

/**
 * Call it after the wall clock was set back by `ms` milliseconds: makes the waiting jobs of a group due that much
 * earlier, except those that are due now. A job for whose id `isRunning` returns true is left as it is, because its
 * `dueAt` ends its lease.
 */
export async function makeDueEarlier(
  ctx: Context,
  group: JobGroup,
  ms: number,
  isRunning: (id: string) => boolean,
): Promise<void> {
  const prefix = groupPrefix(group.group);
  for (let after = `${prefix}${timestamp(ctx.clock.now())}`; ;) {
    const entries = await ctx.store.range(jobsPartition(group), { prefix, after, limit: SLICE });
    const last = entries.at(-1);
    if (last === undefined) return;
    const found = entries.map(({ key }) => parseOrderKey(key)).filter(({ id }) => !isRunning(id));
    await ctx.store.transact(async (tx) => {
      for (const { id, dueAt } of found) {
        const job = await readJob(tx, group, id);
        if (job?.state === 'waiting' && job.dueAt === dueAt)
          writeJob(tx, group, job, { ...job, dueAt: timestamp(Date.parse(dueAt) - ms) });
      }
    });
    after = last.key;
  }
}

/**
 * Makes the leased jobs of a group due now, when no process that leased one is running any more. Reads only jobs that
 * are due within `leaseMs` milliseconds, the longest lease, and 15 minutes more, by which the clock of such a process
 * may have been ahead. Those that were leased by version 0.1 wait for the end of their lease.
 */
export async function freeLeases(ctx: Context, group: JobGroup, leaseMs: number): Promise<void> {
  const prefix = groupPrefix(group.group);
  const now = timestamp(ctx.clock.now());
  const last = timestamp(ctx.clock.now() + leaseMs + CLOCKS_APART_MS);
  for (let after = `${prefix}${now}`; ;) {
    const entries = await ctx.store.range(jobsPartition(group), { prefix, after, limit: SLICE });
    const found = entries.map(({ key }) => parseOrderKey(key)).filter(({ dueAt }) => dueAt <= last);
    await ctx.store.transact(async (tx) => {
      for (const { id, dueAt } of found) {
        const job = await readJob(tx, group, id);
        if (job?.leased === true && job.dueAt === dueAt) writeJob(tx, group, job, { ...job, dueAt: now });
      }
    });
    const next = entries.at(-1)?.key;
    if (next === undefined || parseOrderKey(next).dueAt > last) return;
    after = next;
  }
}

/**
 * Deletes the jobs that have been dead for 30 days, and the counts of the queues of deleted environments. Returns the
 * number of jobs.
 */
export async function sweepDeadJobs(ctx: Context): Promise<number> {
  const cutoff = timestamp(ctx.clock.now() - DEAD_MS);
  let swept = 0;
  for (const group of await jobGroups(ctx)) {
    if ((await ctx.store.get(ENVIRONMENTS, group.environmentId)) === undefined)
      await dropCounts(ctx, countsKey(group, group.group), group.environmentId);
    else if (group.counts.dead > 0) swept += await sweepQueue(ctx, group, cutoff);
  }
  return swept;
}

async function sweepQueue(ctx: Context, address: QueueAddress, cutoff: string): Promise<number> {
  for (let swept = 0; ;) {
    const oldest = await ctx.store.range(jobsPartition(address), { prefix: ORDER_PREFIX.dead, limit: SLICE });
    const stale = oldest.map(({ key }) => parseOrderKey(key)).filter(({ dueAt }) => dueAt < cutoff);
    if (stale.length === 0) return swept;
    await ctx.store.transact(async (tx) => {
      for (const { id } of stale) {
        const job = await readJob(tx, address, id);
        if (job?.state === 'dead' && job.dueAt < cutoff) writeJob(tx, address, job, undefined);
      }
    });
    swept += stale.length;
  }
}

async function dropCounts(ctx: Context, key: string, environmentId: string): Promise<void> {
  await ctx.store.transact(async (tx) => {
    if ((await tx.get(ENVIRONMENTS, environmentId)) === undefined) tx.delete(PLUGIN_QUEUES, key);
  });
}
