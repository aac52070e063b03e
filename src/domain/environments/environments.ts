import { CollabError, invalidField } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import { newId } from '../../lib/ids.ts';
import {
  defaultSettings,
  type Environment,
  EnvironmentCreateSchema,
  type EnvironmentPatch,
  EnvironmentPatchSchema,
  type EnvironmentSettings,
  parseEnvironment,
  SLUG_PATTERN,
} from '../../model/environments/environment.ts';
import type { StoredKey } from '../../model/environments/key.ts';
import { defaultQuotas, type QuotasPatch } from '../../model/environments/quotas.ts';
import type { Reader, Transaction } from '../../ports/store.ts';
import { readHead, appendAuditRecord } from '../audit/audit.ts';
import { changedSettings } from '../audit/changed-settings.ts';
import type { Context } from '../context.ts';
import { findPartlyDeleted, finishDeletion, isPartlyDeleted, markDeletion } from './unfinished-work.ts';
import { ENVIRONMENTS, KEY_HASHES, keysOf, SLUGS } from '../records/partitions.ts';
import { putRecord, readRecords } from '../records/record.ts';
import { putFirstSecret } from '../access/signing-keys.ts';
import { newStreamId, streamOf } from '../events/streams.ts';
import { markCounted } from '../quotas/usage-count.ts';
import { markOrderComplete } from '../users/user-order.ts';
import { InputSchema, validate } from '../input/validate.ts';

const environmentCreate = new InputSchema(EnvironmentCreateSchema);
const environmentPatch = new InputSchema(EnvironmentPatchSchema);

/** A new environment, with the secret that signs its user tokens, which is shown only once. */
export interface NewEnvironment {
  readonly environment: Environment;
  readonly jwtSecret: string;
  readonly jwtKid: string;
}

/**
 * Creates an environment without keys. `input` is `{slug, name?}`; the name defaults to the slug.
 * Throws `invalid_request`, `slug_taken`.
 */
export async function createEnvironment(ctx: Context, input: unknown): Promise<Environment> {
  return ctx.store.transact(prepareEnvironment(ctx, input));
}

/** As `createEnvironment`, with a secret that signs user tokens, created in the same commit. */
export async function createSignedEnvironment(ctx: Context, input: unknown): Promise<NewEnvironment> {
  return ctx.store.transact(prepareSignedEnvironment(ctx, input));
}

/**
 * Validates the input of `createSignedEnvironment` and returns the function that creates the environment in a
 * transaction. Both throw like `createSignedEnvironment`.
 */
export function prepareSignedEnvironment(ctx: Context, input: unknown): (tx: Transaction) => Promise<NewEnvironment> {
  const create = prepareEnvironment(ctx, input);
  return async (tx) => {
    const environment = await create(tx);
    const { kid, secret } = putFirstSecret(tx, environment, ctx.clock.now());
    return { environment, jwtSecret: secret, jwtKid: kid };
  };
}

function prepareEnvironment(ctx: Context, input: unknown): (tx: Transaction) => Promise<Environment> {
  const { slug, name = slug } = validate(environmentCreate, input);
  if (!SLUG_PATTERN.test(slug)) {
    throw invalidField('slug', 'must be 1 to 63 lower-case letters, digits and inner hyphens', slug);
  }
  return async (tx) => {
    if ((await tx.get(SLUGS, slug)) !== undefined)
      throw new CollabError('slug_taken', `The slug ${slug} is taken by another environment`);
    const now = ctx.clock.now();
    const at = timestamp(now);
    const environment: Environment = {
      id: newId('env_', now),
      streamId: newStreamId(),
      slug,
      name,
      disabled: false,
      settings: defaultSettings,
      createdAt: at,
      updatedAt: at,
    };
    tx.put(SLUGS, slug, environment.id);
    putRecord(tx, ENVIRONMENTS, environment.id, environment);
    markOrderComplete(tx, environment.id);
    markCounted(tx, environment.id);
    const target = { kind: 'environment', id: environment.id } as const;
    for (const chain of [null, environment.id])
      await appendAuditRecord(ctx, tx, chain, { action: 'environment.create', target, details: { slug } });
    return environment;
  };
}

