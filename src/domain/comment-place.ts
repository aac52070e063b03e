import { timestamp } from '../lib/clock.ts';
import { newShortId, timeOfId } from '../lib/ids.ts';
import type { Transaction } from '../ports/store.ts';
import { commentIndexOf, commentKey, threadOf } from './partitions.ts';

/** Where a comment is stored. */
export interface CommentPlace {
  readonly partition: string;
  readonly key: string;
}

/** `th_` and 26 characters, as `newId` makes them. */
const OUR_THREAD = /^th_([0-9a-z]{26})$/;
/** The same 26 characters, then the comment's own 20, which begin with its time. */
const SELF_LOCATING = /^cm_([0-9a-z]{26})_([0-9a-z]{20})$/;

/**
 * An id for a comment of a thread, made at `now`, which is also its `createdAt`. It says where the comment is stored,
 * so that most comments need no index: that record and its page would be a third of what writing one costs.
 */
export function newCommentId(threadId: string, now: number): string {
  const thread = OUR_THREAD.exec(threadId)?.[1];
  return newShortId(thread === undefined ? 'cm_' : `cm_${thread}_`, now);
}

/** Makes a comment findable by its id. `chosen`: the client chose the id, which may look like any of ours. */
export function rememberPlace(tx: Transaction, environmentId: string, comment: { id: string; threadId: string; createdAt: string }, chosen: boolean): void {
  if (!chosen && SELF_LOCATING.test(comment.id)) return;
  tx.put(commentIndexOf(environmentId), comment.id, `${comment.threadId} ${commentKey(comment.createdAt, comment.id)}`);
}

/** Undoes `rememberPlace`. */
export async function forgetPlace(tx: Transaction, environmentId: string, commentId: string): Promise<void> {
  const index = commentIndexOf(environmentId);
  if ((await tx.get(index, commentId)) !== undefined) tx.delete(index, commentId);
}

/** Where a comment would be stored; undefined for an id that can't be one. Whether it is there, the caller must see. */
export async function findPlace(reader: Pick<Transaction, 'get'>, environmentId: string, commentId: string): Promise<CommentPlace | undefined> {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(commentId)) return undefined;
  const indexed = await reader.get(commentIndexOf(environmentId), commentId);
  if (indexed !== undefined) {
    const space = indexed.indexOf(' ');
    return { partition: threadOf(environmentId, indexed.slice(0, space)), key: indexed.slice(space + 1) };
  }
  const [, thread, own] = SELF_LOCATING.exec(commentId) ?? [];
  if (thread === undefined || own === undefined) return undefined;
  return { partition: threadOf(environmentId, `th_${thread}`), key: commentKey(timestamp(timeOfId(own)), commentId) };
}
