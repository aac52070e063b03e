import { ID_PATTERN } from '../../model/id.ts';
import { newId, newShortId, TIME_LENGTH, timeKey } from '../../lib/ids.ts';
import type { Transaction } from '../../ports/store.ts';
import { COMMENT_PREFIX, commentIndexOf, threadRecordsOf } from '../records/partitions.ts';

/** Where a comment is stored. */
export interface CommentLocation {
  readonly partition: string;
  /** `c/<time>~<rest>`, which orders the comments of a thread by creation time. */
  readonly key: string;
}

/** `th_` and 20 characters, as `newId` generates them. */
const GENERATED_THREAD_ID = /^th_([0-9a-z]{20})$/;
/** The 20 characters of the thread, then 16 of the comment, which begin with its time. */
const GENERATED_COMMENT_ID = /^cm_([0-9a-z]{20})_([0-9a-z]{16})$/;
/** Characters after the time in the key of a comment with a generated id. Ids that a client chooses are longer. */
const GENERATED_REST_LENGTH = 16 - TIME_LENGTH;

/**
 * The id and location of a new comment. A generated id encodes the location, so that most comments need no index entry,
 * which would be a third of the cost of writing a comment. Other comments get an index entry in the transaction.
 *
 * @param now its `createdAt` in milliseconds since the epoch
 * @param chosenId the id that the client chose, if any
 */
export function newLocation(
  tx: Transaction,
  environmentId: string,
  threadId: string,
  now: number,
  chosenId: string | undefined,
): CommentLocation & { id: string } {
  const partition = threadRecordsOf(environmentId, threadId);
  const threadPart = chosenId === undefined ? GENERATED_THREAD_ID.exec(threadId)?.[1] : undefined;
  if (threadPart !== undefined) {
    const commentPart = newShortId('', now);
    return { id: generatedId(threadPart, commentPart), partition, key: generatedKey(commentPart) };
  }
  const id = chosenId ?? newId('cm_', now);
  const key = `${COMMENT_PREFIX}${timeKey(now)}~${id}`;
  tx.put(commentIndexOf(environmentId), id, `${threadId} ${key}`);
  return { id, partition, key };
}

/** A generated id for a comment of a thread, which encodes its location if the id of the thread is generated too. */
export function newCommentId(threadId: string, now: number): string {
  const threadPart = GENERATED_THREAD_ID.exec(threadId)?.[1];
  return threadPart === undefined ? newId('cm_', now) : generatedId(threadPart, newShortId('', now));
}

/** Deletes the index entry that `newLocation` wrote for the comment with this key, if it did. */
export function deleteLocation(tx: Transaction, environmentId: string, key: string): void {
  const rest = key.slice(key.indexOf('~') + 1);
  if (rest.length > GENERATED_REST_LENGTH) tx.delete(commentIndexOf(environmentId), rest);
}

/** The location of the comment with this id, whether it exists or not; undefined for an id that no comment can have. */
export async function findLocation(
  reader: Pick<Transaction, 'get'>,
  environmentId: string,
  commentId: string,
): Promise<CommentLocation | undefined> {
  if (!ID_PATTERN.test(commentId)) return undefined;
  const indexed = await reader.get(commentIndexOf(environmentId), commentId);
  if (indexed === undefined) return decodeCommentId(environmentId, commentId);
  const space = indexed.indexOf(' ');
  return { partition: threadRecordsOf(environmentId, indexed.slice(0, space)), key: indexed.slice(space + 1) };
}

/**
 * The location of a comment that exists or has existed. Unlike `findLocation`, it reads the index only for an id that
 * does not encode the location.
 */
export async function locationOf(
  reader: Pick<Transaction, 'get'>,
  environmentId: string,
  commentId: string,
): Promise<CommentLocation | undefined> {
  const decoded = decodeCommentId(environmentId, commentId);
  if (decoded !== undefined && (await reader.get(decoded.partition, decoded.key)) !== undefined) return decoded;
  return findLocation(reader, environmentId, commentId);
}

/** The location that a generated comment id encodes; undefined for any other id. */
export function decodeCommentId(environmentId: string, commentId: string): CommentLocation | undefined {
  const [, threadPart, commentPart] = GENERATED_COMMENT_ID.exec(commentId) ?? [];
  if (threadPart === undefined || commentPart === undefined) return undefined;
  return { partition: threadRecordsOf(environmentId, `th_${threadPart}`), key: generatedKey(commentPart) };
}

function generatedId(threadPart: string, commentPart: string): string {
  return `cm_${threadPart}_${commentPart}`;
}

function generatedKey(commentPart: string): string {
  return `${COMMENT_PREFIX}${commentPart.slice(0, TIME_LENGTH)}~${commentPart.slice(TIME_LENGTH)}`;
}
