import { timestamp } from '../../lib/clock.ts';
import type { NewJob } from '../../model/job.ts';
import type { Json } from '../../model/json.ts';
import type { Transaction } from '../../ports/store.ts';
import type { Context } from '../context.ts';
import { ENVIRONMENTS, PLUGIN_QUEUES } from '../records/partitions.ts';
import { readRecord, readRecords } from '../records/record.ts';
import {
  groupPrefix,
  type JobCounts,
  jobKey,
  jobsPartition,
  ORDER_PREFIX,
  parseOrderKey,
  type QueueAddress,
  type StoredJob,
  writeJob,
} from './job.ts';

const ID = /^[A-Za-z0-9_.:-]{1,128}$/;
const MAX_PAYLOAD_LENGTH = 256 * 1024;
const MAX_BATCH = 1_000;
const MAX_DELAY_MS = 30 * 24 * 3_600_000;

/**
 * Adds jobs with one commit, and returns those that were added: one whose id is in the queue already is left as it is.
 */
export function addJobs(ctx: Context, address: QueueAddress, jobs: readonly StoredJob[]): Promise<StoredJob[]> {
  return ctx.store.transact(async (tx) => {
    if ((await tx.get(ENVIRONMENTS, address.environmentId)) === undefined)
      throw new Error('the environment was deleted');
    const seen = new Set<string>();
    const added: StoredJob[] = [];
    for (const job of jobs) {
      if (seen.has(job.id)) continue;
      seen.add(job.id);
      if ((await readJob(tx, address, job.id)) !== undefined) continue;
      writeJob(tx, address, undefined, job);
      added.push(job);
    }
    return added;
  });
}

/** The jobs of these drafts, added at `now`. Throws an `Error` that names a bad field. */
export function newJobs(drafts: readonly NewJob[], now: number): StoredJob[] {
  if (drafts.length > MAX_BATCH) throw new Error(`at most ${MAX_BATCH} jobs can be added at once`);
  return drafts.map((draft) => jobOf(draft, now));
}

function jobOf({ id, payload, delayMs = 0, group = '' }: NewJob, now: number): StoredJob {
  if (!ID.test(id)) throw new Error('the id of a job must be 1 to 128 characters of A–Z a–z 0–9 _ . : -');
  if (group !== '' && !ID.test(group))
    throw new Error('the group of a job must be 1 to 128 characters of A–Z a–z 0–9 _ . : -');
  if (!(delayMs >= 0 && delayMs <= MAX_DELAY_MS)) throw new Error('delayMs must be from 0 to 30 days');
  const text = JSON.stringify(payload) as string | undefined;
  if (text === undefined || text.length > MAX_PAYLOAD_LENGTH || !text.isWellFormed())
    throw new Error(`the payload of a job must be well-formed JSON of at most ${MAX_PAYLOAD_LENGTH} characters`);
  // The first attempt, too, gets what is stored.
  return {
    id,
    group,
    payload: JSON.parse(text) as Json,
    attempts: 0,
    state: 'waiting',
    createdAt: timestamp(now),
    dueAt: timestamp(now + delayMs),
    lastError: null,
  };
}

/** A job by its id; undefined if the queue has none. */
export async function readJob(
  reader: Pick<Transaction, 'get'>,
  address: QueueAddress,
  id: string,
): Promise<StoredJob | undefined> {
  return ID.test(id) ? readRecord<StoredJob>(reader, jobsPartition(address), jobKey(id)) : undefined;
}

/** Removes a job. No effect if there is none. */
export async function removeJob(ctx: Context, address: QueueAddress, id: string): Promise<void> {
  await changeJob(ctx, address, id, () => undefined);
}

/** Makes a job due now, with all its attempts left, and returns whether there is one. */
export async function retryJob(ctx: Context, address: QueueAddress, id: string): Promise<boolean> {
  const job = await changeJob(ctx, address, id, (found) => {
    const { leased: _, ...rest } = found;
    return { ...rest, state: 'waiting', attempts: 0, dueAt: timestamp(ctx.clock.now()) };
  });
  return job !== undefined;
}

