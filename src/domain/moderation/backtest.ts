import { timeKey } from '../../lib/ids.ts';
import type { Comment } from '../../model/comment.ts';
import type { Environment } from '../../model/environments/environment.ts';
import type { ThreadRecord } from '../../model/thread.ts';
import type { FilterActor } from '../../model/filter.ts';
import type { FilterOutcome, Filters } from '../../ports/filters.ts';
import type { Store } from '../../ports/store.ts';
import type { Context } from '../context.ts';
import { COMMENT_PREFIX, THREAD_KEY, threadRecordsOf } from '../records/partitions.ts';
import { readRecord } from '../records/record.ts';
import { scanEntries, scanPartitions } from '../records/scan.ts';

/** Which comments to test. */
export interface BacktestOptions {
  /** Only comments that were written at this ISO 8601 time or later; all if null. */
  readonly since: string | null;
  /** The most comments to test: the latest ones. */
  readonly limit: number;
  /**
   * Called before each comment with the time at which it was written, in milliseconds since the epoch: the time that
   * filters are to see.
   */
  readonly setTime: (ms: number) => void;
}

/** A stored comment, and what the filters would have decided on it. */
export interface BacktestResult {
  readonly roomId: string;
  readonly comment: Comment;
  readonly outcome: FilterOutcome;
}

/** Where a comment is stored. */
interface Place {
  readonly partition: string;
  readonly key: string;
  readonly startsThread: boolean;
}

/**
 * Runs the filters over the stored comments of an environment, one after the other in the order of their creation, as
 * if their authors wrote them at that time with a token. Changes nothing; filters that count what users write count
 * these comments in this process.
 */
export async function* backtest(
  { store }: Context,
  filters: Filters,
  environment: Environment,
  { since, limit, setTime }: BacktestOptions,
): AsyncIterable<BacktestResult> {
  for (const { partition, key, startsThread } of await findLatest(store, environment.id, since, limit)) {
    const thread = await readRecord<ThreadRecord>(store, partition, THREAD_KEY);
    const comment = await readRecord<Comment>(store, partition, key);
    if (thread === undefined || comment === undefined) continue;
    setTime(Date.parse(comment.createdAt));
    yield {
      roomId: thread.roomId,
      comment,
      outcome: await outcomeOf(filters, environment, thread, comment, startsThread),
    };
  }
}

/** The places of the latest comments since a time, in the order of their creation. */
async function findLatest(
  store: Store,
  environmentId: string,
  since: string | null,
  limit: number,
): Promise<readonly Place[]> {
  const first = since === null ? COMMENT_PREFIX : COMMENT_PREFIX + timeKey(Date.parse(since));
  let found: Place[] = [];
  for await (const partition of scanPartitions(store, threadRecordsOf(environmentId, ''))) {
    let startsThread = true;
    for await (const { key } of scanEntries(store, partition, COMMENT_PREFIX)) {
      if (key >= first) found.push({ partition, key, startsThread });
      startsThread = false;
      if (found.length >= 2 * limit) found = latestOf(found, limit);
    }
  }
  return latestOf(found, limit);
}

/** The last of some places in the order of their keys, which begin with the time of the comment. */
function latestOf(places: readonly Place[], limit: number): Place[] {
  return places.toSorted((a, b) => (a.key < b.key ? -1 : 1)).slice(-limit);
}

function outcomeOf(
  filters: Filters,
  environment: Environment,
  { roomId, position, metadata }: ThreadRecord,
  comment: Comment,
  startsThread: boolean,
): Promise<FilterOutcome> {
  const { userId, body, mentions, threadId } = comment;
  const actor: FilterActor = { kind: 'user', userId, role: 'member' };
  const filtered = {
    userId,
    body,
    mentions,
    metadata: comment.metadata,
    attachmentIds: comment.attachments.map(({ id }) => id),
  };
  if (startsThread)
    return filters.run('thread.create', environment, actor, { roomId, position, metadata, comment: filtered });
  return filters.run('comment.create', environment, actor, { roomId, threadId, comment: filtered });
}
