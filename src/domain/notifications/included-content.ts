import type { Comment } from '../../model/comment.ts';
import type { Notification } from '../../model/notification.ts';
import type { Thread } from '../../model/thread.ts';
import type { Actor } from '../access/actor.ts';
import { findLocation } from '../comments/comment-location.ts';
import { threadViewOrNull } from '../comments/thread-view.ts';
import type { Context } from '../context.ts';
import { addToAnswer, parseAnswer } from '../lists/answer-text.ts';
import { readRecord } from '../records/record.ts';

/** The most notifications of a page that has what they are about: a comment may be long. */
export const MAX_WITH_CONTENT = 100;

/**
 * Adds `comments` and `threads` to the JSON of a page of notifications: the comments that they are about, and their
 * threads, by id. What was deleted, or left the rooms of the actor, is absent. The caller has checked that the actor
 * may read the page.
 */
export async function withContent(ctx: Context, { environment, rooms }: Actor, text: string): Promise<string> {
  const { items } = parseAnswer<{ readonly items: readonly Notification[] }>(text);
  const threads: [string, Thread][] = [];
  const comments: [string, Comment][] = [];
  const known = new Set<string>();
  for (const threadId of new Set(items.map((item) => item.threadId))) {
    const view = await threadViewOrNull(ctx, environment.id, threadId);
    if (view === null || (rooms !== null && !items.some(({ roomId }) => roomId === view.thread.roomId))) continue;
    known.add(threadId);
    threads.push([threadId, view.thread]);
  }
  for (const { commentId, threadId } of items) {
    const location = known.has(threadId) ? await findLocation(ctx.store, environment.id, commentId) : undefined;
    const comment =
      location === undefined ? undefined : await readRecord<Comment>(ctx.store, location.partition, location.key);
    // Another comment may have a chosen id since, in another thread.
    if (comment?.threadId === threadId) comments.push([commentId, comment]);
  }
  return addToAnswer(text, { comments: Object.fromEntries(comments), threads: Object.fromEntries(threads) });
}
