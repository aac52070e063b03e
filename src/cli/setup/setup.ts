import { mkdir, rename, rm } from 'node:fs/promises';
import { exists } from '../../lib/files/exists.ts';
import { hasStoreInFolder } from '../../config/engines.ts';
import { renderSchema } from '../../config/example.ts';
import type { Config } from '../../config/schema.ts';
import type { Context } from '../../domain/context.ts';
import { createEnvironment, listEnvironments } from '../../domain/environments/environments.ts';
import { createKey } from '../../domain/access/keys.ts';
import { addSigningKey } from '../../domain/access/signing-keys.ts';
import { CollabError } from '../../model/errors.ts';
import { ensureFolder, syncPath, syncTree, writeDurably } from '../../lib/files/durable-files.ts';
import { configFile, filesFolder, hasStore, SCHEMA_NAME, schemaFile, storeFolder } from '../shared/folder.ts';
import { useStore } from '../shared/open-store.ts';
import { refuseMissingStore } from '../backup/replace-data.ts';
import { claimSetup, removeAbandonedSetups, setupFolder } from './abandoned-setups.ts';
import { FIRST_ENVIRONMENT } from './first-environment.ts';

/** The first environment of a new data folder and its secrets, which cannot be shown again later. */
export interface Setup {
  readonly environment: { readonly id: string; readonly slug: string };
  readonly secretKey: string;
  readonly publishableKey: string;
  readonly jwtSecret: string;
  readonly jwtKid: string;
}

/**
 * Creates what a folder lacks, as `createFolder`, with the first environment in a new store, and with the first thread
 * of the demo page if the configuration has it.
 *
 * @returns the keys, or null if there was a store already, which is left unchanged
 */
export function setUp(dir: string, config: Config): Promise<Setup | null> {
  return createFolder(dir, config, async (ctx) => {
    const setup = await fillFirstEnvironment(ctx);
    if (config.demo) {
      const { createFirstThread } = await import('../../demo/first-thread.ts');
      await createFirstThread(ctx, FIRST_ENVIRONMENT);
    }
    return setup;
  });
}

/**
 * Creates what a folder lacks: config.json, and the store with what `fill` puts into it. Each appears complete or not
 * at all, and all of it is on the disk when this resolves, so after a crash or power cut there is no partly created
 * folder. Removes abandoned setups. If `fill` rejects, no store is created. A store that is a server of its own is
 * filled if it has no environment.
 *
 * @returns the result of `fill`, or null if there was a store already or another process created one meanwhile; it is
 *   unchanged
 */
export async function createFolder<T>(
  dir: string,
  config: Config,
  fill: (ctx: Context) => Promise<T>,
): Promise<T | null> {
  await ensureFolder(dir);
  await removeAbandonedSetups(config.dataDir);
  const filled = await fillStore(config, fill);
  if (!exists(configFile(dir))) await writeConfig(dir, config);
  return filled;
}

async function fillStore<T>(config: Config, fill: (ctx: Context) => Promise<T>): Promise<T | null> {
  if (!hasStoreInFolder(config)) return fillEmptyStore(config, fill);
  return hasStore(config) ? null : createStore(config, fill);
}

/** Returns null if the store has environments, or another node fills it at the same time. */
async function fillEmptyStore<T>(config: Config, fill: (ctx: Context) => Promise<T>): Promise<T | null> {
  return useStore(config, async (ctx) => {
    if ((await listEnvironments(ctx)).length > 0) return null;
    try {
      return await fill(ctx);
    } catch (error) {
      if (error instanceof CollabError && error.code === 'slug_taken') return null;
      throw error;
    }
  });
}

/** Fills a store in a separate folder and moves it into place when it is complete. */
async function createStore<T>(config: Config, fill: (ctx: Context) => Promise<T>): Promise<T | null> {
  refuseMissingStore(config.dataDir);
  await ensureFolder(config.dataDir);
  const staging = { ...config, dataDir: setupFolder(config.dataDir) };
  await rm(staging.dataDir, { recursive: true, force: true });
  try {
    await mkdir(staging.dataDir, { mode: 0o700 });
    await claimSetup(staging.dataDir);
    const filled = await useStore(staging, fill);
    // LMDB flushes the contents of its files, but not their names. Uploaded files are flushed as they are written.
    await syncTree(storeFolder(staging));
    return (await moveIntoPlace(staging, config)) ? filled : null;
  } finally {
    await rm(staging.dataDir, { recursive: true, force: true });
  }
}

/** Returns false if another process was faster; its store stays. */
async function moveIntoPlace(from: Config, to: Config): Promise<boolean> {
  // A restore that started meanwhile may have moved the store aside; a new store must not take its place.
  refuseMissingStore(to.dataDir);
  const hasFiles = exists(filesFolder(from));
  // The store is last: if it exists, the data folder counts as complete.
  if (hasFiles && !(await renameUnlessExists(filesFolder(from), filesFolder(to)))) return false;
  const placed = await renameUnlessExists(storeFolder(from), storeFolder(to));
  if (hasFiles && !placed) await rename(filesFolder(to), filesFolder(from));
  await syncPath(to.dataDir);
  return placed;
}

async function fillFirstEnvironment(ctx: Context): Promise<Setup> {
  const environment = await createEnvironment(ctx, { slug: FIRST_ENVIRONMENT, name: 'Default' });
  const secret = await createKey(ctx, environment, { kind: 'secret', name: 'first' });
  const publishable = await createKey(ctx, environment, { kind: 'publishable', name: 'first' });
  const signing = await addSigningKey(ctx, environment, { kind: 'secret' });
  if (signing.kind !== 'secret') throw new Error('addSigningKey returned another kind of key than requested');
  return {
    environment: { id: environment.id, slug: environment.slug },
    secretKey: secret.value,
    publishableKey: publishable.value,
    jwtSecret: signing.secret,
    jwtKid: signing.kid,
  };
}

/** Renames a folder; returns false if the target exists and is not empty. */
async function renameUnlessExists(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOTEMPTY' || code === 'EEXIST') return false;
    throw error;
  }
}

/**
 * Writes the options that operators change first, and the schema that editors check them by. All others keep their
 * defaults, including those of later releases.
 */
async function writeConfig(dir: string, { host, port }: Config): Promise<void> {
  await writeDurably(schemaFile(dir), renderSchema());
  await writeDurably(configFile(dir), `${JSON.stringify({ $schema: `./${SCHEMA_NAME}`, host, port }, null, 2)}\n`);
}
