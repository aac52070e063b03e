import { hash } from 'node:crypto';
import { ID_PATTERN } from '../../model/id.ts';
import { CollabError } from '../../model/errors.ts';
import type { Comment } from '../../model/comment.ts';
import type { ModerationItem, Report } from '../../model/moderation.ts';
import type { Reader, Transaction } from '../../ports/store.ts';
import type { Actor } from '../access/actor.ts';
import { findLocation } from '../comments/comment-location.ts';
import { removeHeldAttachments } from '../files/attachments.ts';
import { moderationIndexOf, moderationOf, reportsOf } from '../records/partitions.ts';
import { putRecord, readRecord, readRecords } from '../records/record.ts';
import { emitGone } from './notices.ts';

/** The most items of held content that wait for a decision in an environment, and of one user. */
const MAX_HELD = 10_000;
const MAX_HELD_OF_USER = 100;

/** The most reports that an item shows, and the most reports of a comment among which they are found. */
const MAX_SHOWN_REPORTS = 100;
const MAX_READ_REPORTS = 1_000;

/** The keys of `moderationIndexOf`. */
const idKey = (itemId: string): string => `id/${itemId}`;
const roomPrefix = (roomId: string): string => `x/${digest(roomId)}/`;
const targetKey = ({ id, roomId, threadId, commentId }: ModerationItem): string =>
  `${roomPrefix(roomId)}${threadId}/${commentId}/${id}`;
const authorKey = ({ id, userId, createdAt }: ModerationItem): string => `${authorPrefix(userId)}${createdAt}~${id}`;
const roomCountKey = (roomId: string): string => `n/r/${digest(roomId)}`;
const userCountKey = (userId: string): string => `n/u/${digest(userId)}`;
const HELD_COUNT_KEY = 'n/held';
/** A comment id -> id of the held comment or thread that has it; `edit/…` -> held edit; `report/…` -> open report. */
const commentKey = ({ kind, commentId }: Pick<ModerationItem, 'kind' | 'commentId'>): string =>
  `${kind === 'edit' || kind === 'report' ? kind : 'comment'}/${commentId}`;
const threadIdKey = (threadId: string): string => `thread/${threadId}`;

/** The prefix of the items of an author in `moderationIndexOf`, which are in the order of their creation. */
export const authorPrefix = (userId: string): string => `u/${digest(userId)}/`;
/**
 * The prefix of the items of a state in `moderationOf`. Decided ones are in the order of their decision, others in that
 * of their creation.
 */
export const statePrefix = (state: 'held' | 'reported' | 'decided'): string => `${state}/`;

/** Ids of rooms and users are of any length; keys are bounded. */
const digest = (id: string): string => hash('sha256', id, 'base64url');

const isOpen = ({ state }: ModerationItem): boolean => state === 'held' || state === 'reported';
/**
 * Whether the open item is found by its comment: the reports of a deleted one are not, because another comment may get
 * its id.
 */
const isFindable = ({ keptReports }: ModerationItem): boolean => keptReports === undefined;
const keyOf = (item: ModerationItem): string =>
  isOpen(item)
    ? `${item.state}/${item.createdAt}~${item.id}`
    : `decided/${item.decidedAt ?? item.createdAt}~${item.id}`;

/**
 * Adds an item. The commit fails with `quota_exceeded` if too much is held already, unless `unbounded`; the bound per
 * user applies to what users write themselves.
 */
export function putItem(tx: Transaction, environmentId: string, item: ModerationItem, unbounded = false): void {
  const index = moderationIndexOf(environmentId);
  const key = keyOf(item);
  putRecord(tx, moderationOf(environmentId), key, item);
  tx.put(index, idKey(item.id), key);
  tx.put(index, targetKey(item), item.id);
  tx.put(index, authorKey(item), item.id);
  // Deletions of rooms, threads and comments, and erasures of users, read one of these counts, and so conflict with
  // this.
  add(tx, index, roomCountKey(item.roomId), 1);
  if (!isOpen(item)) return;
  if (isFindable(item)) tx.put(index, commentKey(item), item.id);
  if (item.kind === 'thread') tx.put(index, threadIdKey(item.threadId), item.id);
  if (item.state !== 'held') return;
  add(tx, index, HELD_COUNT_KEY, 1, unbounded ? undefined : { most: MAX_HELD, whose: 'the environment' });
  add(
    tx,
    index,
    userCountKey(item.userId),
    1,
    unbounded || item.keyId !== null ? undefined : { most: MAX_HELD_OF_USER, whose: 'a user' },
  );
}

/** Deletes an item, and nothing that it refers to. */
export function deleteItem(tx: Transaction, environmentId: string, item: ModerationItem): void {
  const index = moderationIndexOf(environmentId);
  tx.delete(moderationOf(environmentId), keyOf(item));
  for (const key of [idKey(item.id), targetKey(item), authorKey(item)]) tx.delete(index, key);
  add(tx, index, roomCountKey(item.roomId), -1);
  if (!isOpen(item)) return;
  if (isFindable(item)) tx.delete(index, commentKey(item));
  if (item.kind === 'thread') tx.delete(index, threadIdKey(item.threadId));
  if (item.state !== 'held') return;
  add(tx, index, HELD_COUNT_KEY, -1);
  add(tx, index, userCountKey(item.userId), -1);
}