/** Replaces a job as `change` says (undefined removes it), and returns what it was; undefined if there is none. */
export async function changeJob(
  ctx: Context,
  address: QueueAddress,
  id: string,
  change: (job: StoredJob) => StoredJob | undefined,
): Promise<StoredJob | undefined> {
  return ctx.store.transact(async (tx) => {
    const job = await readJob(tx, address, id);
    if (job !== undefined) writeJob(tx, address, job, change(job));
    return job;
  });
}

/**
 * The jobs of a state in the order of `dueAt`, from the one after `after` (an id) on. Rejects if that is not in the
 * queue.
 */
export async function listJobs(
  ctx: Context,
  address: QueueAddress,
  { state, after, limit = 100 }: { state: StoredJob['state']; after?: string; limit?: number },
): Promise<StoredJob[]> {
  if (!Number.isInteger(limit) || limit < 1 || limit > 1_000)
    throw new Error('limit must be a whole number from 1 to 1000');
  const prefix = ORDER_PREFIX[state];
  const last = after === undefined ? undefined : await readJob(ctx.store, address, after);
  if (after !== undefined && last?.state !== state)
    throw new Error(`there is no ${state} job ${after} to continue after`);
  const entries = await ctx.store.range(jobsPartition(address), {
    prefix,
    after: last === undefined ? undefined : `${prefix}${last.dueAt}~${last.id}`,
    limit,
  });
  const jobs = await Promise.all(entries.map(({ key }) => readJob(ctx.store, address, parseOrderKey(key).id)));
  return jobs.filter((job) => job?.state === state) as StoredJob[];
}

/** A group of jobs of a queue of a plugin, and how many there are. */
export interface JobGroup extends QueueAddress {
  readonly group: string;
  readonly counts: JobCounts;
}

/** The groups that contain jobs: of all plugins, or of one queue in one environment. Cached until any queue changes. */
export async function jobGroups(ctx: Context, prefix = ''): Promise<readonly JobGroup[]> {
  return ctx.store.cached(`job groups ${prefix}`, [PLUGIN_QUEUES], async () =>
    (await readRecords<JobCounts>(ctx.store, PLUGIN_QUEUES, { prefix })).map(({ key, value }) => groupOf(key, value)),
  );
}

/** The number of jobs of a queue in an environment. */
export async function countJobs(ctx: Context, { plugin, queue, environmentId }: QueueAddress): Promise<JobCounts> {
  let [waiting, dead] = [0, 0];
  for (const { counts } of await jobGroups(ctx, `${plugin}~${queue}~${environmentId}~`)) {
    waiting += counts.waiting;
    dead += counts.dead;
  }
  return { waiting, dead };
}

function groupOf(key: string, counts: JobCounts): JobGroup {
  const [plugin = '', queue = '', environmentId = '', group = ''] = key.split('~');
  return { plugin, queue, environmentId, group, counts };
}

/**
 * The ids of the waiting jobs of a group that come first, with the times when they are due.
 *
 * @param from returns those due at this time or later only. If undefined, returns the first ones, which are cached
 *   until the queue changes
 */
export async function nextJobs(
  ctx: Context,
  group: JobGroup,
  limit: number,
  from?: string,
): Promise<readonly { dueAt: string; id: string }[]> {
  const partition = jobsPartition(group);
  const prefix = groupPrefix(group.group);
  const read = async (after?: string): Promise<{ dueAt: string; id: string }[]> =>
    (await ctx.store.range(partition, { prefix, after, limit })).map(({ key }) => parseOrderKey(key));
  if (from !== undefined) return read(`${prefix}${from}`);
  return ctx.store.cached(`next jobs ${partition} ${group.group} ${limit}`, [partition], () => read());
}
