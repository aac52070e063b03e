import type { ListedKey, NewKey, SecretKey } from '../../model/environments/key.ts';

/** Whether a key can be used now. */
export type KeyState = 'active' | 'expired' | 'revoked';

/** A key as lists show it, without the value of a secret key. */
export function presentKey(key: ListedKey, now: number): Record<string, unknown> {
  const common = { id: key.id, kind: key.kind, name: key.name, preview: key.preview };
  const own =
    key.kind === 'secret'
      ? { scope: key.scope, rooms: key.rooms, rateLimit: rateLimitOf(key) }
      : { publishableKey: key.value };
  const { createdAt, expiresAt, revokedAt, lastUsedAt } = key;
  return { ...common, ...own, state: keyState(key, now), createdAt, expiresAt, revokedAt, lastUsedAt };
}

/** A new key, with its value. */
export function presentNewKey({ key, value }: NewKey): Record<string, unknown> {
  const common = { id: key.id, kind: key.kind };
  const dates = {
    environmentId: key.environmentId,
    name: key.name,
    createdAt: key.createdAt,
    expiresAt: key.expiresAt,
  };
  if (key.kind === 'publishable') return { ...common, publishableKey: value, ...dates };
  return { ...common, secretKey: value, ...dates, scope: key.scope, rooms: key.rooms, rateLimit: rateLimitOf(key) };
}

/** The state of a key at `now`, in milliseconds since the epoch. */
export function keyState(key: Pick<SecretKey, 'revokedAt' | 'expiresAt'>, now: number): KeyState {
  if (key.revokedAt !== null) return 'revoked';
  return key.expiresAt !== null && Date.parse(key.expiresAt) <= now ? 'expired' : 'active';
}

function rateLimitOf({ rateLimit }: SecretKey): number | 'unlimited' | null {
  return rateLimit === 0 ? 'unlimited' : rateLimit;
}
