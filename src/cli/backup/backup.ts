import { readdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { openBlobs, storeCopies } from '../../app.ts';
import type { Config } from '../../config/schema.ts';
import { RecordedFiles } from '../../domain/files/recorded-files.ts';
import { ensureFolder, syncTree, writeDurably } from '../../lib/durable-files.ts';
import { version } from '../../model/version.ts';
import { copyFiles } from './backup-files.ts';
import { BACKUP_FORMAT, FILES, MANIFEST, type Manifest, sha256Of, sizeOf, STORE, SUMS } from './backup-folder.ts';
import { addCommand, pathArgument } from '../command.ts';
import { Failure } from '../failure.ts';
import { configOf, filesFolder, hasStore, invocation, missingFolder, storeFolder } from '../shared/folder.ts';
import { facts, next, printResult } from '../terminal/output.ts';
import { bytesText, Progress } from '../terminal/progress.ts';

/** How often the growth of the store's copy is looked at. */
const LOOK_MS = 200;
/** Names of missing and damaged files that people are shown; the manifest has all. */
const SHOWN_NAMES = 5;

/** Adds `backup`. */
export function register(program: Command): void {
  addCommand(program, 'backup <folder>', {
    summary: 'Copy everything into a new folder, beside a running server or without one.',
    details:
      'The store is copied as it stands at one moment, opened and read whole; then the files that its records name are copied and compared with ' +
      'their SHA-256. Until then no file is deleted. A folder with a manifest.json is a finished backup; exit code 1 with one says that the server ' +
      'itself has lost files. config.json is not in it. It holds signing secrets: keep it as safe as the server.',
    examples: ['collab backup /backups/collab-$(date +%F)', 'collab backup /mnt/backup/collab --dir /srv/collab --json'],
  }).action(backup);
}

async function backup(folder: string, _options: object, command: Command): Promise<void> {
  const at = invocation(command);
  const config = await configOf(at.dir);
  if (!hasStore(config)) throw missingFolder(at.dir);
  const to = resolve(pathArgument('<folder>', folder));
  await claim(to);
  const manifest = await fill(to, config);
  const faults = faultsOf(manifest);
  printResult(at.json, { folder: to, verified: faults === null, ...manifest }, () => describe(to, manifest));
  if (faults !== null) throw new Failure(`The backup is complete, but ${faults}.`, ['Restore the files from an older backup, or delete their comments: `collab doctor` names them. The rest of this backup is good.']);
}

/** Makes the folder, or takes it when it is empty. */
async function claim(to: string): Promise<void> {
  await ensureFolder(to);
  if ((await readdir(to)).length > 0) throw new Failure(`The folder ${to} is not empty: nothing was written.`, ['Name one that is new or empty.']);
}

async function fill(to: string, config: Config): Promise<Manifest> {
  const progress = new Progress();
  try {
    return await copyAll(to, config, progress);
  } catch (error) {
    await Promise.all([STORE, FILES, SUMS, MANIFEST].map((name) => rm(join(to, name), { recursive: true, force: true })));
    throw error;
  } finally {
    progress.end();
  }
}

async function copyAll(to: string, config: Config, progress: Progress): Promise<Manifest> {
  const recorded = new RecordedFiles();
  const { store, copied } = await held(config, async () => ({
    store: await copyStore(storeFolder(config), join(to, STORE), recorded, progress),
    copied: await copyFiles(filesFolder(config), to, recorded, progress),
  }));
  // Read once more rather than hashed on its way: what is on the disk is what counts.
  const { STORE_FILE } = await storeCopies();
  const storeFile = `${STORE}/${STORE_FILE}`;
  const sums = [[storeFile, await sha256Of(join(to, storeFile))], ...copied.sums];
  await syncTree(to);
  await writeDurably(join(to, SUMS), sums.map(([path, sha256]) => `${sha256}  ${path}\n`).join(''));
  const manifest: Manifest = {
    kind: 'collab-backup',
    format: BACKUP_FORMAT,
    version,
    createdAt: new Date().toISOString(),
    store,
    files: copied.files,
    sumsSha256: await sha256Of(join(to, SUMS)),
  };
  await writeDurably(join(to, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`);
  return manifest;
}

/** Runs `work` while no server removes a file that a record has named since its beginning. */
async function held<T>(config: Config, work: () => Promise<T>): Promise<T> {
  const hold = await (await openBlobs(config)).hold();
  try {
    return await work();
  } finally {
    await hold.release();
  }
}

async function copyStore(from: string, to: string, recorded: RecordedFiles, progress: Progress): Promise<Manifest['store']> {
  const copies = await storeCopies();
  const whole = await sizeOf(join(from, copies.STORE_FILE));
  const watch = setInterval(() => {
    void sizeOf(join(to, copies.STORE_FILE)).then((bytes) => progress.say(() => `store: ${bytesText(bytes)} of ${bytesText(whole)}`));
  }, LOOK_MS);
  try {
    await copies.copyStore(from, to);
  } finally {
    clearInterval(watch);
  }
  progress.say(() => 'store: reading the copy');
  return await copies.inspectStore(to, (partition, key, value) => recorded.add(partition, key, value));
}

/** What is wrong with the files of the server, as it shows in its backup; null when all is well. */
function faultsOf({ files: { missing, damaged = [] } }: Manifest): string | null {
  const faults = [named(missing, 'missing on the server'), named(damaged, 'damaged on the server: they are not what their records say')].filter((fault) => fault !== null);
  return faults.length === 0 ? null : faults.join(', and ');
}

function named(names: readonly string[], fault: string): string | null {
  if (names.length === 0) return null;
  const shown = names.slice(0, SHOWN_NAMES).join(', ') + (names.length > SHOWN_NAMES ? ', …' : '');
  return `${names.length === 1 ? 'one file is' : `${names.length} files are`} ${fault} (${shown})`;
}

function describe(to: string, { store, files }: Manifest): string {
  return [
    `The backup is complete and was read back.`,
    '',
    facts([
      ['folder', to],
      ['environments', String(store.environments)],
      ['records', String(store.records)],
      ['events', String(store.events)],
      ['store', bytesText(store.bytes)],
      ['files', `${files.count}, ${bytesText(files.bytes)}`],
    ]),
    next(`collab restore ${to} --dir <folder>`),
  ].join('\n');
}
