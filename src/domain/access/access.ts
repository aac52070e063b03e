import { CollabError } from '../../model/errors.ts';
import type { Environment } from '../../model/environment.ts';
import { inScope } from '../../model/room.ts';
import type { Actor } from './actor.ts';

const forbidden = (message: string): CollabError => new CollabError('forbidden', message);

/** Throws `forbidden` unless the credential reaches the room. */
export function requireRoomAccess(actor: Actor, roomId: string): void {
  if (actor.rooms !== null && !inScope(actor.rooms, roomId)) throw forbidden('The credential does not reach this room');
}

/** Throws `forbidden` unless the actor may read, in the room when one is given. Every actor may read where it reaches. */
export function requireRead(actor: Actor, roomId?: string): void {
  if (roomId !== undefined) requireRoomAccess(actor, roomId);
}

/** Throws `forbidden` unless the actor may create, or change and delete users, in the room when one is given: `full` keys, members and moderators. */
export function requireWrite(actor: Actor, roomId?: string): void {
  if (actor.kind === 'user') requireMember(actor.role);
  else if (actor.scope !== 'full') throw forbidden(`The key has the scope ${actor.scope}: this needs a key of the scope full`);
  if (roomId !== undefined) requireRoomAccess(actor, roomId);
}

/** Throws `forbidden` unless the actor may change what exists, in the room when one is given: all but `read` keys and viewers. */
export function requireChange(actor: Actor, roomId?: string): void {
  if (actor.kind === 'user') requireMember(actor.role);
  else if (actor.scope === 'read') throw forbidden('The key has the scope read, which does not allow changes');
  if (roomId !== undefined) requireRoomAccess(actor, roomId);
}

/** Throws `forbidden` unless the actor may edit or delete what `authorId` wrote: its author, a moderator or a backend. */
export function requireAuthor(actor: Actor, authorId: string, what: 'comment' | 'reaction' | 'thread'): void {
  if (actor.kind === 'backend' || actor.role === 'moderator' || actor.userId === authorId) return;
  throw forbidden(`Only its author or a moderator may change this ${what}`);
}

/** Throws `forbidden` unless the actor is a backend, with a key of the scope `full` when it wants to write. */
export function requireBackend(actor: Actor, wants: 'read' | 'write'): void {
  if (actor.kind === 'user') throw forbidden('This needs a secret key');
  if (wants === 'write') requireWrite(actor);
}

/** Throws `forbidden` when the credential is confined to rooms. `what` says what it may not do, e.g. `list users`. */
export function requireAllRooms(actor: Actor, what: string): void {
  if (actor.rooms !== null) throw forbidden(`The key is confined to rooms, so it may not ${what}: this needs a key for all rooms`);
}

/** Throws `origin_not_allowed` unless people may come from pages of this origin ('' for none) into the environment. */
export function requireOrigin({ settings }: Environment, origin: string): void {
  if (origin === '' || settings.allowedOrigins.length === 0 || settings.allowedOrigins.includes(origin)) return;
  throw new CollabError('origin_not_allowed', `Pages of ${origin} may not connect to this environment`);
}

/** A text that names the actor in accounts and queues, of all environments: the user, or the secret key. */
export function actorKey(actor: Actor): string {
  return actor.kind === 'user' ? userKey(actor.environment.id, actor.userId) : `${actor.environment.id}/k/${actor.keyId}`;
}

/** As `actorKey`, of a user. */
export function userKey(environmentId: string, userId: string): string {
  return `${environmentId}/u/${userId}`;
}

/** Who an event says acted: the user, or nobody for a backend that acts as none. */
export function actingUserId(actor: Actor): string | null {
  return actor.kind === 'user' ? actor.userId : null;
}

function requireMember(role: 'viewer' | 'member' | 'moderator'): void {
  if (role === 'viewer') throw forbidden('The role viewer does not allow changes');
}
