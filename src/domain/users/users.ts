import { DELETED } from '../deleted.ts';
import { CollabError, invalidField } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import { KeyedLock } from '../../lib/concurrency/keyed-lock.ts';
import { type Environment, limitsOf } from '../../model/environments/environment.ts';
import type { Via } from '../../model/event.ts';
import type { Metadata } from '../../model/metadata.ts';
import { type User, UserPutSchema } from '../../model/user.ts';
import type { Transaction } from '../../ports/store.ts';
import { actorUserId, requireUnconfinedKey, requireBackend, requireRead } from '../access/access.ts';
import { checkId, checkMetadata, checkName, isEmailAddress, isWebAddress, showsSomething } from '../input/bounds.ts';
import type { Claims } from '../access/claims.ts';
import type { Actor } from '../access/actor.ts';
import { auditActorOf, appendAuditRecord } from '../audit/audit.ts';
import type { Context } from '../context.ts';
import { removeItemsBy } from '../moderation/queue.ts';
import { emitChange } from '../events/emit.ts';
import { hasFilters, type ListQuery, type Page } from '../lists/list-query.ts';
import { readPage } from '../lists/paging.ts';
import { removeUserNotifications } from '../notifications/removal.ts';
import { escapeId, notificationSettingsOf, userOrderOf, usersOf } from '../records/partitions.ts';
import { parseRecord, putRecord, readRecord } from '../records/record.ts';
import { isOnline } from './online.ts';
import {
  applyChange,
  definedFields,
  emptyUser,
  fieldsFor,
  hasChanges,
  isSeenAgain,
  type TokenRights,
  tokenScopeOf,
  type UserChange,
  type UserFields,
} from './user-change.ts';
import { userMatcher } from './user-matcher.ts';
import { addToOrder, deleteFromOrder, ensureUserOrder, USER_ORDER_PREFIX, userInOrder } from './user-order.ts';
import { InputSchema, validate } from '../input/validate.ts';

/**
 * The public view of a user: `email` only for backends with access to all rooms, `erased` only in the event of an
 * erasure.
 */
export type UserView = Omit<User, 'email'> & {
  readonly email?: string | null;
  readonly online: boolean;
  readonly erased?: true;
};

const userPut = new InputSchema(UserPutSchema);
const locks = new KeyedLock();

/** The public view of a stored user, with the email address if `withEmail` is true. */
export function presentUser(user: User, online: boolean, withEmail: boolean): UserView {
  const { id, userId, name, avatarUrl, email, kind, metadata, createdAt, updatedAt, firstSeenAt, lastSeenAt } = user;
  const identity = withEmail ? { id, userId, name, avatarUrl, email } : { id, userId, name, avatarUrl };
  return { ...identity, kind, metadata, createdAt, updatedAt, firstSeenAt, lastSeenAt, online };
}

/**
 * Creates a user or changes the given fields, and returns `{"user":…}`. Repeating it changes nothing and emits no
 * event. A key confined to rooms can create users and not change existing ones. `input` is the parsed JSON body. Throws
 * `forbidden`, `invalid_request`.
 */
export async function putUser(ctx: Context, actor: Actor, userId: string, input: unknown): Promise<string> {
  const put = parsePut(actor, userId, input);
  const online = await isOnline(ctx, actor.environment, userId);
  const user = await upsert(ctx, actor.environment, put, online);
  return `{"user":${renderUser(actor, user, online, put.fields.metadata)}}`;
}

/**
 * Prepares what `putUser` does, for a user to whom a token is issued in the same transaction. Validates the input,
 * throwing as `putUser` does, and resolves with the function that writes the user in the transaction.
 *
 * @param token the rooms that the token is confined to, which are stored unless another token decides who is notified
 */
export async function preparePutWithToken(
  ctx: Context,
  actor: Actor,
  userId: string,
  input: unknown,
  token: TokenRights,
): Promise<(tx: Transaction) => Promise<void>> {
  const put = parsePut(actor, userId, input);
  const online = await isOnline(ctx, actor.environment, userId);
  return async (tx) => {
    const tokenScope = tokenScopeOf(token, Math.floor(ctx.clock.now() / 1000) * 1000);
    await upsertWithin(ctx, tx, actor.environment, { ...put, tokenScope }, online);
  };
}

function parsePut(actor: Actor, userId: string, input: unknown): UserChange {
  requireBackend(actor, 'write');
  const limits = limitsOf(actor.environment);
  checkId('userId', userId, limits);
  const put = validate(userPut, input);
  if (put.name !== undefined) {
    checkName('name', put.name);
    if (!showsSomething(put.name))
      throw invalidField('name', 'must be 1 to 256 characters, not only white space or characters that show nothing');
  }
  if (put.metadata !== undefined) checkMetadata(put.metadata, limits);
  if (put.avatarUrl !== undefined && !isWebAddress(put.avatarUrl))
    throw invalidField('avatarUrl', 'must be an http or https address', put.avatarUrl);
  if (put.email !== undefined && !isEmailAddress(put.email))
    throw invalidField('email', 'must be an email address', put.email);
  return {
    userId,
    fields: definedFields(put),
    seen: false,
    issuedAt: null,
    createOnly: actor.rooms !== null,
    actorUserId: actorUserId(actor),
    via: actor.via,
  };
}

