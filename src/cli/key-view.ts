import type { NewKey } from '../domain/keys.ts';
import type { ApiKey, SecretKey, SigningKey } from '../model/key.ts';
import { facts, next } from './output.ts';

/** A key for scripts, without its value if that is secret. */
export function presentKey(key: ApiKey, now: number): Record<string, unknown> {
  const common = { id: key.id, kind: key.kind, name: key.name, preview: key.preview };
  const own =
    key.kind === 'secret'
      ? { scope: key.scope, rooms: key.rooms, rateLimit: rateLimit(key) }
      : { publishableKey: key.value };
  return { ...common, ...own, state: stateOf(key, now), createdAt: key.createdAt, expiresAt: key.expiresAt, revokedAt: key.revokedAt };
}

/** A key just made, with its value, for scripts. */
export function presentNewKey({ key, value }: NewKey): Record<string, unknown> {
  const common = { id: key.id, kind: key.kind };
  const dates = { environmentId: key.environmentId, name: key.name, createdAt: key.createdAt, expiresAt: key.expiresAt };
  if (key.kind === 'publishable') return { ...common, publishableKey: value, ...dates };
  return { ...common, secretKey: value, ...dates, scope: key.scope, rooms: key.rooms, rateLimit: rateLimit(key) };
}

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
export function keyRow(key: ApiKey, now: number): readonly string[] {
  const shown = key.kind === 'publishable' ? key.value : key.preview;
  return [key.id, key.kind, key.name, shown, key.kind === 'secret' ? rights(key) : 'page', stateText(key, now), key.createdAt];
}

/** A signing key as a row of the list. */
export function signingKeyRow(key: SigningKey): readonly string[] {
  return [key.kid, 'signing', key.kind === 'jwks' ? key.url : '', `${key.alg} ${key.kind}`, 'verifies tokens', 'active', key.createdAt];
}

function rights(key: SecretKey): string {
  const limit = key.rateLimit === null ? '' : `, ${key.rateLimit === 0 ? 'unlimited' : `${key.rateLimit} a minute`}`;
  return `${key.scope}${key.rooms === null ? '' : ` in ${key.rooms}`}${limit}`;
}

function rateLimit({ rateLimit }: SecretKey): number | 'unlimited' | null {
  return rateLimit === 0 ? 'unlimited' : rateLimit;
}

function stateOf(key: ApiKey, now: number): 'active' | 'expired' | 'revoked' {
  if (key.revokedAt !== null) return 'revoked';
  return key.expiresAt !== null && Date.parse(key.expiresAt) <= now ? 'expired' : 'active';
}

function stateText(key: ApiKey, now: number): string {
  const state = stateOf(key, now);
  return state === 'active' && key.expiresAt !== null ? `until ${key.expiresAt}` : state;
}
