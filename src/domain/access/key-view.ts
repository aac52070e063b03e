import type { ApiKey, KeyScope, ListedKey, NewKey, SecretKey } from '../../model/environments/key.ts';

/** Whether a key can be used now. */
export type KeyState = 'active' | 'expired' | 'revoked';

/** What a key of either kind shows: `scope`, `rooms` and `rateLimit` only of a secret key. */
interface AnyKeyView {
  readonly id: string;
  readonly kind: ApiKey['kind'];
  readonly name: string;
  readonly scope?: KeyScope;
  /** The room id or `prefix*` that it is confined to; null for all rooms. */
  readonly rooms?: string | null;
  /** Requests per minute; null if they are counted per address. */
  readonly rateLimit?: number | 'unlimited' | null;
  readonly publishableKey?: string;
  readonly createdAt: string;
  readonly expiresAt: string | null;
}

/** A key as lists show it, without the value of a secret key. */
export interface KeyView extends AnyKeyView {
  readonly preview: string;
  readonly state: KeyState;
  readonly revokedAt: string | null;
  readonly lastUsedAt: string | null;
}

/** A new key, with its value. */
export interface NewKeyView extends AnyKeyView {
  readonly environmentId: string;
  readonly secretKey?: string;
}

/** A key as lists show it at `now`, in milliseconds since the epoch. */
export function presentKey(key: ListedKey, now: number): KeyView {
  const { id, kind, name, preview, createdAt, expiresAt, revokedAt, lastUsedAt } = key;
  const own = key.kind === 'secret' ? rightsOf(key) : { publishableKey: key.value };
  const times = { createdAt, expiresAt, revokedAt, lastUsedAt };
  return { id, kind, name, preview, ...own, state: keyState(key, now), ...times };
}

/** A new key, with its value. */
export function presentNewKey({ key, value }: NewKey): NewKeyView {
  const { id, kind, environmentId, name, createdAt, expiresAt } = key;
  const about = { environmentId, name, createdAt, expiresAt };
  if (key.kind === 'publishable') return { id, kind, publishableKey: value, ...about };
  return { id, kind, secretKey: value, ...about, ...rightsOf(key) };
}

/** The state of a key at `now`, in milliseconds since the epoch. */
export function keyState(key: Pick<SecretKey, 'revokedAt' | 'expiresAt'>, now: number): KeyState {
  if (key.revokedAt !== null) return 'revoked';
  return key.expiresAt !== null && Date.parse(key.expiresAt) <= now ? 'expired' : 'active';
}

function rightsOf({ scope, rooms, rateLimit }: SecretKey): Required<Pick<KeyView, 'scope' | 'rooms' | 'rateLimit'>> {
  return { scope, rooms, rateLimit: rateLimit === 0 ? 'unlimited' : rateLimit };
}
