import { constants } from 'node:fs';
import { access, stat, statfs } from 'node:fs/promises';
import { hasStoreInFolder } from '../../config/engines.ts';
import type { Config } from '../../config/schema.ts';
import { MEGABYTE } from '../../lib/bytes.ts';
import { accessDenialOf } from '../../lib/files/access-denial.ts';
import { exists } from '../../lib/files/exists.ts';
import { firstLine } from '../../lib/thrown.ts';
import type { Context } from '../../domain/context.ts';
import { listEnvironments } from '../../domain/environments/environments.ts';
import { isStoreError } from '../../model/errors.ts';
import type { OpenSnapshot } from '../../ports/store-operations.ts';
import { type Check, fail, ok, type CheckedFolder, warn } from './check.ts';
import { asFailure } from '../failure.ts';
import { checkEngines } from './check-engines.ts';
import { checkOwners } from './check-owners.ts';
import { checkFilesOf } from './check-files.ts';
import { readFilesOfStore } from '../../app.ts';
import { hasStore, storeFolder } from '../shared/folder.ts';
import { useStore } from '../shared/open-store.ts';
import { describeBlocked, tryStore } from '../shared/store-trial.ts';
import { describeSnapshot, findLongSnapshots } from './long-snapshots.ts';
import { InterruptedError } from '../terminal/interruption.ts';
import { shellWord } from '../../lib/shell-word.ts';
import { isRestoring, abandonedRestores } from '../backup/replace-data.ts';
import { findAbandonedSetups } from '../setup/abandoned-setups.ts';

/** The share of the disk that /readyz requires to be free. */
const FREE_SHARE = 0.05;
/**
 * How often a process must be ended by SIGSEGV before the database may count as damaged: an error of the disk while
 * LMDB opens it does that too, once.
 */
const DAMAGE_TRIALS = 3;
/** Type numbers of network file systems, on which LMDB's locks and flushes are not reliable. */
const NETWORK_FILESYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB'],
  [0x517b, 'SMB'],
  [0x01021997, '9p'],
]);

/** Checks the data folder: permissions, free space, file system, whether the store opens, and the files. */
export async function checkFolder(folder: CheckedFolder): Promise<Check[]> {
  const { dataDir } = folder.config;
  // Check nothing else, because opening the store would complete the restore.
  if (isRestoring(dataDir))
    return [
      fail(
        'data folder',
        `a restore of ${dataDir} was interrupted, or is in progress`,
        `If it is not running any more, complete it: collab start --dir ${shellWord(folder.dir)}`,
      ),
    ];
  const rights = await checkRights(folder.config);
  if (!hasStoreInFolder(folder.config))
    return rights === null ? checkEngines(folder) : [rights, ...(await checkEngines(folder))];
  if (rights?.level === 'fail') return [rights];
  if (rights === null || !hasStore(folder.config)) {
    const missing = fail(
      'data folder',
      `${dataDir} contains no store`,
      `Name the folder with --dir, or create it: collab init --dir ${shellWord(folder.dir)}`,
    );
    return [missing, ...(await checkAbandonedWork(folder))];
  }
  const store = await checkStore(folder);
  const files = store.some(({ level }) => level === 'fail') ? [] : [await checkFilesOf(folder)];
  return [
    rights,
    await checkOwners(folder),
    await checkSpace(folder),
    await checkFilesystem(dataDir),
    ...store,
    ...files,
    ...(await checkAbandonedWork(folder)),
  ];
}

/** Reports what interrupted inits, imports and restores have left; returns nothing if there is none. */
async function checkAbandonedWork({ dir, config }: CheckedFolder): Promise<Check[]> {
  const [leftovers, restores] = [await findAbandonedSetups(config.dataDir), abandonedRestores(config.dataDir)];
  const ofRestores = restores.map((path) =>
    warn(
      'leftovers',
      `a restore that was interrupted before it changed anything, or is in progress, left ${path}`,
      `If no restore is running: rm -r ${shellWord(path)}`,
    ),
  );
  return leftovers.length === 0
    ? ofRestores
    : [
        ...ofRestores,
        warn(
          'leftovers',
          `an interrupted init or import left ${leftovers.join(', ')}; the next init or import removes it`,
          `collab init --dir ${shellWord(dir)}`,
        ),
      ];
}

