import { createPublicKey, type KeyObject } from 'node:crypto';
import { CollabError, invalidField } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import { newId, randomSecret } from '../../lib/ids.ts';
import { isPublicHost } from '../../lib/addresses/public-address.ts';
import type { Environment } from '../../model/environments/environment.ts';
import type { SigningAlgorithm, SigningKey } from '../../model/environments/key.ts';
import type { Transaction } from '../../ports/store.ts';
import { appendAuditRecord } from '../audit/audit.ts';
import type { Context } from '../context.ts';
import { ENVIRONMENTS, signingKeysOf } from '../records/partitions.ts';
import { putRecord, readRecords } from '../records/record.ts';

/** The algorithms of keys whose public part verifies tokens. */
export type PublicAlgorithm = Exclude<SigningAlgorithm, 'HS256'>;

/** The input of `addSigningKey`. */
export type SigningKeyCreate =
  /** The UTF-8 bytes of the secret are the HS256 key. A random secret is generated if none is given. */
  | { readonly kind: 'secret'; readonly secret?: string; readonly kid?: string }
  /** `key` is a public key, as PEM or as the JSON text of a JWK. */
  | { readonly kind: 'public'; readonly alg: PublicAlgorithm; readonly key: string; readonly kid?: string }
  /** The https address of a JSON Web Key Set; an environment has at most one. */
  | { readonly kind: 'jwks'; readonly alg: PublicAlgorithm; readonly url: string; readonly kid?: string };

const invalid = (message: string): CollabError => new CollabError('invalid_request', message);

/** RFC 7518 §3.2: an HS256 key has at least as many bytes as the hash. */
const MIN_SECRET_BYTES = 32;

/**
 * Registers a key that verifies user tokens. Throws `invalid_request`, `environment_not_found`, and `id_taken` if the
 * kid exists or the environment has a JWKS URL already.
 */
export async function addSigningKey(
  ctx: Context,
  environment: Environment,
  input: SigningKeyCreate,
): Promise<SigningKey> {
  const now = ctx.clock.now();
  const kid = input.kid ?? newId('kid_', now);
  if (!/^[\x21-\x7e]{1,128}$/.test(kid)) throw invalidField('kid', 'must be 1 to 128 visible ASCII characters', kid);
  const key = validateSigningKey(input, kid, timestamp(now));
  const partition = signingKeysOf(environment.id);
  return ctx.store.transact(async (tx) => {
    if ((await tx.get(ENVIRONMENTS, environment.id)) === undefined)
      throw new CollabError('environment_not_found', 'The environment has been deleted');
    if ((await tx.get(partition, kid)) !== undefined)
      throw new CollabError('id_taken', `The environment has a signing key with the kid ${kid} already`);
    const others = await readRecords<SigningKey>(tx, partition);
    if (key.kind === 'jwks' && others.some(({ value }) => value.kind === 'jwks')) {
      throw new CollabError('id_taken', 'The environment has a JWKS address already; remove its key first');
    }
    putRecord(tx, partition, kid, key);
    await appendAuditRecord(ctx, tx, environment.id, {
      action: 'signing-key.create',
      target: { kind: 'signing-key', id: kid },
      details: { kind: key.kind, alg: key.alg },
    });
    return key;
  });
}

/** Creates the signing secret of an environment that the same transaction creates. */
export function putFirstSecret(
  tx: Transaction,
  environment: Environment,
  now: number,
): { readonly kid: string; readonly secret: string } {
  const key = secretKey(randomSecret(32), newId('kid_', now), timestamp(now));
  putRecord(tx, signingKeysOf(environment.id), key.kid, key);
  return key;
}

/** The signing keys of an environment, secrets included, in order of kid. */
export async function listSigningKeys(ctx: Context, environment: Environment): Promise<SigningKey[]> {
  const keys = await readRecords<SigningKey>(ctx.store, signingKeysOf(environment.id));
  return keys.map(({ value }) => value);
}

/** Removes a signing key. Tokens signed with it stop working immediately. Throws `key_not_found`. */
export async function removeSigningKey(ctx: Context, environment: Environment, kid: string): Promise<void> {
  const partition = signingKeysOf(environment.id);
  await ctx.store.transact(async (tx) => {
    const stored = /^[\x21-\x7e]{1,128}$/.test(kid) ? await tx.get(partition, kid) : undefined;
    if (stored === undefined) throw new CollabError('key_not_found', `No signing key has the kid ${kid.slice(0, 128)}`);
    tx.delete(partition, kid);
    await appendAuditRecord(ctx, tx, environment.id, {
      action: 'signing-key.remove',
      target: { kind: 'signing-key', id: kid },
    });
  });
}

/** The signing key of an input in its stored form. Throws `invalid_request`. */
export function validateSigningKey(input: SigningKeyCreate, kid: string, createdAt: string): SigningKey {
  switch (input.kind) {
    case 'secret':
      return secretKey(input.secret ?? randomSecret(32), kid, createdAt);
    case 'public':
      return { kid, kind: 'public', alg: input.alg, key: validatePublicKey(input.key, input.alg), createdAt };
    case 'jwks':
      return { kid, kind: 'jwks', alg: input.alg, url: validateUrl(input.url), createdAt };
  }
}

function secretKey(secret: string, kid: string, createdAt: string): Extract<SigningKey, { kind: 'secret' }> {
  if (Buffer.byteLength(secret) < MIN_SECRET_BYTES)
    throw invalid(`secret must have at least ${MIN_SECRET_BYTES} bytes`);
  return { kid, kind: 'secret', alg: 'HS256', secret, createdAt };
}

/** The key in SPKI form as PEM, whatever form it was given in. */
function validatePublicKey(text: string, alg: PublicAlgorithm): string {
  const key = importPublicKey(text.trim());
  const { namedCurve, modulusLength = 0 } = key.asymmetricKeyDetails ?? {};
  const fits = {
    RS256: key.asymmetricKeyType === 'rsa' && modulusLength >= 2048,
    PS256: (key.asymmetricKeyType === 'rsa' || key.asymmetricKeyType === 'rsa-pss') && modulusLength >= 2048,
    ES256: key.asymmetricKeyType === 'ec' && namedCurve === 'prime256v1',
    EdDSA: key.asymmetricKeyType === 'ed25519',
  };
  const wanted = {
    RS256: 'an RSA key of at least 2048 bits',
    PS256: 'an RSA key of at least 2048 bits',
    ES256: 'an EC key on the curve P-256',
    EdDSA: 'an Ed25519 key',
  };
  if (!fits[alg]) throw invalid(`key must be ${wanted[alg]} for the algorithm ${alg}`);
  return key.export({ type: 'spki', format: 'pem' }).toString();
}

function importPublicKey(text: string): KeyObject {
  try {
    if (!text.startsWith('{')) {
      if (!text.includes('PRIVATE KEY')) return createPublicKey(text);
    } else {
      const jwk = JSON.parse(text) as Record<string, unknown>;
      if (jwk['d'] === undefined) return createPublicKey({ key: jwk, format: 'jwk' });
    }
  } catch {
    throw invalid('key must be a public key as PEM (BEGIN PUBLIC KEY) or JWK');
  }
  throw invalid('key must be a public key; a private key must never leave your backend');
}

function validateUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol !== 'https:' || url.username !== '' || url.password !== '')
    throw invalid('url must be an https address without credentials');
  if (!isPublicHost(url.hostname)) throw invalid('url must not lead to a private or local address');
  return url.href;
}
