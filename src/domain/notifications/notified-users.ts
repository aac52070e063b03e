import type { Reader, Transaction } from '../../ports/store.ts';
import { notifiedOf } from '../records/partitions.ts';
import { putRecord, readRecord, readRecords } from '../records/record.ts';

// Who was notified of each comment, so that an edit notifies nobody twice, a repeated event nobody again, and the
// removal of a comment finds its notifications. A record is written in the commit of the notifications that it names.

/** Users whom one event about a comment notified. */
export interface NotifiedUsers {
  /** `createdAt` of their notifications. */
  readonly at: string;
  readonly users: readonly string[];
  /** Those of them whose notification is for a mention; absent in records of earlier versions, where all may be. */
  readonly mentioned?: readonly string[];
  /**
   * Those of them whose notification an edit withdrew, each with the position of its event: they may be notified again.
   */
  readonly withdrawn?: readonly { readonly userId: string; readonly seq: number }[];
}

/** The most users in one record. */
export const USERS_PER_RECORD = 500;

/** A record about a comment, and its key. */
export interface NotifiedEntry extends NotifiedUsers {
  readonly key: string;
}

/**
 * The key of a record of the users whom an event about a comment notified.
 *
 * @param seq the position of the event; 0 for a notification that was imported, which has no event
 * @param part the number of the record among those of the event, from 0; for an imported notification, the `escapeId`
 *   of its user
 */
export function notifiedKey(commentId: string, seq: number, part: number | string): string {
  return `${commentId}~${seq}~${part}`;
}

/** The id of the comment in a key of `notifiedKey`. */
export function commentOfKey(key: string): string {
  return key.slice(0, key.indexOf('~'));
}

/** The position of the event in a key of `notifiedKey`. */
export function seqOfKey(key: string): number {
  return Number(key.split('~')[1]);
}

/** Whether an event before position `seq` withdrew the notification of a user in a record. */
export function isWithdrawn({ withdrawn = [] }: NotifiedUsers, userId: string, seq: number): boolean {
  return withdrawn.some((entry) => entry.userId === userId && entry.seq < seq);
}

/** All records about a comment. */
export async function readNotified(
  reader: Pick<Reader, 'range'>,
  environmentId: string,
  threadId: string,
  commentId: string,
): Promise<NotifiedEntry[]> {
  const partition = notifiedOf(environmentId, threadId);
  const records = await readRecords<NotifiedUsers>(reader, partition, { prefix: `${commentId}~` });
  return records.map(({ key, value }) => ({ key, ...value }));
}

/** The record with this key; undefined if there is none. */
export function readNotifiedUsers(
  reader: Pick<Reader, 'get'>,
  environmentId: string,
  threadId: string,
  key: string,
): Promise<NotifiedUsers | undefined> {
  return readRecord<NotifiedUsers>(reader, notifiedOf(environmentId, threadId), key);
}

/** Writes a record, which replaces one with the same key. */
export function putNotified(
  tx: Transaction,
  environmentId: string,
  threadId: string,
  key: string,
  notified: NotifiedUsers,
): void {
  putRecord(tx, notifiedOf(environmentId, threadId), key, notified);
}