/** Null if there is no data folder. */
async function checkRights({ dataDir }: Config): Promise<Check | null> {
  try {
    if (!exists(dataDir)) return null;
    await access(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    const { message, remedy } = accessDenialOf(error) ?? {
      message: `${dataDir} cannot be used: ${firstLine(error)}`,
      remedy: 'Check the disk and how it is mounted.',
    };
    return fail('data folder', message, remedy);
  }
  const { mode } = await stat(dataDir);
  if ((mode & 0o077) === 0) return ok('data folder', dataDir);
  return warn(
    'data folder',
    `${dataDir} can be read by other users (mode ${(mode & 0o777).toString(8)}), but contains signing secrets`,
    `chmod 700 ${shellWord(dataDir)}`,
  );
}

async function checkSpace({ config }: CheckedFolder): Promise<Check> {
  const { bavail, bsize, blocks } = await statfs(config.dataDir);
  const freeMb = Math.floor((bavail * bsize) / MEGABYTE);
  const floor = config.storage.minFreeMb;
  const finding = `${freeMb} MB free, ${Math.round((100 * bavail) / blocks)} %`;
  if (freeMb < floor) {
    return fail(
      'disk',
      `${finding}: below storage.minFreeMb (${floor}), so writes are refused`,
      `Free at least ${floor - freeMb} MB.`,
    );
  }
  if (bavail / blocks < FREE_SHARE)
    return warn('disk', finding, 'Free some space, or move the data folder to a larger disk.');
  return ok('disk', finding);
}

async function checkFilesystem(dataDir: string): Promise<Check> {
  const { type } = await statfs(dataDir);
  const network = NETWORK_FILESYSTEMS.get(type);
  if (network === undefined) return ok('file system', 'local');
  return fail(
    'file system',
    `the data folder is on ${network}`,
    'Move it to a local disk: locks and flushes are not reliable on a network file system.',
  );
}

async function checkStore({ dir, config }: CheckedFolder): Promise<Check[]> {
  let trial = await tryStore(dir, config);
  for (let trials = 1; trial.outcome === 'crashed' && trial.signal === 'SIGSEGV' && trials < DAMAGE_TRIALS; trials++)
    trial = await tryStore(dir, config);
  if (trial.outcome === 'blocked') return [fail('store', ...describeBlocked(trial.holder))];
  if (trial.outcome === 'crashed') return [await crashCheck(config, trial.signal)];
  try {
    return await useStore(config, inspectStore);
  } catch (error) {
    if (error instanceof InterruptedError) throw error;
    if (isStoreError(error)) {
      const { message, remedies } = asFailure(error);
      return [fail('store', message, remedies.join(' '))];
    }
    const denial = accessDenialOf(error);
    if (denial !== null) return [fail('store', denial.message, denial.remedy)];
    return [
      fail(
        'store',
        firstLine(error),
        'If the message does not say what to do: stop the server, keep a copy of the data folder, and restore ' +
          'a backup: `collab restore <backup>`.',
      ),
    ];
  }
}

/**
 * What it means that a signal ended each process that opened the store. A disk that fails or is full does that too
 * (decision 63): so this calls nothing damaged before the files could be read.
 */
async function crashCheck(config: Config, signal: NodeJS.Signals): Promise<Check> {
  const crashed = `a process that opened the database was killed by ${signal}`;
  const restore = `stop the server, keep a copy of ${storeFolder(config)}, and restore a backup: \`collab restore <backup>\`.`;
  let cutOff: string | null;
  try {
    cutOff = await readFilesOfStore(config);
  } catch (error) {
    return fail(
      'store',
      `${crashed}, and a file cannot be read: ${asFailure(error).message}`,
      'Look for errors of the disk in the kernel log (dmesg), and check that your backups are recent.',
    );
  }
  if (cutOff !== null)
    return fail('store', `the database is damaged: the end of ${cutOff} is missing; ${crashed}`, upperFirst(restore));
  if (signal !== 'SIGSEGV')
    return fail(
      'store',
      crashed,
      'Look for errors of the disk and for lack of memory in the kernel log (dmesg), and for free space, then run this again.',
    );
  return fail(
    'store',
    `the database is damaged, or the disk fails only at times: ${DAMAGE_TRIALS} processes that opened it ` +
      `were killed by ${signal}, but its files can be read`,
    `Look for errors of the disk in the kernel log (dmesg). If there are none: ${restore}`,
  );
}

function upperFirst(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

async function inspectStore(ctx: Context): Promise<Check[]> {
  await ctx.store.probe();
  const environments = await listEnvironments(ctx);
  const store = ok('store', `can be opened and written; epoch ${ctx.store.epoch}, ${environments.length} environments`);
  const snapshots = await findLongSnapshots(ctx.operations);
  return [store, ...snapshots.map(snapshotCheck)];
}

function snapshotCheck(snapshot: OpenSnapshot): Check {
  const { pid, stopped } = snapshot;
  return warn(
    'snapshots',
    `${describeSnapshot(snapshot)}, so the store cannot reuse file space and grows`,
    stopped
      ? `Resume it: kill -CONT ${pid}; or end it: kill -KILL ${pid}`
      : 'This is normal while a backup copies a large store. Otherwise find out what the process is waiting ' +
          `for, or end it: kill -KILL ${pid}`,
  );
}
