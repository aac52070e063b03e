import { createPublicKey, createSecretKey, hash, type KeyObject } from 'node:crypto';
import {
  createRemoteJWKSet,
  customFetch,
  decodeProtectedHeader,
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
  SignJWT,
} from 'jose';
import { CollabError, invalidField } from '../../model/errors.ts';
import { BoundedMap } from '../../lib/bounded-map.ts';
import { clockOffset, timestamp } from '../../lib/clock.ts';
import { publicFetch } from '../../lib/addresses/public-fetch.ts';
import { type Environment, limitsOf } from '../../model/environments/environment.ts';
import type { Via } from '../../model/event.ts';
import type { SigningAlgorithm, SigningKey } from '../../model/environments/key.ts';
import { checkId } from '../input/bounds.ts';
import { type Claims, parseClaims, TOKEN_TOLERANCE_SECONDS } from './claims.ts';
import type { UserActor } from './actor.ts';
import type { Context } from '../context.ts';
import { authenticatePublishableKey, recheckKey, fingerprintOfKey } from './keys.ts';
import { ENVIRONMENTS, signingKeysOf } from '../records/partitions.ts';
import { readRecords } from '../records/record.ts';

export type { Claims } from './claims.ts';

const MAX_TOKEN_LENGTH = 8_192;
const MAX_VERIFIED_TOKENS = 20_000;

/** The content of a token to sign. */
export interface TokenRequest {
  readonly userId: string;
  /** 1 to `jwtMaxLifetime` of the environment. */
  readonly ttlSeconds: number;
  readonly name?: string | undefined;
  readonly avatarUrl?: string | undefined;
  readonly role?: UserActor['role'] | undefined;
  readonly rooms?: readonly string[] | undefined;
  /** As `UserActor.confinedKeyId`; none if absent or null. */
  readonly confinedKeyId?: string | null | undefined;
}

/** The claims of a token that was verified. */
export interface VerifiedClaims extends Claims {
  /** Identifies the signing key. A later key with the same kid has a different value. */
  readonly signedBy: string;
}

/** Identifies the credentials of an authenticated socket, so that they can be rechecked. */
export interface CredentialReference {
  /** Of the publishable key, by `fingerprintOfKey`. */
  readonly keyFingerprint: string;
  /** As `VerifiedClaims.signedBy`. */
  readonly signedBy: string;
}

interface Verifier {
  readonly kid: string;
  /** As `VerifiedClaims.signedBy`. */
  readonly id: string;
  readonly alg: SigningAlgorithm;
  /** Whether its tokens must have an `aud` claim: an identity provider signs tokens for many audiences with one key. */
  readonly mustNameAudience: boolean;
  readonly key: KeyObject | JWTVerifyGetKey;
  readonly isKeySet: boolean;
}

/** The imported keys of an environment, and the tokens that they have verified. */
interface Keyring {
  readonly verifiers: readonly Verifier[];
  readonly verifierIds: ReadonlySet<string>;
  readonly verified: BoundedMap<string, VerifiedClaims>;
  /** Wall-clock time minus monotonic time at its creation, in milliseconds; null without a key set. */
  readonly clockOffset: number | null;
}

/**
 * jose measures the cool-down of a key set by the wall clock. After a step of the clock the set could refuse new keys
 * for as long as the step, so it is recreated.
 */
const CLOCK_STEP_MS = 30_000;

const invalidToken = (reason: string): CollabError => new CollabError('invalid_token', `Invalid token: ${reason}`);

/**
 * Verifies a user token and returns its claims. The result is cached until a signing key or an environment changes;
 * expiry is checked on every call. Throws `invalid_token`, `token_expired`.
 */
export async function verifyUserToken(ctx: Context, environment: Environment, token: string): Promise<VerifiedClaims> {
  if (token.length > MAX_TOKEN_LENGTH) throw invalidToken(`it is longer than ${MAX_TOKEN_LENGTH} characters`);
  const keyring = await keyringOf(ctx, environment);
  const digest = hash('sha256', token, 'base64url');
  let claims = keyring.verified.get(digest);
  if (claims === undefined) {
    const verifier = selectVerifier(keyring, token);
    claims = {
      ...parseClaims(await verifyPayload(ctx, environment, verifier, token), environment, ctx.clock.now()),
      signedBy: verifier.id,
    };
    keyring.verified.set(digest, claims);
  }
  if (claims.expiresAt + TOKEN_TOLERANCE_SECONDS * 1000 <= ctx.clock.now()) throw expiredToken();
  return claims;
}

/**
 * Signs a token with the newest HS256 secret of the environment. Throws `invalid_request` if there is none or a field
 * is out of bounds. `expiresAt` is an ISO 8601 time.
 */