/**
 * Erases the personal data of a user and returns `{"deleted":true}`. Their content stays under their id. The event
 * `user.updated` has no name, picture and metadata, and closes their sockets. If they come back with a token, they are
 * a new user. Throws `forbidden`, `invalid_request`, `user_not_found`.
 */
export async function deleteUser(ctx: Context, actor: Actor, userId: string): Promise<string> {
  requireBackend(actor, 'write');
  requireUnconfinedKey(actor, 'erase users');
  checkId('userId', userId, limitsOf(actor.environment));
  const partition = usersOf(actor.environment.id);
  const key = escapeId(userId);
  const online = await isOnline(ctx, actor.environment, userId);
  await locks.run(`${partition} ${key}`, () =>
    ctx.store.transact(async (tx) => {
      const user = await readRecord<User>(tx, partition, key);
      if (user === undefined) throw userNotFound();
      const now = ctx.clock.now();
      const { createdAt } = user;
      tx.delete(partition, key);
      deleteFromOrder(tx, actor.environment.id, { createdAt, userId });
      tx.delete(notificationSettingsOf(actor.environment.id), key);
      const erased: User = {
        ...emptyUser(userId),
        createdAt,
        updatedAt: timestamp(now),
        firstSeenAt: null,
        lastSeenAt: null,
      };
      emitUser(tx, actor.environment, erased, online, {
        at: now,
        userId: actorUserId(actor),
        via: actor.via,
        erased: true,
      });
      await removeItemsBy(tx, actor, userId, now);
      await appendAuditRecord(ctx, tx, actor.environment.id, {
        action: 'user.erase',
        target: { kind: 'user', id: userId },
        actor: auditActorOf(ctx, actor),
      });
    }),
  );
  // The consumer of the event does this too, in case this process ends first.
  await removeUserNotifications(ctx, actor.environment.id, userId, timestamp(ctx.clock.now()));
  return DELETED;
}

/**
 * Returns `{"user":…}`, for a key confined to rooms with name, picture and kind only. Throws `invalid_request`,
 * `user_not_found`.
 */
export async function getUser(ctx: Context, actor: Actor, userId: string): Promise<string> {
  requireRead(actor);
  checkId('userId', userId, limitsOf(actor.environment));
  const user = await readRecord<User>(ctx.store, usersOf(actor.environment.id), escapeId(userId));
  if (user === undefined) throw userNotFound();
  const online = seesPresence(actor) && (await isOnline(ctx, actor.environment, userId));
  return `{"user":${renderUser(actor, user, online)}}`;
}

/** A page of the users of the environment, newest first by default. Throws `forbidden`, `invalid_cursor`. */
export async function listUsers(ctx: Context, actor: Actor, query: ListQuery): Promise<Page> {
  requireRead(actor);
  requireUnconfinedKey(actor, 'list users');
  const { id } = actor.environment;
  await ensureUserOrder(ctx, id);
  const matches = userMatcher(query.filters);
  return readPage(ctx.store, query, limitsOf(actor.environment).listHardCap, {
    partition: userOrderOf(id),
    // Keeps cursors of earlier versions valid.
    name: usersOf(id),
    prefix: USER_ORDER_PREFIX,
    isFiltered: hasFilters(query),
    load: async (entry) => {
      const user = await userInOrder(ctx, id, entry);
      return user !== null && matches(user) ? user : null;
    },
    updatedAt: (user) => user.updatedAt,
    readText: async (user) => renderUser(actor, user, await isOnline(ctx, actor.environment, user.userId)),
  });
}

/**
 * The stored users that tokens left unchanged, as text and parsed, so that the next request with a token need not
 * compare them again. By the claims of the token, which are one object while the verified token is cached.
 */
const unchangedBy = new WeakMap<Claims, { readonly stored: string; readonly user: User }>();

/**
 * Records that a user authenticated with a valid token: creates the user, or updates the fields for which there are
 * claims. Emits `user.updated` only for a new user or a changed field. `lastSeenAt` is updated at most once a minute. A
 * field that a backend has changed since the token was issued stays: the later one counts. A token without `iat` counts
 * as issued now.
 */
export async function recordUserFromToken(
  ctx: Context,
  environment: Environment,
  claims: Claims,
  via: Via,
): Promise<User> {
  const stored = await ctx.store.get(usersOf(environment.id), escapeId(claims.userId));
  const now = ctx.clock.now();
  const unchanged = unchangedBy.get(claims);
  if (unchanged !== undefined && unchanged.stored === stored && !isSeenAgain(unchanged.user, now))
    return unchanged.user;
  const { name, avatarUrl, email, metadata } = claims;
  const issuedAt = claims.issuedAt ?? now;
  const tokenScope = tokenScopeOf(claims, issuedAt);
  const change: UserChange = {
    userId: claims.userId,
    fields: definedFields({ name, avatarUrl, email, metadata }),
    seen: true,
    issuedAt,
    tokenScope,
    actorUserId: claims.userId,
    via,
  };
  if (stored !== undefined) {
    const user = parseRecord<User>(stored);
    if (applyChange(user, change, now) === user) {
      // Without `iat`, the token counts as issued now, so its rooms may apply later.
      if (claims.issuedAt !== undefined) unchangedBy.set(claims, { stored, user });
      return user;
    }
  }
  return upsert(ctx, environment, change, await isOnline(ctx, environment, claims.userId));
}

