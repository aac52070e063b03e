import { hash } from 'node:crypto';
import { CollabError } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import { newId, randomSecret } from '../../lib/ids.ts';
import type { AuditDetails } from '../../model/environments/audit.ts';
import { type Environment, parseEnvironment } from '../../model/environments/environment.ts';
import type { Via } from '../../model/event.ts';
import {
  type ApiKey,
  type KeyCreate,
  KeyCreateSchema,
  type KeyPointer,
  KeyRotateSchema,
  type ListedKey,
  type NewKey,
  type StoredKey,
} from '../../model/environments/key.ts';
import type { Reader, Transaction } from '../../ports/store.ts';
import { appendAuditRecord } from '../audit/audit.ts';
import type { BackendActor } from './actor.ts';
import type { Context } from '../context.ts';
import { getKeyUse, type KeyUse, lastUses, recordUse } from './key-uses.ts';
import { ENVIRONMENTS, KEY_HASHES, keysOf } from '../records/partitions.ts';
import { putRecord, readRecord, readRecords } from '../records/record.ts';
import { InputSchema, validate } from '../input/validate.ts';

/** The backend that authenticated with a secret key. */
export interface AuthenticatedBackend {
  readonly actor: BackendActor;
  /** As `SecretKey.rateLimit`. */
  readonly rateLimit: number | null;
}

const keyCreate = new InputSchema(KeyCreateSchema);
const keyRotate = new InputSchema(KeyRotateSchema);

const DEFAULT_OVERLAP_SECONDS = 86_400;

/** Creates a key of an environment. `input` is a `KeyCreate`. Throws `invalid_request`, `environment_not_found`. */
export async function createKey(ctx: Context, environment: Environment, input: unknown): Promise<NewKey> {
  const create = prepareKeyCreation(ctx, input);
  return ctx.store.transact((tx) => create(tx, environment));
}

/**
 * Validates the input of `createKey` and returns the function that creates the key in a transaction. Both throw like
 * `createKey`.
 */
export function prepareKeyCreation(
  ctx: Context,
  input: unknown,
): (tx: Transaction, environment: Environment) => Promise<NewKey> {
  const properties = validate(keyCreate, input);
  return async (tx, environment) => {
    const created = newKey(environment, properties, ctx.clock.now());
    await putKey(tx, created.key);
    await appendAuditRecord(ctx, tx, environment.id, {
      action: 'key.create',
      target: { kind: 'key', id: created.key.id },
      details: rightsOf(created.key),
    });
    return { key: withoutHash(created.key), value: created.value };
  };
}

/** The keys of an environment, including revoked and expired ones, oldest first. */
export async function listKeys(ctx: Context, environment: Environment): Promise<ListedKey[]> {
  const keys = await readRecords<StoredKey>(ctx.store, keysOf(environment.id));
  const used = await lastUses(ctx, environment.id);
  return keys.map(({ value: key }) => ({ ...withoutHash(key), lastUsedAt: used.get(key.id) ?? null }));
}

/** The key with an id, revoked and expired ones too. Throws `key_not_found`. */
export async function findKey(ctx: Context, keyId: string): Promise<ApiKey> {
  return withoutHash(await requireKey(ctx.store, keyId));
}

/** Revokes a key, effective with the next request in every worker. Idempotent. Throws `key_not_found`. */
export async function revokeKey(ctx: Context, keyId: string): Promise<ApiKey> {
  return ctx.store.transact(async (tx) => {
    const key = await requireKey(tx, keyId);
    if (key.revokedAt !== null) return withoutHash(key);
    const revoked: StoredKey = { ...key, revokedAt: timestamp(ctx.clock.now()) };
    putRecord(tx, keysOf(key.environmentId), key.id, revoked);
    tx.delete(KEY_HASHES, key.hash);
    await appendAuditRecord(ctx, tx, key.environmentId, { action: 'key.revoke', target: { kind: 'key', id: key.id } });
    return withoutHash(revoked);
  });
}

/**
 * Creates a key with the same properties. The old key expires after the overlap, or earlier if it was about to. If the
 * old key has a lifetime, the new one gets the same lifetime, counted from now. `input` is a `KeyRotate`. Throws
 * `key_not_found`, `invalid_request`.
 */
export async function rotateKey(ctx: Context, keyId: string, input: unknown): Promise<NewKey> {
  return ctx.store.transact(prepareKeyRotation(ctx, keyId, input));
}

/**
 * Validates the input of `rotateKey` and returns the function that rotates the key in a transaction. Both throw like
 * `rotateKey`.
 */
