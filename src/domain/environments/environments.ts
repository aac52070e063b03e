import { CollabError } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import { newId } from '../../lib/ids.ts';
import { defaultSettings, type Environment, EnvironmentCreateSchema, type EnvironmentPatch, EnvironmentPatchSchema, type EnvironmentSettings, parseEnvironment, SLUG_PATTERN } from '../../model/environment.ts';
import type { StoredKey } from '../../model/key.ts';
import { defaultQuotas, type QuotasPatch } from '../../model/quotas.ts';
import type { Reader, Transaction } from '../../ports/store.ts';
import type { Context } from '../context.ts';
import { findPartlyDeleted, finishDeletion, isPartlyDeleted, markDeletion } from './unfinished-work.ts';
import { ENVIRONMENTS, KEY_HASHES, keysOf, SLUGS } from '../records/partitions.ts';
import { putFirstSecret } from '../access/signing-keys.ts';
import { newStreamId, streamOf } from '../events/streams.ts';
import { markCounted } from '../quotas/usage-count.ts';
import { markOrderComplete } from '../users/user-order.ts';
import { InputSchema, validate } from '../input/validate.ts';

const environmentCreate = new InputSchema(EnvironmentCreateSchema);
const environmentPatch = new InputSchema(EnvironmentPatchSchema);

/** An environment just made, with the secret that its user tokens are signed with, which is shown this once. */
export interface NewEnvironment {
  readonly environment: Environment;
  readonly jwtSecret: string;
  readonly jwtKid: string;
}

/**
 * Makes an environment, without keys. `input` is `{slug, name?}`; its name is the slug where none is given.
 * Throws `invalid_request`, `slug_taken`.
 */
export async function createEnvironment(ctx: Context, input: unknown): Promise<Environment> {
  return ctx.store.transact(prepareEnvironment(ctx, input));
}

/** As `createEnvironment`, with a secret to sign user tokens with, in the same commit. */
export async function createSignedEnvironment(ctx: Context, input: unknown): Promise<NewEnvironment> {
  return ctx.store.transact(prepareSignedEnvironment(ctx, input));
}

/** Checks the input of `createSignedEnvironment` at once and returns what does its work in a transaction. Both throw as that does. */
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
    throw new CollabError('invalid_request', 'slug must be 1 to 63 lower-case letters, digits and inner hyphens');
  }
  return async (tx) => {
    if ((await tx.get(SLUGS, slug)) !== undefined) throw new CollabError('slug_taken', `The slug ${slug} is taken by another environment`);
    const now = ctx.clock.now();
    const at = timestamp(now);
    const environment: Environment = { id: newId('env_', now), streamId: newStreamId(), slug, name, disabled: false, settings: defaultSettings, createdAt: at, updatedAt: at };
    tx.put(SLUGS, slug, environment.id);
    tx.put(ENVIRONMENTS, environment.id, JSON.stringify(environment));
    markOrderComplete(tx, environment.id);
    markCounted(tx, environment.id);
    return environment;
  };
}

/** The environment; the same object until any environment changes. Throws `environment_not_found`. */
export function environmentById(ctx: Context, id: string): Promise<Environment> {
  return ctx.store.cached(`environment ${id}`, [ENVIRONMENTS], () => requireEnvironment(ctx.store, id));
}

/** The environment with this id or slug. Throws `environment_not_found`. */
export async function findEnvironment(ctx: Context, idOrSlug: string): Promise<Environment> {
  const id = SLUG_PATTERN.test(idOrSlug) ? await ctx.store.get(SLUGS, idOrSlug) : undefined;
  return environmentById(ctx, id ?? idOrSlug);
}

/** As `findEnvironment`, of what a transaction sees. */
export async function findEnvironmentWithin(tx: Pick<Reader, 'get'>, idOrSlug: string): Promise<Environment> {
  const id = SLUG_PATTERN.test(idOrSlug) ? await tx.get(SLUGS, idOrSlug) : undefined;
  return requireEnvironment(tx, id ?? idOrSlug);
}

/** All environments, oldest first. */
export async function listEnvironments(ctx: Context): Promise<Environment[]> {
  const entries = await ctx.store.range(ENVIRONMENTS);
  return entries.map((entry) => parseEnvironment(entry.value));
}

/** The input of `updateEnvironment`, checked. Throws `invalid_request`. */
export function validateEnvironmentPatch(input: unknown): EnvironmentPatch {
  const patch = validate(environmentPatch, input);
  patch.settings?.allowedOrigins?.forEach(checkOrigin);
  return patch;
}

/** Changes what is given and keeps the rest. `input` is an `EnvironmentPatch`. Throws `environment_not_found`, `invalid_request`. */
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
    tx.put(ENVIRONMENTS, id, JSON.stringify(updated));
    return updated;
  });
}

/** The environment with this id or slug, or one that was deleted and of which not all has been removed. Throws `environment_not_found`. */
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
 * Deletes an environment and everything in it. It and its credentials are gone, and its stream has ended, in one commit; then its
 * files and records go, in slices. Called again after a crash in between, it removes what is left, as `sweepLeftovers`
 * does. Throws `environment_not_found`.
 */
export async function deleteEnvironment(ctx: Context, id: string): Promise<void> {
  if (!isValidId(id)) throw notFound(id);
  const existed = await ctx.store.transact(async (tx) => {
    const stored = await tx.get(ENVIRONMENTS, id);
    const keys = await tx.range(keysOf(id));
    for (const { value } of keys) tx.delete(KEY_HASHES, (JSON.parse(value) as StoredKey).hash);
    if (stored === undefined) {
      if (await isPartlyDeleted(tx, id)) return true;
      // Older versions left no note of what they had begun to delete.
      if (keys.length > 0) markDeletion(tx, { id, slug: id }, ctx.clock.now());
      return keys.length > 0;
    }
    const environment = parseEnvironment(stored);
    tx.delete(ENVIRONMENTS, id);
    tx.delete(SLUGS, environment.slug);
    tx.endStream(streamOf(environment));
    markDeletion(tx, environment, ctx.clock.now());
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

function knownLimits(limits: NonNullable<SettingsPatch['limits']>): EnvironmentSettings['limits'] {
  const known = Object.keys(EnvironmentPatchSchema.properties.settings.properties.limits.properties);
  return Object.fromEntries(Object.entries(limits).filter(([name, value]) => known.includes(name) && value !== undefined));
}

function knownQuotas(quotas: QuotasPatch): EnvironmentSettings['quotas'] {
  return Object.fromEntries(Object.entries(quotas).filter(([name, value]) => Object.hasOwn(defaultQuotas, name) && value !== undefined));
}

function checkOrigin(origin: string): void {
  if (URL.canParse(origin) && new URL(origin).origin === origin) return;
  throw new CollabError('invalid_request', `settings.allowedOrigins must hold origins such as https://app.example.com, not ${JSON.stringify(origin.slice(0, 200))}`);
}
