import { isDeepStrictEqual } from 'node:util';
import { timestamp } from '../../lib/clock.ts';
import type { Via } from '../../model/event.ts';
import type { TokenScope, User, UserPut } from '../../model/user.ts';
import type { Claims } from '../access/claims.ts';

// What a backend or a token makes of a stored user. Pure: reading and writing it is in users.ts.

/** The fields that a backend or a token sets. */
export type UserFields = Partial<Pick<User, 'name' | 'avatarUrl' | 'email' | 'kind' | 'metadata'>>;

/** A change of a user. */
export interface UserChange {
  readonly userId: string;
  readonly fields: UserFields;
  /** Whether the user authenticated, which updates `lastSeenAt`. */
  readonly seen: boolean;
  /** `iat` of the token with these claims, in milliseconds since the epoch; null if a backend sets the fields. */
  readonly issuedAt: number | null;
  /** The rooms of the token that the user has used or got. */
  readonly tokenScope?: TokenScope;
  /** Whether an existing user must not be changed. */
  readonly createOnly?: boolean;
  readonly actorUserId: string | null;
  readonly via: Via;
}

/** The precision of `lastSeenAt`. */
const LAST_SEEN_PRECISION_MS = 60_000;

/**
 * Whether `lastSeenAt` is to be written. A difference in either direction counts, since the clock may have been set
 * back.
 */
export const isSeenAgain = ({ lastSeenAt }: User, now: number): boolean =>
  lastSeenAt === null || Math.abs(now - Date.parse(lastSeenAt)) >= LAST_SEEN_PRECISION_MS;

/** The user after a change; the same object if there is nothing to write. */
export function applyChange(existing: User | null, change: UserChange, now: number): User {
  const at = timestamp(now);
  const { userId, seen } = change;
  const fields = fieldsFor(existing, change);
  const tokenScope = nextScope(existing, change.tokenScope);
  const setAt = nextSetAt(existing, change, at);
  const scope = { ...(tokenScope === undefined ? {} : { tokenScope }), ...(setAt === undefined ? {} : { setAt }) };
  if (existing === null) {
    return {
      ...emptyUser(userId),
      ...fields,
      createdAt: at,
      updatedAt: at,
      firstSeenAt: seen ? at : null,
      lastSeenAt: seen ? at : null,
      ...scope,
    };
  }
  const updated = hasChanges(existing, fields);
  const seenAgain = seen && isSeenAgain(existing, now);
  if (!updated && !seenAgain && tokenScope === existing.tokenScope && setAt === existing.setAt) return existing;
  return {
    ...existing,
    ...fields,
    updatedAt: updated ? at : existing.updatedAt,
    firstSeenAt: existing.firstSeenAt ?? (seen ? at : null),
    lastSeenAt: seen ? at : existing.lastSeenAt,
    ...scope,
  };
}

/**
 * The fields of a change without those of a token that a backend has changed since it was issued. `iat` has the
 * precision of seconds.
 */
export function fieldsFor(existing: User | null, { fields, issuedAt }: UserChange): UserFields {
  const setAt = existing?.setAt;
  if (setAt === undefined || issuedAt === null) return fields;
  const isLater = (time: string | undefined): boolean =>
    time !== undefined && Math.floor(Date.parse(time) / 1000) > Math.floor(issuedAt / 1000);
  return Object.fromEntries(
    Object.entries(fields).filter(([name]) => !isLater(setAt[name as keyof UserFields])),
  ) as UserFields;
}

/** `setAt` after a change: the same object if it sets nothing that a backend has not set before. */
function nextSetAt(existing: User | null, { fields, issuedAt }: UserChange, at: string): User['setAt'] {
  const setAt = existing?.setAt;
  if (issuedAt !== null) return setAt;
  const names = Object.keys(fields) as (keyof UserFields)[];
  const set = names.filter(
    (name) => setAt?.[name] === undefined || existing === null || hasChanges(existing, { [name]: fields[name] }),
  );
  return set.length === 0 ? setAt : { ...setAt, ...Object.fromEntries(set.map((name) => [name, at])) };
}

/** The rights of a token that decide who is notified. */
export type TokenRights = Pick<Claims, 'rooms' | 'confinedKeyId'>;

/** @param issuedAt in milliseconds since the epoch */
export function tokenScopeOf({ rooms, confinedKeyId }: TokenRights, issuedAt: number): TokenScope {
  const scope = { rooms, issuedAt: timestamp(issuedAt) };
  return confinedKeyId === null ? scope : { ...scope, confinedKeyId };
}

/**
 * The scope of the later of two tokens; the current one, even if it is older, unless the rooms differ. The token of a
 * confined key replaces only a token of the same key, because it must not end the notifications of a user about other
 * rooms.
 */
function nextScope(existing: User | null, next: TokenScope | undefined): TokenScope | undefined {
  const current = existing?.tokenScope;
  if (next === undefined || isSameScope(current, next)) return current;
  if (next.confinedKeyId !== undefined && existing !== null && !isUnknownOrOf(existing, next.confinedKeyId))
    return current;
  return current !== undefined && next.issuedAt < current.issuedAt ? current : next;
}

const isSameScope = (current: TokenScope | undefined, next: TokenScope): boolean =>
  isDeepStrictEqual(current?.rooms ?? null, next.rooms) && current?.confinedKeyId === next.confinedKeyId;

/** Whether no token of the user is known, or the latest one is of a confined key. */
function isUnknownOrOf({ tokenScope, firstSeenAt }: User, confinedKeyId: string): boolean {
  return tokenScope === undefined ? firstSeenAt === null : tokenScope.confinedKeyId === confinedKeyId;
}

/** A user of whom only the id is known. */
export function emptyUser(userId: string): Omit<User, 'createdAt' | 'updatedAt' | 'firstSeenAt' | 'lastSeenAt'> {
  return { id: userId, userId, name: null, avatarUrl: null, email: null, kind: 'user', metadata: {} };
}

/** Whether the fields would change a user. */
export function hasChanges(existing: User, fields: UserFields): boolean {
  const { name, avatarUrl, email, kind, metadata } = fields;
  return (
    (name !== undefined && name !== existing.name) ||
    (avatarUrl !== undefined && avatarUrl !== existing.avatarUrl) ||
    (email !== undefined && email !== existing.email) ||
    (kind !== undefined && kind !== existing.kind) ||
    (metadata !== undefined && JSON.stringify(metadata) !== JSON.stringify(existing.metadata))
  );
}

/** The given fields. Absent fields must not appear as undefined, or they would overwrite the stored ones. */
export function definedFields(input: UserPut): UserFields {
  const { name, avatarUrl, email, kind, metadata } = input;
  const given = Object.entries({ name, avatarUrl, email, kind, metadata }).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as UserFields;
}
