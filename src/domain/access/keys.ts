import { hash } from 'node:crypto';
import { CollabError } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import { newId, randomSecret } from '../../lib/ids.ts';
import { type Environment, parseEnvironment } from '../../model/environment.ts';
import type { Via } from '../../model/event.ts';
import { type ApiKey, type KeyCreate, KeyCreateSchema, type KeyPointer, KeyRotateSchema, type ListedKey, type NewKey, type StoredKey } from '../../model/key.ts';
import type { Transaction } from '../../ports/store.ts';
import type { BackendActor } from './actor.ts';
import type { Context } from '../context.ts';
import { type KeyUse, lastUses, recordUse, getKeyUse } from './key-uses.ts';
import { ENVIRONMENTS, KEY_HASHES, keysOf } from '../records/partitions.ts';
import { InputSchema, validate } from '../input/validate.ts';

export type { KeyCreate } from '../../model/key.ts';

/** Who a secret key speaks for. */
export interface AuthenticatedBackend {
  readonly actor: BackendActor;
  /** As `SecretKey.rateLimit`. */
  readonly rateLimit: number | null;
}

const keyCreate = new InputSchema(KeyCreateSchema);
const keyRotate = new InputSchema(KeyRotateSchema);

const OVERLAP_SECONDS = 86_400;

/** Makes a key of an environment. `input` is a `KeyCreate`. Throws `invalid_request`, `environment_not_found`. */
export async function createKey(ctx: Context, environment: Environment, input: unknown): Promise<NewKey> {
  const create = prepareKeyCreation(ctx, input);
  return ctx.store.transact((tx) => create(tx, environment));
}

/** Checks the input of `createKey` at once and returns what does its work in a transaction. Both throw as that does. */
export function prepareKeyCreation(ctx: Context, input: unknown): (tx: Transaction, environment: Environment) => Promise<NewKey> {
  const wanted = validate(keyCreate, input);
  return async (tx, environment) => {
    const fresh = newKey(environment, wanted, ctx.clock.now());
    await putKey(tx, fresh.key);
    return { key: withoutHash(fresh.key), value: fresh.value };
  };
}

/** The keys of an environment, revoked and expired ones too, oldest first. */
export async function listKeys(ctx: Context, environment: Environment): Promise<ListedKey[]> {
  const entries = await ctx.store.range(keysOf(environment.id));
  const used = await lastUses(ctx, environment.id);
  return entries.map((entry) => {
    const key = withoutHash(JSON.parse(entry.value) as StoredKey);
    return { ...key, lastUsedAt: used.get(key.id) ?? null };
  });
}

/** Makes a key stop working, from the next request on in every worker. Again on the same key changes nothing. Throws `key_not_found`. */
export async function revokeKey(ctx: Context, keyId: string): Promise<ApiKey> {
  return ctx.store.transact(async (tx) => {
    const key = await requireKey(tx, keyId);
    if (key.revokedAt !== null) return withoutHash(key);
    const revoked: StoredKey = { ...key, revokedAt: timestamp(ctx.clock.now()) };
    tx.put(keysOf(key.environmentId), key.id, JSON.stringify(revoked));
    tx.delete(KEY_HASHES, key.hash);
    return withoutHash(revoked);
  });
}

/**
 * Makes a key with the same properties; the old one expires after the overlap, or when it would have anyway. A key that
 * expires gives its whole lifetime to the new one. `input` is a `KeyRotate`. Throws `key_not_found`, `invalid_request`.
 */
export async function rotateKey(ctx: Context, keyId: string, input: unknown): Promise<NewKey> {
  return ctx.store.transact(prepareKeyRotation(ctx, keyId, input));
}

