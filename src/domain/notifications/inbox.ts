import { CollabError } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import { limitsOf } from '../../model/environments/environment.ts';
import {
  type Notification,
  NotificationsReadSchema,
  type NotificationsRead,
  READ_IDS,
} from '../../model/notification.ts';
import { inScope } from '../../model/room.ts';
import type { Entry, Reader, Transaction } from '../../ports/store.ts';
import { actorUserId } from '../access/access.ts';
import type { Actor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { emitChange } from '../events/emit.ts';
import { hasStoredResponse, type Idempotency, type IdempotentResponse, withIdempotency } from '../idempotency.ts';
import { InputSchema, validate } from '../input/validate.ts';
import type { ListQuery } from '../lists/list-query.ts';
import { readPage, type TextPage } from '../lists/paging.ts';
import { inboxOf } from '../records/partitions.ts';
import { RecordText, scanRecords } from '../records/record.ts';
import {
  keyOfNotification,
  readNotification,
  replaceNotification,
  SHOWN_PREFIX,
  UNREAD_PREFIX,
  unreadCount,
} from './notification-records.ts';
import { requireOwnUser } from './own-user.ts';

const readInput = new InputSchema(NotificationsReadSchema);

/**
 * A page of the inbox of a user, newest first by default: `{"unreadCount":…,"items":[…]}`. A credential confined to
 * rooms gets and counts those of its rooms. Throws `forbidden`, `invalid_request`, `invalid_cursor`.
 */
export async function listNotifications(
  ctx: Context,
  actor: Actor,
  userId: string,
  query: ListQuery,
): Promise<TextPage> {
  requireOwnUser(actor, userId, 'read');
  const { id } = actor.environment;
  const inbox = inboxOf(id, userId);
  const isUnreadOnly = query.filters.unread === true;
  const isReadOnly = query.filters.unread === false;
  const count = await visibleUnread(ctx.store, actor, userId);
  /** The notification of a text; null if the actor does not see it, or it is not wanted. */
  const shown = (text: string): RecordText<Notification> | null => {
    const record = new RecordText<Notification>({ value: text });
    if (actor.rooms !== null && !inScope(actor.rooms, record.value.roomId)) return null;
    return isReadOnly && record.value.readAt === null ? null : record;
  };
  return readPage<RecordText<Notification>>(
    ctx.store,
    { ...query, sort: 'createdAt' },
    limitsOf(actor.environment).listHardCap,
    {
      partition: inbox,
      prefix: isUnreadOnly ? UNREAD_PREFIX : SHOWN_PREFIX,
      isFiltered: isReadOnly,
      ...(isUnreadOnly
        ? {
            load: async ({ key }: Entry) => {
              const text = await ctx.store.get(inbox, SHOWN_PREFIX + key.slice(UNREAD_PREFIX.length));
              return text === undefined ? null : shown(text);
            },
          }
        : { parse: ({ value }: Entry) => shown(value) }),
      updatedAt: ({ value }) => value.updatedAt,
      text: ({ text }) => text,
      head: `{"unreadCount":${count},"items":`,
    },
  );
}

/** More unread notifications than this are marked in several commits. */
const AT_ONCE = 2_000;

/**
 * Marks notifications of a user as read, emits `notification.read`, and returns `{"unreadCount":…}`, how many are
 * unread now. `input` is the parsed JSON body. Throws `forbidden`, `invalid_request`, `idempotency_key_reused`.
 */
export async function markRead(
  ctx: Context,
  actor: Actor,
  userId: string,
  input: unknown,
  idempotency: Idempotency,
): Promise<IdempotentResponse> {
  requireOwnUser(actor, userId, 'write');
  const { ids, all } = validate(readInput, input);
  if (ids === undefined && all === undefined)
    throw new CollabError('invalid_request', 'all is required, unless ids is given');
  if (ids !== undefined && all !== undefined)
    throw new CollabError('invalid_request', 'ids must be absent if all is given');
  const inbox = inboxOf(actor.environment.id, userId);
  const given = ids === undefined ? null : [...new Set(ids)].flatMap((id) => keyOfNotification(id) ?? []);
  if (given === null && !(await hasStoredResponse(ctx, actor, idempotency))) await markMost(ctx, actor, userId);
  return withIdempotency(ctx, actor, idempotency, async (tx) => {
    const keys =
      given ??
      (await tx.range(inbox, { prefix: UNREAD_PREFIX, limit: AT_ONCE })).map(({ key }) =>
        key.slice(UNREAD_PREFIX.length),
      );
    const before = await visibleUnread(tx.unguarded, actor, userId);
    const read = await markWithin(ctx, tx, actor, userId, keys);
    return { status: 200, body: JSON.stringify({ unreadCount: Math.max(0, before - read) }) };
  });
}

/** Marks unread notifications as read until at most `AT_ONCE` are left. */
async function markMost(ctx: Context, actor: Actor, userId: string): Promise<void> {
  const inbox = inboxOf(actor.environment.id, userId);
  for (let after: string | undefined; ;) {
    const entries = await ctx.store.range(inbox, { prefix: UNREAD_PREFIX, after, limit: AT_ONCE });
    if (entries.length < AT_ONCE) return;
    const keys = entries.map(({ key }) => key.slice(UNREAD_PREFIX.length));
    await ctx.store.transact((tx) => markWithin(ctx, tx, actor, userId, keys));
    after = entries.at(-1)?.key;
  }
}

/** Marks the notifications with these keys as read, as far as the actor sees them, and returns how many were unread. */
async function markWithin(
  ctx: Context,
  tx: Transaction,
  actor: Actor,
  userId: string,
  keys: readonly string[],
): Promise<number> {
  const now = ctx.clock.now();
  const readAt = timestamp(now);
  const ids: string[] = [];
  for (const key of keys) {
    const stored = await readNotification(tx, actor.environment.id, userId, key);
    if (
      stored === undefined ||
      !stored.inApp ||
      stored.notification.readAt !== null ||
      !inScope(actor.rooms, stored.notification.roomId)
    )
      continue;
    replaceNotification(tx, actor.environment.id, stored, { ...stored.notification, readAt });
    ids.push(stored.notification.id);
  }
  for (let from = 0; from < ids.length; from += READ_IDS)
    emitRead(tx, actor, { userId, ids: ids.slice(from, from + READ_IDS), readAt }, now);
  return ids.length;
}

function emitRead(tx: Transaction, actor: Actor, data: NotificationsRead, now: number): void {
  emitChange(tx, actor.environment, {
    type: 'notification.read',
    at: now,
    roomId: null,
    threadId: null,
    receiverId: data.userId,
    userId: actorUserId(actor),
    via: actor.via,
    data: JSON.stringify(data),
  });
}

/** The unread notifications of a user that the actor sees. */
async function visibleUnread(reader: Reader, { environment, rooms }: Actor, userId: string): Promise<number> {
  if (rooms === null) return unreadCount(reader, environment.id, userId);
  let count = 0;
  for await (const { value: roomId } of scanRecords<string>(reader, inboxOf(environment.id, userId), UNREAD_PREFIX))
    if (inScope(rooms, roomId)) count++;
  return count;
}