export async function signUserToken(
  ctx: Context,
  environment: Environment,
  request: TokenRequest,
): Promise<{ token: string; expiresAt: string }> {
  const { userId, ttlSeconds, name, avatarUrl, role, rooms, confinedKeyId } = request;
  checkId('userId', userId, limitsOf(environment));
  const { jwtMaxLifetime, jwtIssuer } = environment.settings;
  if (!Number.isInteger(ttlSeconds) || ttlSeconds < 1 || ttlSeconds > jwtMaxLifetime) {
    throw invalidField('ttl', `must be between 1 and ${jwtMaxLifetime} seconds`, ttlSeconds);
  }
  const secret = newestSecret(await signingKeys(ctx, environment));
  const issuedAt = Math.floor(ctx.clock.now() / 1000);
  const payload: JWTPayload = { name, picture: avatarUrl, role, rooms, confinedKey: confinedKeyId ?? undefined };
  const jwt = new SignJWT(payload)
    .setProtectedHeader({ alg: 'HS256', kid: secret.kid, typ: 'JWT' })
    .setSubject(userId)
    .setAudience(environment.id)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + ttlSeconds);
  if (jwtIssuer !== null) jwt.setIssuer(jwtIssuer);
  parseClaims({ ...payload, sub: userId, exp: issuedAt + ttlSeconds }, environment, issuedAt * 1000);
  const token = await jwt.sign(createSecretKey(Buffer.from(secret.secret)));
  return { token, expiresAt: timestamp((issuedAt + ttlSeconds) * 1000) };
}

/** A user authenticated by a publishable key and a user token, and the references to recheck both. */
export interface AuthenticatedUser {
  readonly actor: UserActor;
  readonly claims: VerifiedClaims;
  /** As `CredentialReference.keyFingerprint`. */
  readonly keyFingerprint: string;
}

/**
 * Authenticates a user by a publishable key and a user token. Throws `invalid_key`, `environment_disabled`,
 * `invalid_token`, `token_expired`. Call `recordUserFromToken` with the claims once the user is admitted.
 */
export async function authenticateUser(
  ctx: Context,
  publishableKey: string,
  token: string,
  via: Via,
): Promise<AuthenticatedUser> {
  const environment = await authenticatePublishableKey(ctx, publishableKey);
  const claims = await verifyUserToken(ctx, environment, token);
  const { userId, role, rooms, confinedKeyId } = claims;
  return {
    actor: { kind: 'user', environment, userId, role, rooms, confinedKeyId, via },
    claims,
    keyFingerprint: fingerprintOfKey(publishableKey),
  };
}

/**
 * Rechecks credentials of an environment. The returned function gives the error of each: `invalid_key` if its key was
 * revoked or has expired, `invalid_token` if its signing key was removed, `environment_disabled`, or null while it is
 * valid. Cheap: nothing is read from the store until a key changes.
 */
export async function recheckCredentials(
  ctx: Context,
  environment: Environment,
  credentials: Iterable<CredentialReference>,
): Promise<(credential: CredentialReference) => CollabError | null> {
  const refused = new Map<string, CollabError>();
  const recheck = async (fingerprint: string): Promise<void> => {
    try {
      await recheckKey(ctx, fingerprint);
    } catch (thrown) {
      if (!(thrown instanceof CollabError)) throw thrown;
      refused.set(fingerprint, thrown);
    }
  };
  // Together, because a store on another machine is asked whether they have changed.
  const [{ verifierIds }] = await Promise.all([
    keyringOf(ctx, environment),
    ...[...fingerprintsOf(credentials)].map(recheck),
  ]);
  return ({ keyFingerprint, signedBy }) =>
    refused.get(keyFingerprint) ??
    (verifierIds.has(signedBy) ? null : invalidToken('the key that signed it has been removed'));
}

function fingerprintsOf(credentials: Iterable<CredentialReference>): Set<string> {
  const fingerprints = new Set<string>();
  for (const { keyFingerprint } of credentials) fingerprints.add(keyFingerprint);
  return fingerprints;
}

function newestSecret(keys: readonly SigningKey[]): Extract<SigningKey, { kind: 'secret' }> {
  const secrets = keys.filter((key) => key.kind === 'secret').sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
  const [newest] = secrets;
  if (newest === undefined)
    throw new CollabError(
      'invalid_request',
      'The environment has no signing secret, so the server cannot sign tokens for it; the owner of its signing keys can',
    );
  return newest;
}

/** The registered keys: the same array until a key or an environment changes. */
function signingKeys(ctx: Context, environment: Environment): Promise<readonly SigningKey[]> {
  const partition = signingKeysOf(environment.id);
  return ctx.store.cached(`signing ${environment.id}`, [partition, ENVIRONMENTS], async () => {
    const keys = await readRecords<SigningKey>(ctx.store, partition);
    return keys.map(({ value }) => value);
  });
}

const keyrings = new WeakMap<readonly SigningKey[], Keyring>();

