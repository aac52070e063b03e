import { newShortId, TIME_LENGTH, timeKey } from '../lib/ids.ts';
import type { Transaction } from '../ports/store.ts';
import { COMMENT_PREFIX, commentIndexOf, threadOf } from './partitions.ts';

/** Where a comment is stored. */
export interface CommentPlace {
  readonly partition: string;
  /** `c/<time>~<rest>`, so that the comments of a thread are in the order of their creation. */
  readonly key: string;
}

/** `th_` and 20 characters, as `newId` makes them. */
const OUR_THREAD = /^th_([0-9a-z]{20})$/;
/** The same 20 characters, then the comment's own 16, which begin with its time. */
const SELF_LOCATING = /^cm_([0-9a-z]{20})_([0-9a-z]{16})$/;
/** What follows the time in the key of a self-locating comment; ids that a client chooses are longer. */
const OWN_REST = 16 - TIME_LENGTH;

/**
 * An id for a comment of a thread, made at `now`, which is also its `createdAt`. It says where the comment is stored,
 * so that most comments need no index: that record would be a third of what writing one costs.
 */
export function newCommentId(threadId: string, now: number): string {
  const thread = OUR_THREAD.exec(threadId)?.[1];
  return newShortId(thread === undefined ? 'cm_' : `cm_${thread}_`, now);
}

/**
 * Gives a new comment its place and makes it findable by its id.
 *
 * @param now its `createdAt` in milliseconds
 * @param chosen whether the client chose the id, which may look like any of ours
 */
export function newPlace(tx: Transaction, environmentId: string, comment: { id: string; threadId: string }, now: number, chosen: boolean): CommentPlace {
  const partition = threadOf(environmentId, comment.threadId);
  if (!chosen) {
    const place = selfLocated(environmentId, comment.id);
    if (place !== undefined) return place;
  }
  const key = `${COMMENT_PREFIX}${timeKey(now)}~${comment.id}`;
  tx.put(commentIndexOf(environmentId), comment.id, `${comment.threadId} ${key}`);
  return { partition, key };
}

/** Undoes what `newPlace` wrote to make a comment findable. */
export function forgetPlace(tx: Transaction, environmentId: string, key: string): void {
  const rest = key.slice(key.indexOf('~') + 1);
  if (rest.length > OWN_REST) tx.delete(commentIndexOf(environmentId), rest);
}

/** Where a comment would be stored; undefined for an id that can't be one. Whether it is there, the caller must see. */
export async function findPlace(reader: Pick<Transaction, 'get'>, environmentId: string, commentId: string): Promise<CommentPlace | undefined> {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(commentId)) return undefined;
  const indexed = await reader.get(commentIndexOf(environmentId), commentId);
  if (indexed === undefined) return selfLocated(environmentId, commentId);
  const space = indexed.indexOf(' ');
  return { partition: threadOf(environmentId, indexed.slice(0, space)), key: indexed.slice(space + 1) };
}

function selfLocated(environmentId: string, commentId: string): CommentPlace | undefined {
  const [, thread, own] = SELF_LOCATING.exec(commentId) ?? [];
  if (thread === undefined || own === undefined) return undefined;
  const key = `${COMMENT_PREFIX}${own.slice(0, TIME_LENGTH)}~${own.slice(TIME_LENGTH)}`;
  return { partition: threadOf(environmentId, `th_${thread}`), key };
}