/** Replaces an item, e.g. by itself with a decision. */
export function replaceItem(
  tx: Transaction,
  environmentId: string,
  item: ModerationItem,
  replacement: ModerationItem,
): void {
  deleteItem(tx, environmentId, item);
  putItem(tx, environmentId, replacement, true);
}

/** The item with this id. A transaction that reads it conflicts with every change of it. */
export async function findItem(
  reader: Pick<Reader, 'get'>,
  environmentId: string,
  itemId: string,
): Promise<ModerationItem | undefined> {
  const key = ID_PATTERN.test(itemId) ? await reader.get(moderationIndexOf(environmentId), idKey(itemId)) : undefined;
  return key === undefined ? undefined : readRecord<ModerationItem>(reader, moderationOf(environmentId), key);
}

/** The undecided item of a kind about a comment; undefined also for text that cannot be an id. */
export async function findOpenItem(
  reader: Pick<Reader, 'get'>,
  environmentId: string,
  kind: 'comment' | 'edit' | 'report',
  commentId: string,
): Promise<ModerationItem | undefined> {
  const itemId = ID_PATTERN.test(commentId)
    ? await reader.get(moderationIndexOf(environmentId), commentKey({ kind, commentId }))
    : undefined;
  return itemId === undefined ? undefined : findItem(reader, environmentId, itemId);
}

/** The undecided item of a held thread; undefined also for text that cannot be an id. */
export async function findHeldThread(
  reader: Pick<Reader, 'get'>,
  environmentId: string,
  threadId: string,
): Promise<ModerationItem | undefined> {
  const itemId = ID_PATTERN.test(threadId)
    ? await reader.get(moderationIndexOf(environmentId), threadIdKey(threadId))
    : undefined;
  return itemId === undefined ? undefined : findItem(reader, environmentId, itemId);
}

/** Whether the environment holds any content. */
export async function hasHeldItems(reader: Pick<Reader, 'get'>, environmentId: string): Promise<boolean> {
  return (await reader.get(moderationIndexOf(environmentId), HELD_COUNT_KEY)) !== undefined;
}

/**
 * The held items of an author, oldest first. Reads nothing else of the author's than the ids of what was decided within
 * 30 days.
 */
export async function listHeldItems(
  reader: Reader,
  environmentId: string,
  userId: string,
): Promise<readonly ModerationItem[]> {
  const index = moderationIndexOf(environmentId);
  const count = Number((await reader.get(index, userCountKey(userId))) ?? 0);
  if (count === 0) return [];
  const prefix = authorPrefix(userId);
  const items: ModerationItem[] = [];
  for (const { key } of await reader.range(index, { prefix })) {
    // The rest of the key is the same for an item that is held.
    const heldKey = statePrefix('held') + key.slice(prefix.length);
    const item = await readRecord<ModerationItem>(reader, moderationOf(environmentId), heldKey);
    if (item !== undefined) items.push(item);
  }
  return items;
}

/** Whether held content has this id of a comment, or of a thread. */
export async function isReserved(
  tx: Transaction,
  environmentId: string,
  kind: 'comment' | 'thread',
  id: string,
): Promise<boolean> {
  return (
    (await tx.get(
      moderationIndexOf(environmentId),
      kind === 'thread' ? threadIdKey(id) : commentKey({ kind, commentId: id }),
    )) !== undefined
  );
}

/** A room, a thread in it, or a comment in that. */
export interface ModerationTarget {
  readonly roomId: string;
  readonly threadId?: string;
  readonly commentId?: string;
  /** The item whose decision deletes the comment, which is written with that. */
  readonly decidedId?: string | undefined;
}

/**
 * Removes all items about something that is deleted in the same transaction, with their files and reports, and tells
 * the authors of what is held. The reports of a deleted comment stay in the queue with the text as reported, unless the
 * room goes. `now` is the time of the deletion, in milliseconds since the epoch.
 */
export async function removeItemsAbout(
  tx: Transaction,
  actor: Actor,
  { roomId, threadId, commentId, decidedId }: ModerationTarget,
  now: number,
): Promise<void> {
  const environmentId = actor.environment.id;
  const index = moderationIndexOf(environmentId);
  if ((await tx.get(index, roomCountKey(roomId))) === undefined) return;
  const within = [threadId, commentId].filter((id) => id !== undefined).map((id) => `${id}/`);
  for (const { value: itemId } of await tx.range(index, { prefix: roomPrefix(roomId) + within.join('') })) {
    const item = await findItem(tx, environmentId, itemId);
    if (item?.kind === 'report' && threadId !== undefined) {
      if (itemId !== decidedId && isOpen(item) && isFindable(item))
        replaceItem(tx, environmentId, item, { ...item, keptReports: await readReports(tx, environmentId, item) });
      await deleteReports(tx, environmentId, item.commentId);
      continue;
    }
    if (item === undefined) continue;
    await removeItem(tx, environmentId, item);
    if (item.state === 'held') emitGone(tx, actor, item, now, 'deleted');
  }
}