export function prepareKeyRotation(ctx: Context, keyId: string, input: unknown): (tx: Transaction) => Promise<NewKey> {
  const { overlapSeconds = DEFAULT_OVERLAP_SECONDS } = validate(keyRotate, input);
  return async (tx) => {
    const old = await requireKey(tx, keyId);
    const now = ctx.clock.now();
    if (old.revokedAt !== null || hasExpired(old.expiresAt, now)) {
      throw new CollabError('invalid_request', `The key ${keyId} is revoked or expired; create a new one`);
    }
    const environment = await requireEnvironmentOfKey(tx, old.environmentId);
    const lifetime =
      old.expiresAt === null
        ? null
        : Math.max(1, Math.round((Date.parse(old.expiresAt) - Date.parse(old.createdAt)) / 1000));
    const same = old.kind === 'secret' ? { scope: old.scope, rooms: old.rooms, rateLimit: old.rateLimit } : {};
    const created = newKey(environment, { kind: old.kind, name: old.name, expiresInSeconds: lifetime, ...same }, now);
    await putKey(tx, created.key);
    const overlapEnds = timestamp(now + overlapSeconds * 1000);
    const expiresAt = old.expiresAt !== null && old.expiresAt < overlapEnds ? old.expiresAt : overlapEnds;
    await putKey(tx, { ...old, expiresAt });
    await appendAuditRecord(ctx, tx, environment.id, {
      action: 'key.rotate',
      target: { kind: 'key', id: created.key.id },
      details: { replaces: old.id, overlapSeconds },
    });
    return { key: withoutHash(created.key), value: created.value };
  };
}

/**
 * Authenticates a backend by its secret key and records the use. Throws `invalid_key`, `environment_disabled`.
 */
export async function authenticateSecretKey(ctx: Context, value: string, via: Via): Promise<AuthenticatedBackend> {
  if (!value.startsWith('sk_')) throw otherKind('a secret key begins with sk_', value);
  const { backend } = acceptKey(ctx, value, via, await getKey(ctx, cacheKeyOf(value, via), via));
  if (backend === null) throw invalidKey();
  return backend;
}

/** The environment of a publishable key; records the use of the key. Throws `invalid_key`, `environment_disabled`. */
export async function authenticatePublishableKey(ctx: Context, value: string): Promise<Environment> {
  if (!value.startsWith('pk_')) throw otherKind('a publishable key begins with pk_', value);
  return acceptKey(ctx, value, 'ws', await getKey(ctx, cacheKeyOf(value, 'ws'), 'ws')).environment;
}

/**
 * Identifies a verified publishable key so that `recheckKey` can recheck it later. Calls with the same key share one
 * string.
 */
export function fingerprintOfKey(value: string): string {
  return cacheKeyOf(value, 'ws');
}

/**
 * Throws `invalid_key` if the publishable key with this fingerprint has been revoked or has expired, and
 * `environment_disabled`. Does not count as a use of the key.
 */
export async function recheckKey(ctx: Context, fingerprint: string): Promise<void> {
  requireValid(ctx, await getKey(ctx, fingerprint, 'ws'));
}

/** A key as the store's cache holds it. */
interface LoadedKey {
  readonly environment: Environment;
  readonly expiresAt: string | null;
  /** Null for a publishable key. */
  readonly backend: AuthenticatedBackend | null;
  readonly use: KeyUse;
}

const invalidKey = (): CollabError => new CollabError('invalid_key', 'Invalid API key');

/** The refusal of a value that is no key of the wanted kind: what it is instead, without any of its secret. */
function otherKind(wanted: string, value: string): CollabError {
  const [, kind] = VALUE_KINDS.find(([pattern]) => pattern.test(value)) ?? [];
  return new CollabError(
    'invalid_key',
    `Invalid API key: ${wanted}, and this is ${kind ?? `another text of ${value.length} characters`}`,
  );
}

const VALUE_KINDS: readonly (readonly [RegExp, string])[] = [
  [/^$/, 'empty'],
  [/^sk_/, 'a secret key'],
  [/^pk_/, 'a publishable key'],
  [/^adm_/, 'the token of an admin session'],
  [/^eyJ[\w-]*\.[\w-]*\.[\w-]*$/, 'a user token'],
];

const MAX_KEY_LENGTH = 128;
const MAX_CACHE_KEYS = 1_000;
/**
 * By the way a request comes in: value of a verified key -> its cache key. Hashing the value takes a tenth of a read
 * request.
 */
const cacheKeys: Readonly<Record<Via, Map<string, string>>> = { rest: new Map(), ws: new Map(), cli: new Map() };
const keyPartitions = [KEY_HASHES, ENVIRONMENTS];

/**
 * The cache key of an API key. It contains the hash of the value, so that the time of a lookup reveals nothing about
 * any key.
 */
function cacheKeyOf(value: string, via: Via): string {
  if (value.length > MAX_KEY_LENGTH) throw invalidKey();
  return cacheKeys[via].get(value) ?? `key ${via} ${hash('sha256', value, 'base64url')}`;
}

function getKey(ctx: Context, cacheKey: string, via: Via): Promise<LoadedKey> {
  // Every change of a key also writes its KEY_HASHES entry in the same commit, so the cache depends on two partitions
  // only.
  return ctx.store.cached(cacheKey, keyPartitions, () =>
    loadKey(ctx, cacheKey.slice(cacheKey.lastIndexOf(' ') + 1), via),
  );
}

