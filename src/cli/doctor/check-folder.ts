import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access, stat, statfs } from 'node:fs/promises';
import type { Context } from '../../domain/context.ts';
import { listEnvironments } from '../../domain/environments/environments.ts';
import type { OpenSnapshot } from '../../ports/store.ts';
import { type Check, fail, ok, reasonOf, type Subject, warn } from './check.ts';
import { checkFilesOf } from './check-files.ts';
import { storeFolder, useStore } from '../shared/folder.ts';
import { describeSnapshot, findHeldSnapshots } from './held-snapshots.ts';
import { shellWord } from '../terminal/output.ts';
import { isRestoring, restoreLeftovers } from '../backup/restore-moves.ts';
import { findLeftovers } from '../setup/setup-leftovers.ts';

const MB = 1024 * 1024;
/** /readyz wants this share of the disk free. */
const FREE_SHARE = 0.05;
/** Numbers of file systems that live on other machines, where LMDB's locks and flushes can't be relied on. */
const NETWORK_FILESYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB'],
  [0x517b, 'SMB'],
  [0x01021997, '9p'],
]);

/** Looks at the data folder: rights, disk, file system, whether the store opens, and the files. */
export async function checkFolder(subject: Subject): Promise<Check[]> {
  const { dataDir } = subject.config;
  // Nothing else is looked at: the first command that opens the store would finish it.
  if (isRestoring(dataDir)) return [fail('data folder', `a restore of ${dataDir} was interrupted, or is under way`, `If it does not run any more, finish it: collab start --dir ${shellWord(subject.dir)}`)];
  try {
    await stat(storeFolder(subject.config));
  } catch {
    const missing = fail('data folder', `${dataDir} holds no store`, `Name the folder with --dir, or make it: collab init --dir ${shellWord(subject.dir)}`);
    return [missing, ...(await checkLeftovers(subject))];
  }
  const store = await checkStore(subject);
  const files = store.some(({ level }) => level === 'fail') ? [] : [await checkFilesOf(subject)];
  return [await checkRights(dataDir), await checkSpace(subject), await checkFilesystem(dataDir), ...store, ...files, ...(await checkLeftovers(subject))];
}

/** What an init, import or restore that was killed midway has left; nothing to say where there is none. */
async function checkLeftovers({ dir, config }: Subject): Promise<Check[]> {
  const [leftovers, restores] = [await findLeftovers(config.dataDir), restoreLeftovers(config.dataDir)];
  const ofRestores = restores.map((path) => warn('leftovers', `a restore that was interrupted before it changed anything, or is under way, left ${path}`, `When none is under way: rm -r ${shellWord(path)}`));
  return leftovers.length === 0 ? ofRestores : [...ofRestores, warn('leftovers', `an init or import that was interrupted left ${leftovers.join(', ')}; the next one removes it`, `collab init --dir ${shellWord(dir)}`)];
}

async function checkRights(dataDir: string): Promise<Check> {
  try {
    await access(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    return fail('data folder', `${dataDir} cannot be written by this user`, `Call it as the user who owns the folder, or: chown -R $(id -un) ${shellWord(dataDir)}`);
  }
  const { mode } = await stat(dataDir);
  if ((mode & 0o077) === 0) return ok('data folder', dataDir);
  return warn('data folder', `${dataDir} can be read by others (mode ${(mode & 0o777).toString(8)}); it holds signing secrets`, `chmod 700 ${shellWord(dataDir)}`);
}

async function checkSpace({ config }: Subject): Promise<Check> {
  const { bavail, bsize, blocks } = await statfs(config.dataDir);
  const freeMb = Math.floor((bavail * bsize) / MB);
  const floor = config.storage.minFreeMb;
  const finding = `${freeMb} MB free, ${Math.round((100 * bavail) / blocks)} %`;
  if (freeMb < floor) {
    return fail('disk', `${finding}: below storage.minFreeMb (${floor}), so writes are refused`, `Free at least ${floor - freeMb} MB.`);
  }
  if (bavail / blocks < FREE_SHARE) return warn('disk', finding, 'Free some space, or give the data folder a larger disk.');
  return ok('disk', finding);
}

async function checkFilesystem(dataDir: string): Promise<Check> {
  const { type } = await statfs(dataDir);
  const network = NETWORK_FILESYSTEMS.get(type);
  if (network === undefined) return ok('file system', 'local');
  return fail('file system', `the data folder is on ${network}`, 'Move it to a disk of this machine: over a network its locks and flushes are not safe.');
}

async function checkStore({ dir, config }: Subject): Promise<Check[]> {
  const crash = await crashOnOpening(dir);
  if (crash !== null) {
    const remedy = `Stop the server, keep a copy of ${storeFolder(config)}, and put a backup in its place.`;
    return [fail('store', `the database is damaged: opening it ended a process by ${crash}`, remedy)];
  }
  try {
    return await useStore(config, lookInto);
  } catch (error) {
    return [fail('store', reasonOf(error), 'If the message does not say what to do: stop the server, keep a copy of the data folder, and restore a backup.')];
  }
}

/** A damaged file can take the process that opens it down: another one goes first. Resolves with the signal that ended it. */
function crashOnOpening(dir: string): Promise<NodeJS.Signals | null> {
  const args = [...process.execArgv, process.argv[1] ?? '', 'env', 'list', '--json', '--dir', dir];
  const child = spawn(process.execPath, args, { stdio: 'ignore' });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (_code, signal) => resolve(signal));
  });
}

async function lookInto(ctx: Context): Promise<Check[]> {
  await ctx.store.probe();
  const environments = await listEnvironments(ctx);
  const store = ok('store', `opens and can be written; epoch ${ctx.store.epoch}, ${environments.length} environments`);
  const held = await findHeldSnapshots(ctx.store);
  return held.length === 0 ? [store] : [store, ...held.map(heldSnapshot)];
}

function heldSnapshot(snapshot: OpenSnapshot): Check {
  const { pid, stopped } = snapshot;
  return warn(
    'snapshots',
    `${describeSnapshot(snapshot)}, which keeps the files of the store from using space again`,
    stopped ? `Let it go on: kill -CONT ${pid}; or end it: kill -KILL ${pid}` : `A backup of a large store does this while it copies. Otherwise see what it waits for, or end it: kill -KILL ${pid}`,
  );
}
