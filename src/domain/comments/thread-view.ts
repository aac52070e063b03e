import { ID_PATTERN } from '../../model/id.ts';
import { BoundedMap } from '../../lib/bounded-map.ts';
import { CollabError } from '../../model/errors.ts';
import type { Comment } from '../../model/comment.ts';
import { parseThreadStats, presentThread, type Thread, type ThreadRecord } from '../../model/thread.ts';
import type { Entry } from '../../ports/store.ts';
import { requireRoomAccess } from '../access/access.ts';
import type { Actor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { COMMENT_PREFIX, STATS_KEY, THREAD_KEY, threadRecordsOf } from '../records/partitions.ts';
import { parseRecord } from '../records/record.ts';
import { scanSlices } from '../records/scan.ts';

/** The public view of a thread, and its JSON text. */
export interface ThreadView {
  readonly thread: Thread;
  readonly text: string;
}

/** The ids of the authors in a thread, and of the users that its comments mention. */
export interface ThreadUsers {
  readonly participants: ReadonlySet<string>;
  readonly mentioned: ReadonlySet<string>;
}

/** The error for an unknown thread. */
export const threadNotFound = (): CollabError => new CollabError('thread_not_found', 'Thread not found');

/** The partition of a thread. Throws `thread_not_found` for text that cannot be a thread id. */
export function threadPartition(environmentId: string, threadId: string): string {
  if (!ID_PATTERN.test(threadId)) throw threadNotFound();
  return threadRecordsOf(environmentId, threadId);
}

/** Parsed thread records by their JSON text: threads get many comments, and most comments do not change the record. */
const threadRecords = new BoundedMap<string, Readonly<ThreadRecord>>(1_000);

/** Parses a thread record. Throws `thread_not_found` if it is undefined. */
export function parseThread(text: string | undefined): Readonly<ThreadRecord> {
  if (text === undefined) throw threadNotFound();
  const cached = threadRecords.get(text);
  if (cached !== undefined) return cached;
  const record = parseRecord<ThreadRecord>(text);
  threadRecords.set(text, record);
  return record;
}

/** The current view of a thread, rendered once per change. Throws `thread_not_found`. */
export async function threadView(ctx: Context, environmentId: string, threadId: string): Promise<ThreadView> {
  const partition = threadPartition(environmentId, threadId);
  return ctx.store.cached(`view ${partition}`, [partition], async () => {
    const record = await ctx.store.get(partition, THREAD_KEY);
    const stats = await ctx.store.get(partition, STATS_KEY);
    if (stats === undefined) throw threadNotFound();
    const thread = presentThread(parseThread(record), parseThreadStats(stats));
    return { thread, text: JSON.stringify(thread) };
  });
}

/** As `threadView`, but null if the thread does not exist. */
export async function threadViewOrNull(
  ctx: Context,
  environmentId: string,
  threadId: string,
): Promise<ThreadView | null> {
  try {
    return await threadView(ctx, environmentId, threadId);
  } catch (thrown) {
    if (thrown instanceof CollabError && thrown.code === 'thread_not_found') return null;
    throw thrown;
  }
}

/** Comments per read, which are a few megabytes at most. */
const SLICE = 200;

/** The comments of a thread, oldest first, as a JSON array; null if that is longer than `maxChars` UTF-16 units. */
export async function commentsText(ctx: Context, partition: string, maxChars: number): Promise<string | null> {
  const texts: string[] = [];
  let chars = 0;
  for await (const slice of commentSlices(ctx, partition)) {
    for (const { value: text } of slice) {
      texts.push(text);
      chars += text.length + 1;
    }
    if (chars > maxChars) return null;
  }
  return `[${texts.join(',')}]`;
}

/** The users of a thread, read from its comments once per change. */
export async function threadUsers(ctx: Context, environmentId: string, threadId: string): Promise<ThreadUsers> {
  const partition = threadPartition(environmentId, threadId);
  return ctx.store.cached(`users ${partition}`, [partition], async () => {
    const participants = new Set<string>();
    const mentioned = new Set<string>();
    for await (const slice of commentSlices(ctx, partition)) {
      for (const { value: text } of slice) {
        const { userId, mentions } = parseRecord<Comment>(text);
        participants.add(userId);
        for (const mention of mentions) mentioned.add(mention);
      }
    }
    return { participants, mentioned };
  });
}

/** The comments of a thread, oldest first, in slices, so that a long thread is never in memory as a whole. */
function commentSlices(ctx: Context, partition: string): AsyncIterable<readonly Entry[]> {
  return scanSlices(ctx.store, partition, { prefix: COMMENT_PREFIX, limit: SLICE });
}

/**
 * Throws `forbidden` if the actor is confined to rooms and the thread is in another room. Call it before the request is
 * validated. An unknown thread passes; the operation itself reports that.
 */
export async function requireThreadAccess(ctx: Context, actor: Actor, threadId: string): Promise<void> {
  if (actor.rooms === null) return;
  const record = await ctx.store.get(threadPartition(actor.environment.id, threadId), THREAD_KEY);
  if (record !== undefined) requireRoomAccess(actor, parseThread(record).roomId);
}
