import { CollabError } from '../../model/errors.ts';
import type { Environment } from '../../model/environments/environment.ts';
import type { Role } from '../../model/role.ts';
import { inScope } from '../../model/room.ts';
import type { Actor } from './actor.ts';

const forbidden = (message: string): CollabError => new CollabError('forbidden', message);

/** Throws `forbidden` unless the credential gives access to the room. */
export function requireRoomAccess(actor: Actor, roomId: string): void {
  if (actor.rooms !== null && !inScope(actor.rooms, roomId)) throw forbidden('The credential does not reach this room');
}

/**
 * Throws `forbidden` if a room is given that the credential gives no access to. Apart from that, every actor may read.
 */
export function requireRead(actor: Actor, roomId?: string): void {
  if (roomId !== undefined) requireRoomAccess(actor, roomId);
}

/**
 * Throws `forbidden` unless the actor may create content, or change and delete users, in the room if one is given:
 * `full` keys, members and moderators may. `what` is named in the message, e.g. `setting position`.
 */
export function requireWrite(actor: Actor, roomId?: string, what = 'this'): void {
  if (actor.kind === 'user') requireMember(actor.role);
  else if (actor.scope !== 'full')
    throw forbidden(`The key has the scope ${actor.scope}: ${what} needs a key of the scope full`);
  if (roomId !== undefined) requireRoomAccess(actor, roomId);
}

/**
 * Throws `forbidden` unless the actor may change existing content, in the room if one is given: all but `read` keys and
 * viewers may.
 */
export function requireChange(actor: Actor, roomId?: string): void {
  if (actor.kind === 'user') requireMember(actor.role);
  else if (actor.scope === 'read') throw forbidden('The key has the scope read, which does not allow changes');
  if (roomId !== undefined) requireRoomAccess(actor, roomId);
}

/**
 * Throws `forbidden` unless the actor may edit or delete content of `authorId`: the author, moderators and backends
 * may.
 */
export function requireAuthor(actor: Actor, authorId: string, what: 'comment' | 'reaction' | 'thread'): void {
  if (actor.kind === 'backend' || actor.role === 'moderator' || actor.userId === authorId) return;
  throw forbidden(`Only its author or a moderator may change this ${what}`);
}

/**
 * Throws `forbidden` unless the actor may moderate: users with the role `moderator`, and keys of the scopes `moderate`
 * and `full`.
 */
export function requireModerator(actor: Actor): void {
  if (isModerator(actor)) return;
  throw forbidden('This needs a secret key of the scope moderate or full, or a user token with the role moderator');
}

/** Whether the actor may moderate, within its rooms, and so see what the events about moderation say. */
export function isModerator(actor: Actor): boolean {
  return actor.kind === 'user' ? actor.role === 'moderator' : actor.scope !== 'read';
}

/** Throws `forbidden` unless the actor is a backend; for `write` its key must have the scope `full`. */
export function requireBackend(actor: Actor, access: 'read' | 'write'): void {
  if (actor.kind === 'user') throw forbidden('This needs a secret key');
  if (access === 'write') requireWrite(actor);
}

/**
 * Throws `forbidden` for a key that is confined to rooms and for a user token that such a key issued: neither may do
 * what has effects in other rooms. `action` completes "may not …" in the message, e.g. `list users`.
 */
export function requireUnconfinedKey(actor: Actor, action: string): void {
  if (confinedKeyOf(actor) === null) return;
  if (actor.kind === 'backend')
    throw forbidden(`The key is confined to rooms, so it may not ${action}: this needs a key for all rooms`);
  throw forbidden(
    `The token was issued by a key that is confined to rooms, so it may not ${action}: this needs a token ` +
      'that your backend signs, or that a key for all rooms issues',
  );
}

/** Id of the key, confined to rooms, of a request: its own, or the one that issued its token. Null if there is none. */
export function confinedKeyOf(actor: Actor): string | null {
  if (actor.kind === 'user') return actor.confinedKeyId;
  return actor.rooms === null ? null : actor.keyId;
}

/** Throws `origin_not_allowed` unless the environment accepts users from pages of this origin ('' for no origin). */
export function requireOrigin({ settings }: Environment, origin: string): void {
  if (origin === '' || settings.allowedOrigins.length === 0 || settings.allowedOrigins.includes(origin)) return;
  throw new CollabError('origin_not_allowed', `Pages of ${origin} may not connect to this environment`);
}

/**
 * Identifies the actor (the user, or the secret key) among all environments, e.g. in budgets and queues. A user and a
 * confined key together are an actor of their own, so that the key cannot use up the budgets of the user.
 */
export function actorKey(actor: Actor): string {
  const { id } = actor.environment;
  if (actor.kind === 'backend') return `${id}/k/${actor.keyId}`;
  return actor.confinedKeyId === null ? userKey(id, actor.userId) : `${id}/k/${actor.confinedKeyId}/u/${actor.userId}`;
}

/** The `actorKey` of a user. */
export function userKey(environmentId: string, userId: string): string {
  return `${environmentId}/u/${userId}`;
}

/** The user id that an event names as its actor; null for a backend that names nobody for whom it acts. */
export function actorUserId(actor: Actor): string | null {
  return actor.kind === 'user' ? actor.userId : (actor.actsFor ?? null);
}

function requireMember(role: Role): void {
  if (role === 'viewer') throw forbidden('The role viewer does not allow changes');
}