/**
 * Removes the held and rejected content of a user who is erased at `now` in the same transaction, with its files, and
 * the reports of what the user has deleted.
 */
export async function removeItemsBy(tx: Transaction, actor: Actor, userId: string, now: number): Promise<void> {
  const environmentId = actor.environment.id;
  const index = moderationIndexOf(environmentId);
  await tx.get(index, userCountKey(userId));
  for (const { value: itemId } of await tx.range(index, { prefix: authorPrefix(userId) })) {
    const item = await findItem(tx, environmentId, itemId);
    if (item === undefined || (item.kind === 'report' && (await commentExists(tx, environmentId, item)))) continue;
    await removeItem(tx, environmentId, item);
    if (item.state === 'held') emitGone(tx, actor, item, now, 'deleted');
  }
}

/** Removes an item, as this transaction has read it, with its files and reports. */
export async function removeItem(tx: Transaction, environmentId: string, item: ModerationItem): Promise<void> {
  deleteItem(tx, environmentId, item);
  if (item.kind !== 'report') return removeHeldAttachments(tx, environmentId, item.comment?.attachments ?? []);
  const open = await findOpenItem(tx, environmentId, 'report', item.commentId);
  if (open === undefined || open.id === item.id) await deleteReports(tx, environmentId, item.commentId);
}

async function deleteReports(tx: Transaction, environmentId: string, commentId: string): Promise<void> {
  for (const { key } of await tx.range(reportsOf(environmentId), { prefix: `${commentId}/` }))
    tx.delete(reportsOf(environmentId), key);
}

/**
 * The latest reports of an item, oldest first, without those of the items about the same comment before and after it.
 */
export async function readReports(
  reader: Reader,
  environmentId: string,
  { keptReports, commentId, createdAt, decidedAt }: ModerationItem,
): Promise<readonly Report[]> {
  if (keptReports !== undefined) return keptReports;
  const bounds = { prefix: `${commentId}/`, limit: MAX_READ_REPORTS };
  const reports = (await readRecords<Report>(reader, reportsOf(environmentId), bounds))
    .map(({ value }) => value)
    .filter((report) => report.createdAt >= createdAt && (decidedAt === null || report.createdAt <= decidedAt));
  return reports.toSorted((a, b) => (a.createdAt < b.createdAt ? -1 : 1)).slice(-MAX_SHOWN_REPORTS);
}

/** When moderators last decided on the reports of a comment; null if they have not. */
export async function lastDecisionOnReports(
  tx: Transaction,
  environmentId: string,
  roomId: string,
  { id, threadId }: Comment,
): Promise<string | null> {
  let last: string | null = null;
  for (const { value: itemId } of await tx.range(moderationIndexOf(environmentId), {
    prefix: `${roomPrefix(roomId)}${threadId}/${id}/`,
  })) {
    const item = await findItem(tx, environmentId, itemId);
    if (item?.kind === 'report' && item.decidedAt !== null && item.decidedAt > (last ?? '')) last = item.decidedAt;
  }
  return last;
}

/** Whether the comment that an item is about exists: another one may have its id since. */
async function commentExists(
  reader: Pick<Reader, 'get'>,
  environmentId: string,
  item: ModerationItem,
): Promise<boolean> {
  return (await publishedComment(reader, environmentId, item)) !== null;
}

/**
 * The published comment that an item is about, as it is now; null if it was deleted, also if another one has its id
 * since.
 */
export async function publishedComment(
  reader: Pick<Reader, 'get'>,
  environmentId: string,
  { commentId, comment }: ModerationItem,
): Promise<Comment | null> {
  const location = await findLocation(reader, environmentId, commentId);
  const current =
    location === undefined ? undefined : await readRecord<Comment>(reader, location.partition, location.key);
  return current === undefined || (comment !== null && comment.createdAt !== current.createdAt) ? null : current;
}

/** The key of a report in `reportsOf`. `reporter` is unique among users and keys. */
export function reportKey(commentId: string, reporter: string): string {
  return `${commentId}/${digest(reporter)}`;
}

interface Bound {
  readonly most: number;
  readonly whose: string;
}

function add(tx: Transaction, index: string, key: string, amount: number, bound?: Bound): void {
  tx.update(index, key, (current) => {
    const next = Number(current ?? 0) + amount;
    if (bound !== undefined && next > bound.most) {
      throw new CollabError(
        'quota_exceeded',
        `Too much content waits for a moderator: ${bound.whose} may have ${bound.most} held comments and ` +
          'threads. Try again after moderators have decided on some of it',
      );
    }
    return next > 0 ? String(next) : undefined;
  });
}