/**
 * Makes sure, in the transaction of a write, that its author exists. Creates a missing author for a write of a user,
 * and for one of a backend unless the environment requires known users. Throws `unknown_user`.
 */
export async function requireKnownAuthor(ctx: Context, tx: Transaction, actor: Actor, userId: string): Promise<void> {
  const partition = usersOf(actor.environment.id);
  const key = escapeId(userId);
  if ((await tx.get(partition, key)) !== undefined) return;
  if (actor.kind === 'backend' && actor.environment.settings.requireKnownUsers) {
    throw unknownUser(userId);
  }
  const now = ctx.clock.now();
  const user = applyChange(
    null,
    { userId, fields: {}, seen: actor.kind === 'user', issuedAt: now, actorUserId: userId, via: actor.via },
    now,
  );
  putRecord(tx, partition, key, user);
  addToOrder(tx, actor.environment.id, user);
  // A connected user has a record: one without it can have no socket but the one of this write.
  const online = actor.kind === 'user' && actor.via === 'ws';
  emitUser(tx, actor.environment, user, online, { at: now, userId, via: actor.via });
}

/**
 * Throws `unknown_user` unless a backend may act for the user: a known one, or any if the environment does not require
 * that.
 */
export async function requireKnownUser(ctx: Context, environment: Environment, userId: string): Promise<void> {
  if (
    environment.settings.requireKnownUsers &&
    (await ctx.store.get(usersOf(environment.id), escapeId(userId))) === undefined
  )
    throw unknownUser(userId);
}

function unknownUser(userId: string): CollabError {
  return new CollabError(
    'unknown_user',
    `Unknown user: ${userId}. The user must have connected before, or be created with PUT /users/${escapeId(userId)}`,
  );
}

function upsert(ctx: Context, environment: Environment, change: UserChange, online: boolean): Promise<User> {
  const partition = usersOf(environment.id);
  const key = escapeId(change.userId);
  return locks.run(`${partition} ${key}`, () =>
    ctx.store.transact((tx) => upsertWithin(ctx, tx, environment, change, online)),
  );
}

/**
 * @param online whether the user is online, for the event: read before the transaction, which must not wait for shared
 *   memory
 */
async function upsertWithin(
  ctx: Context,
  tx: Transaction,
  environment: Environment,
  change: UserChange,
  online: boolean,
): Promise<User> {
  const partition = usersOf(environment.id);
  const key = escapeId(change.userId);
  const existing = (await readRecord<User>(tx, partition, key)) ?? null;
  if (existing !== null && change.createOnly === true) requireUnchanged(existing, change.fields);
  const now = ctx.clock.now();
  const user = applyChange(existing, change, now);
  if (user === existing) return user;
  putRecord(tx, partition, key, user);
  if (existing === null) addToOrder(tx, environment.id, user);
  if (existing === null || hasChanges(existing, fieldsFor(existing, change))) {
    emitUser(tx, environment, user, online, { at: now, userId: change.actorUserId, via: change.via });
  }
  return user;
}

/**
 * Throws `forbidden` if the fields would change the user, or contain an email address, which the key must not be able
 * to guess.
 */
function requireUnchanged(existing: User, fields: UserFields): void {
  if (fields.email === undefined && !hasChanges(existing, fields)) return;
  throw new CollabError(
    'forbidden',
    'The key is confined to rooms: it creates users, and does not change one that exists',
  );
}

const userNotFound = (): CollabError => new CollabError('user_not_found', 'User not found');

/** The fields of a `user.updated` event, besides the user. */
interface UserEventFields {
  readonly at: number;
  readonly userId: string | null;
  readonly via: Via;
  readonly erased?: true;
}

function emitUser(
  tx: Transaction,
  environment: Environment,
  user: User,
  online: boolean,
  { erased, ...by }: UserEventFields,
): void {
  const view = presentUser(user, online, false);
  const data = JSON.stringify(erased === undefined ? view : { ...view, erased });
  emitChange(tx, environment, { type: 'user.updated', roomId: null, threadId: null, data, ...by });
}

/** Whether an actor sees of users more than browsers do: whether and when they are there, and their metadata. */
const seesPresence = (actor: Actor): boolean => actor.kind === 'backend' && actor.rooms === null;

/**
 * A user as the actor may see it: a key that is confined to rooms sees what browsers see of others, the `sent` metadata
 * if it has just written them, and neutral values for the rest.
 */
function renderUser(actor: Actor, user: User, online: boolean, sent: Metadata = {}): string {
  if (seesPresence(actor)) return JSON.stringify(presentUser(user, online, true));
  return JSON.stringify({ ...presentUser(user, false, false), metadata: sent, firstSeenAt: null, lastSeenAt: null });
}
