import type { Job } from '../../model/job.ts';
import type { Transaction } from '../../ports/store.ts';
import { PLUGIN_QUEUES, pluginJobsOf } from '../records/partitions.ts';
import { parseRecord, putRecord } from '../records/record.ts';

/** Identifies a queue of a plugin in an environment. */
export interface QueueAddress {
  readonly environmentId: string;
  readonly plugin: string;
  readonly queue: string;
}

/** A job as it is stored. During an attempt, `dueAt` is when its lease ends. */
export interface StoredJob extends Job {
  /** '' for none. */
  readonly group: string;
  /** Whether an attempt has begun and not ended. */
  readonly leased?: true;
}

/** The number of jobs of a group by state. */
export interface JobCounts {
  readonly waiting: number;
  readonly dead: number;
}

/** The partition of the jobs of a queue. */
export const jobsPartition = ({ environmentId, plugin, queue }: QueueAddress): string =>
  pluginJobsOf(environmentId, plugin, queue);

/** The key of a job. */
export const jobKey = (id: string): string => `j/${id}`;
/** Prefix of the keys that order the jobs of a state by `dueAt`. */
export const ORDER_PREFIX: Readonly<Record<StoredJob['state'], string>> = { waiting: 'w/', dead: 'd/' };
/** Prefix of the keys that order the waiting jobs of a group by `dueAt`. */
export const groupPrefix = (group: string): string => `g/${group}/`;

const orderKey = ({ state, dueAt, id }: StoredJob): string => `${ORDER_PREFIX[state]}${dueAt}~${id}`;
const groupKey = ({ group, dueAt, id }: StoredJob): string => `${groupPrefix(group)}${dueAt}~${id}`;

/** The parts of a key under `ORDER_PREFIX` or `groupPrefix`: the `dueAt` of the job, and its id. */
export function parseOrderKey(key: string): { dueAt: string; id: string } {
  const at = key.lastIndexOf('/') + 1;
  const tilde = key.indexOf('~', at);
  return { dueAt: key.slice(at, tilde), id: key.slice(tilde + 1) };
}

/** Replaces a job, or adds (`before` undefined) or removes it (`after` undefined), with its indexes and counts. */
export function writeJob(
  tx: Transaction,
  address: QueueAddress,
  before: StoredJob | undefined,
  after: StoredJob | undefined,
): void {
  const partition = jobsPartition(address);
  if (before !== undefined) {
    tx.delete(partition, orderKey(before));
    if (before.state === 'waiting') tx.delete(partition, groupKey(before));
    if (after === undefined) tx.delete(partition, jobKey(before.id));
  }
  if (after !== undefined) {
    putRecord(tx, partition, jobKey(after.id), after);
    tx.put(partition, orderKey(after), '1');
    if (after.state === 'waiting') tx.put(partition, groupKey(after), '1');
  }
  if (before?.state !== after?.state)
    count(tx, address, (after ?? before)?.group ?? '', { [before?.state ?? '']: -1, [after?.state ?? '']: 1 });
}

/** The key of the counts of a group in `PLUGIN_QUEUES`. */
export const countsKey = ({ environmentId, plugin, queue }: QueueAddress, group: string): string =>
  `${plugin}~${queue}~${environmentId}~${group}`;

function count(tx: Transaction, address: QueueAddress, group: string, change: Partial<Record<string, number>>): void {
  tx.update(PLUGIN_QUEUES, countsKey(address, group), (current) => {
    const { waiting, dead } = current === undefined ? { waiting: 0, dead: 0 } : parseRecord<JobCounts>(current);
    const counts: JobCounts = { waiting: waiting + (change['waiting'] ?? 0), dead: dead + (change['dead'] ?? 0) };
    return counts.waiting <= 0 && counts.dead <= 0 ? undefined : JSON.stringify(counts);
  });
}