/** Checks the input of `rotateKey` at once and returns what does its work in a transaction. Both throw as that does. */
export function prepareKeyRotation(ctx: Context, keyId: string, input: unknown): (tx: Transaction) => Promise<NewKey> {
  const { overlapSeconds = OVERLAP_SECONDS } = validate(keyRotate, input);
  return async (tx) => {
    const old = await requireKey(tx, keyId);
    const now = ctx.clock.now();
    if (old.revokedAt !== null || hasExpired(old.expiresAt, now)) {
      throw new CollabError('invalid_request', `The key ${keyId} is revoked or expired; create a new one`);
    }
    const environment = await requireEnvironmentOfKey(tx, old.environmentId);
    const lifetime = old.expiresAt === null ? null : Math.max(1, Math.round((Date.parse(old.expiresAt) - Date.parse(old.createdAt)) / 1000));
    const same = old.kind === 'secret' ? { scope: old.scope, rooms: old.rooms, rateLimit: old.rateLimit } : {};
    const fresh = newKey(environment, { kind: old.kind, name: old.name, expiresInSeconds: lifetime, ...same }, now);
    await putKey(tx, fresh.key);
    const overlapEnds = timestamp(now + overlapSeconds * 1000);
    const expiresAt = old.expiresAt !== null && old.expiresAt < overlapEnds ? old.expiresAt : overlapEnds;
    await putKey(tx, { ...old, expiresAt });
    return { key: withoutHash(fresh.key), value: fresh.value };
  };
}

/**
 * The holder of a secret key; a promise only if this process has to read the key from the store, because it has not seen it
 * yet or it has changed since. Throws or rejects with `invalid_key`, `environment_disabled`.
 */
export function authenticateSecretKey(ctx: Context, value: string, via: Via): AuthenticatedBackend | Promise<AuthenticatedBackend> {
  const name = cacheKeys[via].get(value);
  const cached = name === undefined ? undefined : ctx.store.peek<LoadedKey>(name);
  if (cached !== undefined) return requireBackendKey(requireValidAndRecordUse(ctx, value, via, cached));
  if (!value.startsWith('sk_')) throw invalidKey();
  return getKey(ctx, cacheKeyOf(value, via), via).then((known) => requireBackendKey(requireValidAndRecordUse(ctx, value, via, known)));
}

/** The environment that a publishable key names. Throws `invalid_key`, `environment_disabled`. */
export async function authenticatePublishableKey(ctx: Context, value: string): Promise<Environment> {
  if (!value.startsWith('pk_')) throw invalidKey();
  return requireValidAndRecordUse(ctx, value, 'ws', await getKey(ctx, cacheKeyOf(value, 'ws'), 'ws')).environment;
}

/** A publishable key that was good, to ask later whether it still is; one and the same text for all who hold the key. */
export function fingerprintOfKey(value: string): string {
  return cacheKeyOf(value, 'ws');
}

/**
 * Makes sure that the publishable key of a trace is still good, without counting that as a use of it. Throws `invalid_key`
 * once it is revoked or has expired, `environment_disabled`.
 */
export async function recheckKey(ctx: Context, trace: string): Promise<void> {
  requireValid(ctx, await getKey(ctx, trace, 'ws'));
}

interface LoadedKey {
  readonly environment: Environment;
  readonly expiresAt: string | null;
  readonly backend: AuthenticatedBackend | null;
  readonly use: KeyUse;
}

const invalidKey = (): CollabError => new CollabError('invalid_key', 'Invalid API key');

const MAX_KEY_LENGTH = 128;
const MAX_CACHE_KEYS = 1_000;
const cacheKeys: Readonly<Record<Via, Map<string, string>>> = { rest: new Map(), ws: new Map(), cli: new Map() };
const keyPartitions = [KEY_HASHES, ENVIRONMENTS];

/** What the memo calls a key: it is found by its hash, so that how long that takes tells nothing about any key. */
function cacheKeyOf(value: string, via: Via): string {
  if (value.length > MAX_KEY_LENGTH) throw invalidKey();
  return cacheKeys[via].get(value) ?? `key ${via} ${hash('sha256', value, 'base64url')}`;
}

function getKey(ctx: Context, name: string, via: Via): Promise<LoadedKey> {
  // Every change of a key changes its hash's entry in the same commit, so that these two partitions stand for all.
  return ctx.store.cached(name, keyPartitions, () => loadKey(ctx, name.slice(name.lastIndexOf(' ') + 1), via));
}

/** Notes a use of the key whose value is given. Throws unless it is good. */
function requireValidAndRecordUse(ctx: Context, value: string, via: Via, known: LoadedKey): LoadedKey {
  requireValid(ctx, known);
  recordUse(known.use, ctx.clock.now());
  if (!cacheKeys[via].has(value)) rememberCacheKey(cacheKeys[via], value, cacheKeyOf(value, via));
  return known;
}

function requireBackendKey({ backend }: LoadedKey): AuthenticatedBackend {
  if (backend === null) throw invalidKey();
  return backend;
}

