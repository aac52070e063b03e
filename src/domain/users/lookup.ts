import { CollabError, invalidField } from '../../model/errors.ts';
import { foldText } from '../../lib/fold-text.ts';
import { limitsOf } from '../../model/environments/environment.ts';
import { type User, type UserSummary, summaryOf } from '../../model/user.ts';
import { requireRead } from '../access/access.ts';
import type { Actor } from '../access/actor.ts';
import { usersOfRoom } from '../comments/room-users.ts';
import type { Context } from '../context.ts';
import { checkId, checkRoomId } from '../input/bounds.ts';
import { escapeId, usersOf } from '../records/partitions.ts';
import { readRecord } from '../records/record.ts';
import { presenceKey, presentUsers } from '../rooms/presence.ts';
import { allUsers, type Searchable, searchable } from './user-names.ts';

/** The most ids in one lookup. */
export const MAX_LOOKUP_IDS = 100;
/** The most users that a search returns. */
export const MAX_FOUND = 100;
const DEFAULT_FOUND = 20;
const MAX_TEXT_LENGTH = 256;
/** After these characters, a word of a name begins. */
const BEFORE_WORD = [' ', '-', "'"];

/** A lookup: users by their ids, or those whose name or id begins with a text. */
export interface UserLookup {
  readonly ids?: readonly string[] | undefined;
  readonly q?: string | undefined;
  /** Only users of this room: who wrote, is mentioned or is present there. */
  readonly roomId?: string | undefined;
  /** The most users that a search returns; 20 if absent. */
  readonly limit?: number | undefined;
}

/**
 * Returns `{"users":{"<id>":…}}` with the name, picture and kind of users; unknown ones are absent, and it is empty
 * without `ids` and `q`. A credential that is confined to rooms searches one of its rooms, because it may not list the
 * users of the environment (decision 47). Throws `forbidden`, `invalid_request`.
 */
export async function lookUpUsers(
  ctx: Context,
  actor: Actor,
  { ids = [], q, roomId, limit = DEFAULT_FOUND }: UserLookup,
): Promise<string> {
  requireRead(actor, roomId);
  const limits = limitsOf(actor.environment);
  if (roomId !== undefined) checkRoomId(roomId, limits);
  if (ids.length > MAX_LOOKUP_IDS)
    throw invalidField('ids', `must hold at most ${MAX_LOOKUP_IDS} user ids`, ids.length);
  for (const id of ids) checkId('ids', id, limits);
  if (q === undefined) return renderUsers(await usersById(ctx, actor, ids));
  if (ids.length > 0) throw new CollabError('invalid_request', 'ids and q cannot be combined: look up ids, or search');
  if (q.length > MAX_TEXT_LENGTH) throw invalidField('q', `must be at most ${MAX_TEXT_LENGTH} characters`, q.length);
  if (limit < 1 || limit > MAX_FOUND || !Number.isInteger(limit))
    throw invalidField('limit', `must be an integer between 1 and ${MAX_FOUND}`, limit);
  if (actor.rooms !== null && roomId === undefined) {
    throw new CollabError(
      'forbidden',
      'The credential is confined to rooms: name one of them with roomId, to search the users of that room',
    );
  }
  const candidates =
    roomId === undefined
      ? await allUsers(ctx, actor.environment.id)
      : (await usersInRoom(ctx, actor, roomId)).map(searchable);
  const found = search(candidates, q, limit);
  // The candidates may be some seconds old: a user who was erased since must not appear.
  return renderUsers(
    await usersById(
      ctx,
      actor,
      found.map(({ userId }) => userId),
    ),
  );
}

/** The users with these ids, in this order; those that are unknown are absent. */
export async function usersById(ctx: Context, actor: Actor, ids: Iterable<string>): Promise<UserSummary[]> {
  const partition = usersOf(actor.environment.id);
  const users = await Promise.all([...new Set(ids)].map((id) => readRecord<User>(ctx.store, partition, escapeId(id))));
  return users.filter((user) => user !== undefined).map(summaryOf);
}

/** Users by their ids. */
export function byId(users: readonly UserSummary[]): Readonly<Record<string, UserSummary>> {
  return Object.fromEntries(users.map((user) => [user.userId, user]));
}

const renderUsers = (users: readonly UserSummary[]): string => JSON.stringify({ users: byId(users) });

async function usersInRoom(ctx: Context, actor: Actor, roomId: string): Promise<UserSummary[]> {
  const present = (await presentUsers(ctx, presenceKey(actor.environment.id, roomId))).map(({ userId }) => userId);
  const wrote = await usersOfRoom(ctx, actor.environment.id, roomId);
  return usersById(ctx, actor, [...(actor.kind === 'user' ? [actor.userId] : []), ...present, ...wrote]);
}

/**
 * The users whose name, a word of it, or id begins with the text, as `foldText` compares: those whose name does first,
 * then by name.
 */
function search(users: readonly Searchable[], q: string, limit: number): UserSummary[] {
  const text = foldText(q);
  const ranked: { readonly user: UserSummary; readonly rank: number; readonly name: string }[] = [];
  for (const { user, name, id } of users) {
    const rank = rankOf(name, id, text);
    if (rank !== null) ranked.push({ user, rank, name });
  }
  ranked.sort((a, b) => a.rank - b.rank || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  return ranked.slice(0, limit).map(({ user }) => user);
}

function rankOf(name: string, id: string, text: string): number | null {
  if (name.startsWith(text)) return 0;
  if (BEFORE_WORD.some((character) => name.includes(character + text))) return 1;
  return id.startsWith(text) ? 2 : null;
}
