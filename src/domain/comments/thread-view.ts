import { CollabError } from '../../model/errors.ts';
import type { Comment } from '../../model/comment.ts';
import { parseThreadStats, presentThread, type Thread, type ThreadRecord } from '../../model/thread.ts';
import { requireRoomAccess } from '../access/access.ts';
import type { Actor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { COMMENT_PREFIX, STATS_KEY, THREAD_KEY, threadRecordsOf } from '../records/partitions.ts';

/** A thread as it is shown, and as the JSON text of that. */
export interface ThreadView {
  readonly thread: Thread;
  readonly text: string;
}

/** Who wrote in a thread, and whom its comments mention. */
export interface ThreadUsers {
  readonly participants: ReadonlySet<string>;
  readonly mentioned: ReadonlySet<string>;
}

/** The refusal of an unknown thread. */
export const threadNotFound = (): CollabError => new CollabError('thread_not_found', 'Thread not found');

/** The partition of a thread; throws `thread_not_found` for text that can't be the id of one. */
export function threadPartition(environmentId: string, threadId: string): string {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(threadId)) throw threadNotFound();
  return threadRecordsOf(environmentId, threadId);
}

/** A thread as it is now; rendered once per change. Throws `thread_not_found`. */
export async function threadView(ctx: Context, environmentId: string, threadId: string): Promise<ThreadView> {
  const partition = threadPartition(environmentId, threadId);
  return ctx.store.cached(`view ${partition}`, [partition], async () => {
    const record = await ctx.store.get(partition, THREAD_KEY);
    const stats = await ctx.store.get(partition, STATS_KEY);
    if (record === undefined || stats === undefined) throw threadNotFound();
    const thread = presentThread(JSON.parse(record) as ThreadRecord, parseThreadStats(stats));
    return { thread, text: JSON.stringify(thread) };
  });
}

/** As `threadView`, and null where there is no such thread. */
export async function threadViewOrNull(ctx: Context, environmentId: string, threadId: string): Promise<ThreadView | null> {
  try {
    return await threadView(ctx, environmentId, threadId);
  } catch (thrown) {
    if (thrown instanceof CollabError && thrown.code === 'thread_not_found') return null;
    throw thrown;
  }
}

/** Comments read at once: with the longest texts some megabytes. */
const SLICE = 200;

/** The comments of a thread in their order, as one JSON array; null when that is longer than `most` characters. */
export async function commentsText(ctx: Context, partition: string, most: number): Promise<string | null> {
  const texts: string[] = [];
  let chars = 0;
  for await (const slice of commentSlices(ctx, partition)) {
    for (const text of slice) {
      texts.push(text);
      chars += text.length + 1;
    }
    if (chars > most) return null;
  }
  return `[${texts.join(',')}]`;
}

/** Who takes part in a thread, read from its comments once per change. */
export async function threadUsers(ctx: Context, environmentId: string, threadId: string): Promise<ThreadUsers> {
  const partition = threadPartition(environmentId, threadId);
  return ctx.store.cached(`people ${partition}`, [partition], async () => {
    const participants = new Set<string>();
    const mentioned = new Set<string>();
    for await (const slice of commentSlices(ctx, partition)) {
      for (const text of slice) {
        const { userId, mentions } = JSON.parse(text) as Comment;
        participants.add(userId);
        for (const mention of mentions) mentioned.add(mention);
      }
    }
    return { participants, mentioned };
  });
}

/** The texts of the comments of a thread in their order, in slices, so that a long thread is never in memory as a whole. */
async function* commentSlices(ctx: Context, partition: string): AsyncIterable<string[]> {
  for (let after: string | undefined; ; ) {
    const slice = await ctx.store.range(partition, { prefix: COMMENT_PREFIX, after, limit: SLICE });
    yield slice.map(({ value }) => value);
    if (slice.length < SLICE) return;
    after = slice.at(-1)?.key;
  }
}

/**
 * Throws `forbidden` when the actor is confined to rooms and the thread is in another, before anything else about the
 * request is looked at. A thread that doesn't exist passes: the work itself finds that.
 */
export async function requireThreadAccess(ctx: Context, actor: Actor, threadId: string): Promise<void> {
  if (actor.rooms === null) return;
  const record = await ctx.store.get(threadPartition(actor.environment.id, threadId), THREAD_KEY);
  if (record !== undefined) requireRoomAccess(actor, (JSON.parse(record) as ThreadRecord).roomId);
}