function requireValid(ctx: Context, { expiresAt, environment }: LoadedKey): void {
  if (hasExpired(expiresAt, ctx.clock.now())) throw invalidKey();
  if (environment.disabled) throw new CollabError('environment_disabled', 'The environment has been disabled by its operator');
}

/** Remembers what the memo calls a key that has proved good: hashing it would be a tenth of a read request. */
function rememberCacheKey(known: Map<string, string>, value: string, name: string): void {
  if (known.size >= MAX_CACHE_KEYS) known.clear();
  known.set(value, name);
}

async function loadKey(ctx: Context, digest: string, via: Via): Promise<LoadedKey> {
  const found = await ctx.store.get(KEY_HASHES, digest);
  if (found === undefined) throw invalidKey();
  const pointer = JSON.parse(found) as KeyPointer;
  const storedKey = await ctx.store.get(keysOf(pointer.environmentId), pointer.keyId);
  const storedEnvironment = await ctx.store.get(ENVIRONMENTS, pointer.environmentId);
  if (storedKey === undefined || storedEnvironment === undefined) throw invalidKey();
  const key = JSON.parse(storedKey) as StoredKey;
  if (key.revokedAt !== null) throw invalidKey();
  const environment = parseEnvironment(storedEnvironment);
  const use = getKeyUse(ctx, environment.id, key.id);
  if (key.kind === 'publishable') return { environment, expiresAt: key.expiresAt, backend: null, use };
  const rooms = key.rooms === null ? null : [key.rooms];
  const actor: BackendActor = { kind: 'backend', environment, keyId: key.id, scope: key.scope, rooms, via };
  return { environment, expiresAt: key.expiresAt, backend: { actor, rateLimit: key.rateLimit }, use };
}

const hasExpired = (expiresAt: string | null, now: number): boolean => expiresAt !== null && Date.parse(expiresAt) <= now;

function newKey(environment: Environment, wanted: KeyCreate, now: number): { key: StoredKey; value: string } {
  const secret = wanted.kind === 'secret';
  const value = `${secret ? 'sk' : 'pk'}_${environment.slug.replaceAll('-', '').slice(0, 12)}_${randomSecret(32)}`;
  const { expiresInSeconds = null, rateLimit = null } = wanted;
  const common = {
    id: newId('key_', now),
    environmentId: environment.id,
    name: wanted.name ?? '',
    preview: `${value.slice(0, value.lastIndexOf('_') + 5)}…`,
    createdAt: timestamp(now),
    expiresAt: expiresInSeconds === null ? null : timestamp(now + expiresInSeconds * 1000),
    revokedAt: null,
    hash: hash('sha256', value, 'base64url'),
  };
  if (!secret) return { key: { kind: 'publishable', ...common, value }, value };
  return { key: { kind: 'secret', ...common, scope: wanted.scope ?? 'full', rooms: wanted.rooms ?? null, rateLimit: rateLimit === 'unlimited' ? 0 : rateLimit }, value };
}

async function putKey(tx: Transaction, key: StoredKey): Promise<void> {
  await requireEnvironmentOfKey(tx, key.environmentId);
  const pointer: KeyPointer = { environmentId: key.environmentId, keyId: key.id, expiresAt: key.expiresAt };
  tx.put(keysOf(key.environmentId), key.id, JSON.stringify(key));
  tx.put(KEY_HASHES, key.hash, JSON.stringify(pointer));
}

async function requireEnvironmentOfKey(tx: Transaction, environmentId: string): Promise<Environment> {
  const stored = await tx.get(ENVIRONMENTS, environmentId);
  if (stored === undefined) throw new CollabError('environment_not_found', 'The environment has been deleted');
  return parseEnvironment(stored);
}

async function requireKey(tx: Transaction, keyId: string): Promise<StoredKey> {
  if (/^[\x21-\x7e]{1,128}$/.test(keyId)) {
    for (const { key: environmentId } of await tx.range(ENVIRONMENTS)) {
      const stored = await tx.get(keysOf(environmentId), keyId);
      if (stored !== undefined) return JSON.parse(stored) as StoredKey;
    }
  }
  throw new CollabError('key_not_found', `No key has the id ${keyId.slice(0, 128)}`);
}

function withoutHash(key: StoredKey): ApiKey {
  const { hash: _, ...rest } = key;
  return rest;
}