/** Records a use of a key and remembers its cache key. Throws unless the key is valid. */
function acceptKey(ctx: Context, value: string, via: Via, key: LoadedKey): LoadedKey {
  requireValid(ctx, key);
  recordUse(key.use, ctx.clock.now());
  if (!cacheKeys[via].has(value)) rememberCacheKey(cacheKeys[via], value, cacheKeyOf(value, via));
  return key;
}

function requireValid(ctx: Context, { expiresAt, environment }: LoadedKey): void {
  if (hasExpired(expiresAt, ctx.clock.now())) throw invalidKey();
  if (environment.disabled)
    throw new CollabError('environment_disabled', 'The environment has been disabled by its operator');
}

function rememberCacheKey(byValue: Map<string, string>, value: string, cacheKey: string): void {
  if (byValue.size >= MAX_CACHE_KEYS) byValue.clear();
  byValue.set(value, cacheKey);
}

async function loadKey(ctx: Context, digest: string, via: Via): Promise<LoadedKey> {
  const pointer = await readRecord<KeyPointer>(ctx.store, KEY_HASHES, digest);
  if (pointer === undefined) throw invalidKey();
  const key = await readRecord<StoredKey>(ctx.store, keysOf(pointer.environmentId), pointer.keyId);
  const storedEnvironment = await ctx.store.get(ENVIRONMENTS, pointer.environmentId);
  if (key === undefined || storedEnvironment === undefined) throw invalidKey();
  if (key.revokedAt !== null) throw invalidKey();
  const environment = parseEnvironment(storedEnvironment);
  const use = getKeyUse(ctx, environment.id, key.id);
  if (key.kind === 'publishable') return { environment, expiresAt: key.expiresAt, backend: null, use };
  const rooms = key.rooms === null ? null : [key.rooms];
  const actor: BackendActor = { kind: 'backend', environment, keyId: key.id, scope: key.scope, rooms, via };
  return { environment, expiresAt: key.expiresAt, backend: { actor, rateLimit: key.rateLimit }, use };
}

const hasExpired = (expiresAt: string | null, now: number): boolean =>
  expiresAt !== null && Date.parse(expiresAt) <= now;

function newKey(environment: Environment, properties: KeyCreate, now: number): { key: StoredKey; value: string } {
  const secret = properties.kind === 'secret';
  const value = `${secret ? 'sk' : 'pk'}_${environment.slug.replaceAll('-', '').slice(0, 12)}_${randomSecret(32)}`;
  const { expiresInSeconds = null, rateLimit = null } = properties;
  const common = {
    id: newId('key_', now),
    environmentId: environment.id,
    name: properties.name ?? '',
    preview: `${value.slice(0, value.lastIndexOf('_') + 5)}…`,
    createdAt: timestamp(now),
    expiresAt: expiresInSeconds === null ? null : timestamp(now + expiresInSeconds * 1000),
    revokedAt: null,
    hash: hash('sha256', value, 'base64url'),
  };
  if (!secret) return { key: { kind: 'publishable', ...common, value }, value };
  return {
    key: {
      kind: 'secret',
      ...common,
      scope: properties.scope ?? 'full',
      rooms: properties.rooms ?? null,
      rateLimit: rateLimit === 'unlimited' ? 0 : rateLimit,
    },
    value,
  };
}

/** The rights of a key, for the audit log. */
function rightsOf(key: StoredKey): AuditDetails {
  const { kind, expiresAt } = key;
  return key.kind === 'publishable'
    ? { kind, expiresAt }
    : { kind, expiresAt, scope: key.scope, confined: key.rooms !== null, rateLimit: key.rateLimit };
}

async function putKey(tx: Transaction, key: StoredKey): Promise<void> {
  await requireEnvironmentOfKey(tx, key.environmentId);
  const pointer: KeyPointer = { environmentId: key.environmentId, keyId: key.id, expiresAt: key.expiresAt };
  putRecord(tx, keysOf(key.environmentId), key.id, key);
  putRecord(tx, KEY_HASHES, key.hash, pointer);
}

async function requireEnvironmentOfKey(tx: Transaction, environmentId: string): Promise<Environment> {
  const stored = await tx.get(ENVIRONMENTS, environmentId);
  if (stored === undefined) throw new CollabError('environment_not_found', 'The environment has been deleted');
  return parseEnvironment(stored);
}

async function requireKey(reader: Reader, keyId: string): Promise<StoredKey> {
  if (/^[\x21-\x7e]{1,128}$/.test(keyId)) {
    for (const { key: environmentId } of await reader.range(ENVIRONMENTS)) {
      const key = await readRecord<StoredKey>(reader, keysOf(environmentId), keyId);
      if (key !== undefined) return key;
    }
  }
  throw new CollabError('key_not_found', `No key has the id ${keyId.slice(0, 128)}`);
}

function withoutHash(key: StoredKey): ApiKey {
  const { hash: _, ...rest } = key;
  return rest;
}