async function keyringOf(ctx: Context, environment: Environment): Promise<Keyring> {
  const keys = await signingKeys(ctx, environment);
  let keyring = keyrings.get(keys);
  if (keyring === undefined || clockWasStepped(ctx, keyring)) {
    const verifiers = keys.map((key) => createVerifier(key, ctx.fetch ?? publicFetch));
    keyring = {
      verifiers,
      verifierIds: new Set(verifiers.map(({ id }) => id)),
      verified: new BoundedMap(MAX_VERIFIED_TOKENS),
      clockOffset: verifiers.some(({ isKeySet }) => isKeySet) ? clockOffset(ctx.clock) : null,
    };
    keyrings.set(keys, keyring);
  }
  return keyring;
}

const clockWasStepped = (ctx: Context, keyring: Keyring): boolean =>
  keyring.clockOffset !== null && Math.abs(clockOffset(ctx.clock) - keyring.clockOffset) > CLOCK_STEP_MS;

function createVerifier(key: SigningKey, fetch: typeof publicFetch): Verifier {
  const { kid, alg } = key;
  const id = `${kid} ${key.createdAt}`;
  switch (key.kind) {
    case 'secret':
      return { kid, id, alg, mustNameAudience: false, isKeySet: false, key: createSecretKey(Buffer.from(key.secret)) };
    case 'public':
      return { kid, id, alg, mustNameAudience: true, isKeySet: false, key: createPublicKey(key.key) };
    case 'jwks':
      return {
        kid,
        id,
        alg,
        mustNameAudience: true,
        isKeySet: true,
        key: createRemoteJWKSet(new URL(key.url), { [customFetch]: fetch }),
      };
  }
}

async function verifyPayload(
  ctx: Context,
  environment: Environment,
  verifier: Verifier,
  token: string,
): Promise<JWTPayload> {
  const { jwtIssuer } = environment.settings;
  const options = {
    algorithms: [verifier.alg],
    clockTolerance: TOKEN_TOLERANCE_SECONDS,
    requiredClaims: ['sub', 'exp'],
    currentDate: new Date(ctx.clock.now()),
    ...(jwtIssuer === null ? {} : { issuer: jwtIssuer }),
  };
  let payload: JWTPayload;
  try {
    // One call for each overload: with a key, and with a function that finds one in a key set.
    ({ payload } =
      typeof verifier.key === 'function'
        ? await jwtVerify(token, verifier.key, options)
        : await jwtVerify(token, verifier.key, options));
  } catch (thrown) {
    throw verificationError(thrown, verifier);
  }
  checkAudience(payload, environment, verifier);
  return payload;
}

/** The key that the token names. A key set is used for every kid that is not registered. */
function selectVerifier({ verifiers }: Keyring, token: string): Verifier {
  const kid = kidOf(token);
  const [only, ...others] = verifiers;
  if (only === undefined) throw invalidToken('the environment has no signing key');
  if (kid === undefined) {
    if (others.length > 0) throw invalidToken('it names no key (kid), and the environment has several');
    return only;
  }
  const verifier =
    verifiers.find((candidate) => !candidate.isKeySet && candidate.kid === kid) ??
    verifiers.find((candidate) => candidate.isKeySet);
  if (verifier === undefined) throw invalidToken('no signing key of the environment has its kid');
  return verifier;
}

function kidOf(token: string): string | undefined {
  let kid: unknown;
  try {
    ({ kid } = decodeProtectedHeader(token));
  } catch {
    throw invalidToken('it is not a JWT');
  }
  if (kid !== undefined && typeof kid !== 'string') throw invalidToken('its kid must be a string');
  return kid;
}

function checkAudience({ aud }: JWTPayload, environment: Environment, { mustNameAudience }: Verifier): void {
  if (aud === undefined && !mustNameAudience) return;
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  if (audiences.includes(environment.id) || audiences.includes(environment.slug)) return;
  throw invalidToken('its audience (aud) must be the id or the slug of the environment');
}

const expiredToken = (): CollabError => new CollabError('token_expired', 'The token has expired');

function verificationError(thrown: unknown, { isKeySet }: Verifier): CollabError {
  if (thrown instanceof errors.JWTExpired) return expiredToken();
  if (thrown instanceof errors.JWTClaimValidationFailed)
    return invalidToken(`its claim ${thrown.claim} is ${thrown.reason === 'missing' ? 'missing' : 'not acceptable'}`);
  if (thrown instanceof errors.JWSSignatureVerificationFailed) return invalidToken('its signature does not match');
  if (thrown instanceof errors.JOSEAlgNotAllowed) return invalidToken('its algorithm (alg) is not that of the key');
  if (isKeySet && !(thrown instanceof errors.JOSEError))
    return invalidToken('the key set (JWKS) of the environment can’t be read');
  return invalidToken('it can’t be verified');
}
