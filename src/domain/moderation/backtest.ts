import type { Comment } from '../../model/comment.ts';
import type { Environment } from '../../model/environment.ts';
import type { ThreadRecord } from '../../model/thread.ts';
import type { FilterActor, FilterOutcome, Filters } from '../../ports/filters.ts';
import type { Context } from '../context.ts';
import { COMMENT_PREFIX, THREAD_KEY, threadRecordsOf } from '../records/partitions.ts';
import { scanEntries, scanPartitions } from '../records/scan.ts';

/** Which comments to test. */
export interface BacktestOptions {
  /** Only comments that were written at this ISO 8601 time or later; all if null. */
  readonly since: string | null;
  /** The most comments to test. */
  readonly limit: number;
}

/** A stored comment, and what the filters would have decided on it. */
export interface BacktestResult {
  readonly roomId: string;
  readonly comment: Comment;
  readonly outcome: FilterOutcome;
}

/**
 * Runs the filters over the stored comments of an environment, as if their authors wrote them now with a token, thread by
 * thread. Changes nothing; filters that count what users write count these comments in this process.
 */
export async function* backtest({ store }: Context, filters: Filters, environment: Environment, { since, limit }: BacktestOptions): AsyncIterable<BacktestResult> {
  let tested = 0;
  for await (const partition of scanPartitions(store, threadRecordsOf(environment.id, ''))) {
    const stored = await store.get(partition, THREAD_KEY);
    if (stored === undefined) continue;
    const thread = JSON.parse(stored) as ThreadRecord;
    let isFirst = true;
    for await (const { value } of scanEntries(store, partition, COMMENT_PREFIX)) {
      const comment = JSON.parse(value) as Comment;
      const startsThread = isFirst;
      isFirst = false;
      if (since !== null && comment.createdAt < since) continue;
      if (tested++ >= limit) return;
      yield { roomId: thread.roomId, comment, outcome: await outcomeOf(filters, environment, thread, comment, startsThread) };
    }
  }
}

function outcomeOf(filters: Filters, environment: Environment, { roomId, position, metadata }: ThreadRecord, comment: Comment, startsThread: boolean): Promise<FilterOutcome> {
  const { userId, body, mentions, threadId } = comment;
  const actor: FilterActor = { kind: 'user', userId, role: 'member' };
  const filtered = { userId, body, mentions, metadata: comment.metadata, attachmentIds: comment.attachments.map(({ id }) => id) };
  if (startsThread) return filters.run('thread.create', environment, actor, { roomId, position, metadata, comment: filtered });
  return filters.run('comment.create', environment, actor, { roomId, threadId, comment: filtered });
}
