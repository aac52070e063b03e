import { newId, newShortId, TIME_LENGTH, timeKey } from '../../lib/ids.ts';
import type { Transaction } from '../../ports/store.ts';
import { COMMENT_PREFIX, commentIndexOf, threadRecordsOf } from '../records/partitions.ts';

/** Where a comment is stored. */
export interface CommentLocation {
  readonly partition: string;
  /** `c/<time>~<rest>`, so that the comments of a thread are in the order of their creation. */
  readonly key: string;
}

/** `th_` and 20 characters, as `newId` makes them. */
const GENERATED_THREAD_ID = /^th_([0-9a-z]{20})$/;
/** The same 20 characters, then the comment's own 16, which begin with its time. */
const GENERATED_COMMENT_ID = /^cm_([0-9a-z]{20})_([0-9a-z]{16})$/;
/** What follows the time in the key of a self-locating comment; ids that a client chooses are longer. */
const GENERATED_REST_LENGTH = 16 - TIME_LENGTH;

/**
 * The id and place of a new comment. The ids that we make say where the comment is stored, so that most comments need no
 * index: that record would be a third of what writing one costs.
 *
 * @param now its `createdAt` in milliseconds
 * @param chosenId the id that the client chose, if it did
 */
export function newLocation(tx: Transaction, environmentId: string, threadId: string, now: number, chosenId: string | undefined): CommentLocation & { id: string } {
  const partition = threadRecordsOf(environmentId, threadId);
  const thread = chosenId === undefined ? GENERATED_THREAD_ID.exec(threadId)?.[1] : undefined;
  if (thread !== undefined) {
    const own = newShortId('', now);
    return { id: `cm_${thread}_${own}`, partition, key: generatedKey(own) };
  }
  const id = chosenId ?? newId('cm_', now);
  const key = `${COMMENT_PREFIX}${timeKey(now)}~${id}`;
  tx.put(commentIndexOf(environmentId), id, `${threadId} ${key}`);
  return { id, partition, key };
}

/** Undoes what `newPlace` wrote to make a comment findable. */
export function deleteLocation(tx: Transaction, environmentId: string, key: string): void {
  const rest = key.slice(key.indexOf('~') + 1);
  if (rest.length > GENERATED_REST_LENGTH) tx.delete(commentIndexOf(environmentId), rest);
}

/** Where a comment would be stored; undefined for an id that can't be one. Whether it is there, the caller must see. */
export async function findLocation(reader: Pick<Transaction, 'get'>, environmentId: string, commentId: string): Promise<CommentLocation | undefined> {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(commentId)) return undefined;
  const indexed = await reader.get(commentIndexOf(environmentId), commentId);
  if (indexed === undefined) return decodeCommentId(environmentId, commentId);
  const space = indexed.indexOf(' ');
  return { partition: threadRecordsOf(environmentId, indexed.slice(0, space)), key: indexed.slice(space + 1) };
}

/** The location that an id of our own making names; undefined for any other id. */
export function decodeCommentId(environmentId: string, commentId: string): CommentLocation | undefined {
  const [, thread, own] = GENERATED_COMMENT_ID.exec(commentId) ?? [];
  if (thread === undefined || own === undefined) return undefined;
  return { partition: threadRecordsOf(environmentId, `th_${thread}`), key: generatedKey(own) };
}

function generatedKey(own: string): string {
  return `${COMMENT_PREFIX}${own.slice(0, TIME_LENGTH)}~${own.slice(TIME_LENGTH)}`;
}
