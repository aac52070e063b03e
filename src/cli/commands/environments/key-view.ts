import { keyState } from '../../../domain/access/key-view.ts';
import type { ListedKey, NewKey, SecretKey, SigningKey } from '../../../model/environments/key.ts';
import { keyValues, nextSteps } from '../../terminal/output.ts';

/** The JSON of a signing key; with its secret only if `withSecret`. */
export function presentSigningKey(key: SigningKey, withSecret: boolean): Record<string, unknown> {
  const common = {
    id: key.kid,
    kind: 'signing',
    kid: key.kid,
    alg: key.alg,
    source: key.kind,
    state: 'active',
    createdAt: key.createdAt,
  };
  if (key.kind === 'jwks') return { ...common, url: key.url };
  return key.kind === 'secret' && withSecret ? { ...common, jwtSecret: key.secret } : common;
}

/** The text shown for a new key. */
export function newKeyText({ key, value }: NewKey): string {
  const expiry = key.expiresAt ?? 'never';
  if (key.kind === 'publishable') {
    return [
      'Created a publishable key.',
      '',
      keyValues([
        ['id', key.id],
        ['publishable key', value],
        ['expires', expiry],
      ]),
      nextSteps('Use it in your web page: send it as X-Service-Key, together with the user token. It is not secret.'),
    ].join('\n');
  }
  return [
    'Created a secret key.',
    '',
    keyValues([
      ['id', key.id],
      ['secret key', value],
      ['rights', rights(key)],
      ['expires', expiry],
    ]),
    '',
    'The key is not shown again. Store it in your backend, never in a web page.',
    nextSteps(`Send it with each request: Authorization: Bearer ${value}`),
  ].join('\n');
}

/** The text shown for a new signing key. */
export function signingKeyText(key: SigningKey): string {
  if (key.kind !== 'secret') {
    return `Created the signing key ${key.kid}.${nextSteps(`Tokens signed with ${key.alg} must carry kid ${key.kid} and an aud of the environment’s id or slug.`)}`;
  }
  return [
    'Created a signing key.',
    '',
    keyValues([
      ['kid', key.kid],
      ['algorithm', key.alg],
      ['secret', key.secret],
    ]),
    '',
    'The secret is not shown again. Store it in the backend that signs your user tokens.',
    nextSteps(`Sign with HS256 and set "kid": "${key.kid}" in the header of the token.`),
  ].join('\n');
}

/** The row of a key in the list. */
export function keyRow(key: ListedKey, now: number): readonly string[] {
  const shown = key.kind === 'publishable' ? key.value : key.preview;
  return [
    key.id,
    key.kind,
    key.name,
    shown,
    key.kind === 'secret' ? rights(key) : 'page',
    stateText(key, now),
    key.lastUsedAt ?? 'never',
    key.createdAt,
  ];
}

/** The row of a signing key in the list. */
export function signingKeyRow(key: SigningKey): readonly string[] {
  return [
    key.kid,
    'signing',
    key.kind === 'jwks' ? key.url : '',
    `${key.alg} ${key.kind}`,
    'verifies tokens',
    'active',
    '',
    key.createdAt,
  ];
}

function rights(key: SecretKey): string {
  const limit = key.rateLimit === null ? '' : `, ${key.rateLimit === 0 ? 'unlimited' : `${key.rateLimit} per minute`}`;
  return `${key.scope}${key.rooms === null ? '' : ` in ${key.rooms}`}${limit}`;
}

function stateText(key: ListedKey, now: number): string {
  const state = keyState(key, now);
  return state === 'active' && key.expiresAt !== null ? `until ${key.expiresAt}` : state;
}