/** The environment with this id: the same object until any environment changes. Throws `environment_not_found`. */
export function environmentById(ctx: Context, id: string): Promise<Environment> {
  return ctx.store.cached(`environment ${id}`, [ENVIRONMENTS], () => requireEnvironment(ctx.store, id));
}

/** The environment with this id or slug. Throws `environment_not_found`. */
export async function findEnvironment(ctx: Context, idOrSlug: string): Promise<Environment> {
  const id = SLUG_PATTERN.test(idOrSlug) ? await ctx.store.get(SLUGS, idOrSlug) : undefined;
  return environmentById(ctx, id ?? idOrSlug);
}

/** As `findEnvironment`, in a transaction. */
export async function findEnvironmentWithin(tx: Pick<Reader, 'get'>, idOrSlug: string): Promise<Environment> {
  const id = SLUG_PATTERN.test(idOrSlug) ? await tx.get(SLUGS, idOrSlug) : undefined;
  return requireEnvironment(tx, id ?? idOrSlug);
}

/** All environments, oldest first. */
export function listEnvironments(ctx: Context): Promise<readonly Environment[]> {
  return ctx.store.cached('environments', [ENVIRONMENTS], async () => {
    const entries = await ctx.store.range(ENVIRONMENTS);
    return entries.map((entry) => parseEnvironment(entry.value));
  });
}

/** The validated input of `updateEnvironment`. Throws `invalid_request`. */
export function validateEnvironmentPatch(input: unknown): EnvironmentPatch {
  const patch = validate(environmentPatch, input);
  patch.settings?.allowedOrigins?.forEach(checkOrigin);
  return patch;
}

/**
 * Changes the given fields of an environment. `input` is an `EnvironmentPatch`. Throws `environment_not_found`,
 * `invalid_request`.
 */
export async function updateEnvironment(ctx: Context, id: string, input: unknown): Promise<Environment> {
  const patch = validateEnvironmentPatch(input);
  return ctx.store.transact(async (tx) => {
    const current = await requireEnvironment(tx, id);
    const updated: Environment = {
      ...current,
      name: patch.name ?? current.name,
      disabled: patch.disabled ?? current.disabled,
      settings: mergeSettings(current.settings, patch.settings ?? {}),
      updatedAt: timestamp(ctx.clock.now()),
    };
    putRecord(tx, ENVIRONMENTS, id, updated);
    await appendAuditRecord(ctx, tx, id, {
      action: 'environment.update',
      target: { kind: 'environment', id },
      details: changedSettings(current, updated),
    });
    return updated;
  });
}

/**
 * The environment with this id or slug, or a deleted one that is not completely removed yet. Throws
 * `environment_not_found`.
 */
export async function findDeletable(ctx: Context, idOrSlug: string): Promise<Pick<Environment, 'id' | 'slug'>> {
  try {
    return await findEnvironment(ctx, idOrSlug);
  } catch (error) {
    const found = await findPartlyDeleted(ctx, idOrSlug);
    if (found === undefined) throw error;
    return found;
  }
}

/**
 * Deletes an environment and everything in it. One commit removes the environment and its credentials and ends its
 * stream; then its files and records are removed in slices. After a crash in between, a second call or
 * `sweepUnfinishedWork` removes the rest. Throws `environment_not_found`.
 */
