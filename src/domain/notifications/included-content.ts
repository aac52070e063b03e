import type { Comment } from '../../model/comment.ts';
import type { Notification } from '../../model/notification.ts';
import type { Actor } from '../access/actor.ts';
import { findLocation } from '../comments/comment-location.ts';
import { threadViewOrNull } from '../comments/thread-view.ts';
import type { Context } from '../context.ts';
import { addMembers, parseAnswer } from '../lists/answer-text.ts';
import { parseRecord } from '../records/record.ts';

/** The most notifications of a page that has what they are about: a comment may be long. */
export const MAX_WITH_CONTENT = 100;

/**
 * Adds `comments` and `threads` to the JSON of a page of notifications: the comments that they are about, and their
 * threads, by id. What was deleted, or left the rooms of the actor, is absent. The caller has checked that the actor
 * may read the page.
 */
export async function withContent(ctx: Context, { environment, rooms }: Actor, text: string): Promise<string> {
  const { items } = parseAnswer<{ readonly items: readonly Notification[] }>(text);
  const threads = new Map<string, string>();
  const comments = new Map<string, string>();
  for (const threadId of new Set(items.map((item) => item.threadId))) {
    const view = await threadViewOrNull(ctx, environment.id, threadId);
    if (view === null || (rooms !== null && !items.some(({ roomId }) => roomId === view.thread.roomId))) continue;
    threads.set(threadId, view.text);
  }
  for (const { commentId, threadId } of items) {
    const location = threads.has(threadId) ? await findLocation(ctx.store, environment.id, commentId) : undefined;
    const value = location === undefined ? undefined : await ctx.store.get(location.partition, location.key);
    // Another comment may have a chosen id since, in another thread.
    if (value !== undefined && parseRecord<Comment>(value).threadId === threadId) comments.set(commentId, value);
  }
  return addMembers(text, `"comments":${objectOf(comments)},"threads":${objectOf(threads)}`);
}

/** A JSON object of texts that are rendered already. */
function objectOf(texts: ReadonlyMap<string, string>): string {
  return `{${[...texts].map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`;
}
