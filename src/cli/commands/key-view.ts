import { keyState } from '../../domain/access/key-view.ts';
import type { ListedKey, NewKey, SecretKey, SigningKey } from '../../model/key.ts';
import { facts, next } from '../terminal/output.ts';

/** A signing key for scripts; its secret only when asked for. */
export function presentSigningKey(key: SigningKey, withSecret: boolean): Record<string, unknown> {
  const common = { id: key.kid, kind: 'signing', kid: key.kid, alg: key.alg, source: key.kind, state: 'active', createdAt: key.createdAt };
  if (key.kind === 'jwks') return { ...common, url: key.url };
  return key.kind === 'secret' && withSecret ? { ...common, jwtSecret: key.secret } : common;
}

/** A key just made, for people. */
export function newKeyText({ key, value }: NewKey): string {
  const expiry = key.expiresAt ?? 'never';
  if (key.kind === 'publishable') {
    return [
      'Made a publishable key.',
      '',
      facts([['id', key.id], ['publishable key', value], ['expires', expiry]]),
      next('Put it into the page, as X-Service-Key beside the user token. It is no secret.'),
    ].join('\n');
  }
  return [
    'Made a secret key.',
    '',
    facts([['id', key.id], ['secret key', value], ['rights', rights(key)], ['expires', expiry]]),
    '',
    'The key is not shown again. Keep it in your backend, never in a page.',
    next(`Send it with each request: Authorization: Bearer ${value}`),
  ].join('\n');
}

/** A signing key just made, for people. */
export function signingKeyText(key: SigningKey): string {
  if (key.kind !== 'secret') {
    return `Made the signing key ${key.kid}.${next(`Tokens signed with ${key.alg} must carry kid ${key.kid} and an aud of the environment’s id or slug.`)}`;
  }
  return [
    'Made a signing key.',
    '',
    facts([['kid', key.kid], ['algorithm', key.alg], ['secret', key.secret]]),
    '',
    'The secret is not shown again. Keep it in the backend that signs user tokens.',
    next(`Sign with HS256 and put "kid": "${key.kid}" into the header of the token.`),
  ].join('\n');
}

/** A key as a row of the list. */
export function keyRow(key: ListedKey, now: number): readonly string[] {
  const shown = key.kind === 'publishable' ? key.value : key.preview;
  return [key.id, key.kind, key.name, shown, key.kind === 'secret' ? rights(key) : 'page', stateText(key, now), key.lastUsedAt ?? 'never', key.createdAt];
}

/** A signing key as a row of the list. */
export function signingKeyRow(key: SigningKey): readonly string[] {
  return [key.kid, 'signing', key.kind === 'jwks' ? key.url : '', `${key.alg} ${key.kind}`, 'verifies tokens', 'active', '', key.createdAt];
}

function rights(key: SecretKey): string {
  const limit = key.rateLimit === null ? '' : `, ${key.rateLimit === 0 ? 'unlimited' : `${key.rateLimit} a minute`}`;
  return `${key.scope}${key.rooms === null ? '' : ` in ${key.rooms}`}${limit}`;
}

function stateText(key: ListedKey, now: number): string {
  const state = keyState(key, now);
  return state === 'active' && key.expiresAt !== null ? `until ${key.expiresAt}` : state;
}
