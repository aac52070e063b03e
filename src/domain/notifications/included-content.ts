import type { Comment } from '../../model/comment.ts';
import type { Notification } from '../../model/notification.ts';
import type { Actor } from '../access/actor.ts';
import { findLocation } from '../comments/comment-location.ts';
import { threadViewOrNull } from '../comments/thread-view.ts';
import type { Context } from '../context.ts';

/** The most notifications of a page that has what they are about: a comment may be long. */
export const MAX_WITH_CONTENT = 100;

/**
 * Adds `comments` and `threads` to the JSON of a page of notifications: the comments that they are about, and their
 * threads, by id. What was deleted, or left the rooms of the actor, is absent. The caller has checked that the actor
 * may read the page.
 */
export async function withContent(ctx: Context, { environment, rooms }: Actor, text: string): Promise<string> {
  const { items } = JSON.parse(text) as { readonly items: readonly Notification[] };
  const threads: string[] = [];
  const comments: string[] = [];
  const known = new Set<string>();
  for (const threadId of new Set(items.map((item) => item.threadId))) {
    const view = await threadViewOrNull(ctx, environment.id, threadId);
    if (view === null || (rooms !== null && !items.some(({ roomId }) => roomId === view.thread.roomId))) continue;
    known.add(threadId);
    threads.push(`${JSON.stringify(threadId)}:${view.text}`);
  }
  for (const { commentId, threadId } of items) {
    const location = known.has(threadId) ? await findLocation(ctx.store, environment.id, commentId) : undefined;
    const comment = location === undefined ? undefined : await ctx.store.get(location.partition, location.key);
    // Another comment may have a chosen id since, in another thread.
    if (comment === undefined || (JSON.parse(comment) as Comment).threadId !== threadId) continue;
    comments.push(`${JSON.stringify(commentId)}:${comment}`);
  }
  return `${text.slice(0, -1)},"comments":{${comments.join(',')}},"threads":{${threads.join(',')}}}`;
}
