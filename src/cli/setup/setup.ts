import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import type { Config } from '../../config/schema.ts';
import type { Context } from '../../domain/context.ts';
import { createEnvironment } from '../../domain/environments/environments.ts';
import { createKey } from '../../domain/access/keys.ts';
import { addSigningKey } from '../../domain/access/signing-keys.ts';
import { putUser } from '../../domain/users/users.ts';
import { ensureFolder, syncPath, syncTree, writeDurably } from '../../lib/durable-files.ts';
import { operator } from '../shared/actor.ts';
import { configFile, filesFolder, hasStore, storeFolder, useStore } from '../shared/folder.ts';
import { refuseLostStore } from '../backup/restore-moves.ts';
import { claimSetup, removeLeftovers, setupFolder } from './setup-leftovers.ts';

/** The environment that a new folder starts with. */
export const FIRST_ENVIRONMENT = 'default';

/** Who can be an author on a new demo server before anybody has connected. */
const demoUsers = [
  { id: 'ann', fields: { name: 'Ann' } },
  { id: 'bob', fields: { name: 'Bob' } },
  { id: 'ci-bot', fields: { name: 'CI', kind: 'bot' } },
] as const;

/** What a new folder was given. The secrets are known here and now, and not shown again. */
export interface Setup {
  readonly environment: { readonly id: string; readonly slug: string };
  readonly secretKey: string;
  readonly publishableKey: string;
  readonly jwtSecret: string;
  readonly jwtKid: string;
}

/**
 * Makes what a folder lacks, as `makeFolder`, with the first environment.
 *
 * @param demo whether to make the users of the demo too
 * @returns the keys, or null when there was a store already; that one is left as it is
 */
export function setUp(dir: string, config: Config, demo: boolean): Promise<Setup | null> {
  return makeFolder(dir, config, (ctx) => fillFirst(ctx, demo));
}

/**
 * Makes what a folder lacks: config.json, and the store with what `fill` puts into it. Each appears whole or not at all,
 * and all of it is on the disk when this resolves: after a crash or a power cut in between, a start finds no half-made
 * folder. Leftovers of an earlier setup are removed. When `fill` rejects, nothing is made.
 *
 * @returns what `fill` gave, or null when there was a store already, or suddenly; that one is left as it is
 */
export async function makeFolder<T>(dir: string, config: Config, fill: (ctx: Context) => Promise<T>): Promise<T | null> {
  await ensureFolder(dir);
  await removeLeftovers(config.dataDir);
  const filled = hasStore(config) ? null : await makeStore(config, fill);
  if (!existsSync(configFile(dir))) await writeConfig(dir, config);
  return filled;
}

/** Fills a store aside and moves it into its place when it is complete. */
async function makeStore<T>(config: Config, fill: (ctx: Context) => Promise<T>): Promise<T | null> {
  refuseLostStore(config.dataDir);
  await ensureFolder(config.dataDir);
  const aside = { ...config, dataDir: setupFolder(config.dataDir) };
  await rm(aside.dataDir, { recursive: true, force: true });
  try {
    await mkdir(aside.dataDir, { mode: 0o700 });
    await claimSetup(aside.dataDir);
    const filled = await useStore(aside, fill);
    // LMDB flushes the bytes of its files, not their names; files of the content are flushed as they come.
    await syncTree(storeFolder(aside));
    return (await place(aside, config)) ? filled : null;
  } finally {
    await rm(aside.dataDir, { recursive: true, force: true });
  }
}

/** False when another process was faster, whose store stays. */
async function place(from: Config, to: Config): Promise<boolean> {
  // A restore that began meanwhile has taken the store away that this one must not stand in for.
  refuseLostStore(to.dataDir);
  const hasFiles = existsSync(filesFolder(from));
  // The store last: where it is, the data folder counts as whole.
  if (hasFiles && !(await moveUnlessTaken(filesFolder(from), filesFolder(to)))) return false;
  const placed = await moveUnlessTaken(storeFolder(from), storeFolder(to));
  if (hasFiles && !placed) await rename(filesFolder(to), filesFolder(from));
  await syncPath(to.dataDir);
  return placed;
}

async function fillFirst(ctx: Context, demo: boolean): Promise<Setup> {
  const environment = await createEnvironment(ctx, { slug: FIRST_ENVIRONMENT, name: 'Default' });
  const secret = await createKey(ctx, environment, { kind: 'secret', name: 'first' });
  const publishable = await createKey(ctx, environment, { kind: 'publishable', name: 'first' });
  const signing = await addSigningKey(ctx, environment, { kind: 'secret' });
  if (signing.kind !== 'secret') throw new Error('a signing secret was asked for');
  for (const { id, fields } of demo ? demoUsers : []) await putUser(ctx, operator(environment), id, fields);
  return {
    environment: { id: environment.id, slug: environment.slug },
    secretKey: secret.value,
    publishableKey: publishable.value,
    jwtSecret: signing.secret,
    jwtKid: signing.kid,
  };
}

/** False when there is something already. */
async function moveUnlessTaken(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOTEMPTY' || code === 'EEXIST') return false;
    throw error;
  }
}

/** Only what an operator will want to see first: what is left out keeps its default, also the default of later versions. */
async function writeConfig(dir: string, { host, port }: Config): Promise<void> {
  await writeDurably(configFile(dir), `${JSON.stringify({ host, port }, null, 2)}\n`);
}