export async function deleteEnvironment(ctx: Context, id: string): Promise<void> {
  if (!isValidId(id)) throw notFound(id);
  const existed = await ctx.store.transact(async (tx) => {
    const stored = await tx.get(ENVIRONMENTS, id);
    const keys = await readRecords<StoredKey>(tx, keysOf(id));
    for (const { value } of keys) tx.delete(KEY_HASHES, value.hash);
    if (stored === undefined) {
      if (await isPartlyDeleted(tx, id)) return true;
      // Older versions did not record unfinished deletions.
      if (keys.length > 0) markDeletion(tx, { id, slug: id }, ctx.clock.now());
      return keys.length > 0;
    }
    const environment = parseEnvironment(stored);
    tx.delete(ENVIRONMENTS, id);
    tx.delete(SLUGS, environment.slug);
    tx.endStream(streamOf(environment));
    markDeletion(tx, environment, ctx.clock.now());
    const { seq, hash } = await readHead(tx, id);
    await appendAuditRecord(ctx, tx, null, {
      action: 'environment.delete',
      target: { kind: 'environment', id },
      details: { slug: environment.slug, auditSeq: seq, auditHash: hash },
    });
    return true;
  });
  if (!existed) throw notFound(id);
  await finishDeletion(ctx, id);
}

async function requireEnvironment(reader: Pick<Reader, 'get'>, id: string): Promise<Environment> {
  const stored = isValidId(id) ? await reader.get(ENVIRONMENTS, id) : undefined;
  if (stored === undefined) throw notFound(id);
  return parseEnvironment(stored);
}

const isValidId = (id: string): boolean => /^[\x21-\x7e]{1,128}$/.test(id);

function notFound(id: string): CollabError {
  return new CollabError('environment_not_found', `No environment has the id or slug ${id.slice(0, 128)}`);
}

type SettingsPatch = NonNullable<EnvironmentPatch['settings']>;

function mergeSettings(current: EnvironmentSettings, patch: SettingsPatch): EnvironmentSettings {
  return {
    requireKnownUsers: patch.requireKnownUsers ?? current.requireKnownUsers,
    strict: patch.strict ?? current.strict,
    allowedOrigins: patch.allowedOrigins ?? current.allowedOrigins,
    maxFileSizeMb: patch.maxFileSizeMb ?? current.maxFileSizeMb,
    media: {
      image: patch.media?.image ?? current.media.image,
      audio: patch.media?.audio ?? current.media.audio,
      video: patch.media?.video ?? current.media.video,
    },
    maxP2pStateMb: patch.maxP2pStateMb ?? current.maxP2pStateMb,
    crdt: patch.crdt ?? current.crdt,
    jwtMaxLifetime: patch.jwtMaxLifetime ?? current.jwtMaxLifetime,
    jwtIssuer: patch.jwtIssuer === undefined ? current.jwtIssuer : patch.jwtIssuer,
    limits: { ...current.limits, ...knownLimits(patch.limits ?? {}) },
    quotas: { ...current.quotas, ...knownQuotas(patch.quotas ?? {}) },
  };
}

/** The given limits, without unknown names. */
function knownLimits(limits: NonNullable<SettingsPatch['limits']>): EnvironmentSettings['limits'] {
  const known = Object.keys(EnvironmentPatchSchema.properties.settings.properties.limits.properties);
  return Object.fromEntries(
    Object.entries(limits).filter(([name, value]) => known.includes(name) && value !== undefined),
  );
}

/** The given quotas, without unknown names. */
function knownQuotas(quotas: QuotasPatch): EnvironmentSettings['quotas'] {
  return Object.fromEntries(
    Object.entries(quotas).filter(([name, value]) => Object.hasOwn(defaultQuotas, name) && value !== undefined),
  );
}

function checkOrigin(origin: string): void {
  if (origin.includes('*'))
    throw invalidField(
      'settings.allowedOrigins',
      'must hold whole origins: a wildcard matches nothing; name each one, or none to allow every origin',
      origin,
    );
  if (URL.canParse(origin) && new URL(origin).origin === origin) return;
  throw invalidField('settings.allowedOrigins', 'must hold origins such as https://app.example.com', origin);
}
