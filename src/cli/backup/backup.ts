import { readdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { storeCopies } from '../../app.ts';
import { openBlobs } from '../../engines.ts';
import type { Config } from '../../config/schema.ts';
import { chainOfHead } from '../../domain/records/partitions.ts';
import { RecordedFiles } from '../../domain/files/recorded-files.ts';
import { ensureFolder, removeEmptyFolders, syncTree, writeDurably } from '../../lib/files/durable-files.ts';
import type { AuditHead } from '../../model/environments/audit.ts';
import { version } from '../../model/version.ts';
import { copyFiles } from './backup-files.ts';
import { BACKUP_FORMAT, FILES, MANIFEST, type Manifest, STORE, SUMS } from './backup-folder.ts';
import { sha256Of, sizeOf } from './copy-file.ts';
import { whileFilesAreKept } from './kept-files.ts';
import { addCommand } from '../command.ts';
import { pathArgument } from '../option-values.ts';
import { Failure } from '../failure.ts';
import { hasStore, noFolderFailure, requireStoreInFolder, storeFolder } from '../shared/folder.ts';
import { loadFolderConfig } from '../shared/open-store.ts';
import { invocationOf } from '../shared/invocation.ts';
import { interruptible } from '../terminal/interruption.ts';
import { keyValues, nextSteps, printResult } from '../terminal/output.ts';
import { shellWord } from '../../lib/shell-word.ts';
import { bytesText, Progress } from '../terminal/progress.ts';

type AuditHeads = NonNullable<Manifest['audit']>;

/** How often the size of the store's copy is checked. */
const PROGRESS_MS = 200;
/** How many missing or damaged files are shown by name; the manifest lists all. */
const SHOWN_NAMES = 5;

/** Adds `backup`. */
export function register(program: Command): void {
  addCommand(program, 'backup <folder>', {
    summary: 'Copy the whole server into a new folder, while it is running or stopped.',
    details:
      'Copies the store as of one moment and reads the copy completely; then copies the files that its ' +
      'records name and compares them with ' +
      'their SHA-256. Until it is done, the server deletes no files. A folder with a manifest.json is a ' +
      'complete backup; exit code 1 with one means that the ' +
      'server itself has lost files. A backup does not contain config.json. It contains signing secrets: keep it as safe as the server.',
    examples: [
      'collab backup /backups/collab-$(date +%F)',
      'collab backup /mnt/backup/collab --dir /srv/collab --json',
    ],
  }).action(backup);
}

async function backup(folder: string, _options: object, command: Command): Promise<void> {
  const at = invocationOf(command);
  const config = await loadFolderConfig(at.dir);
  requireStoreInFolder(
    config,
    'Back PostgreSQL up by its own tools: pg_basebackup with its log archived, or pg_dump. Keep versions in the bucket ' +
      'of blobs.url for as long as the oldest backup, so that no file that it names is missing after a restore.',
    '`collab doctor --deep` verifies that all records can be read and every file that they name is there.',
    '`collab export` writes environments to a file, from any store.',
  );
  if (!hasStore(config)) throw noFolderFailure(at.dir);
  const to = resolve(pathArgument('<folder>', folder));
  const created = await claimEmptyFolder(to);
  const manifest = await interruptible((signal) => copyOrCleanUp(to, created, config, signal));
  const faults = faultsOf(manifest);
  printResult(at.json, { folder: to, verified: faults === null, ...manifest }, () =>
    describe(to, manifest, faults !== null),
  );
  if (faults !== null)
    throw new Failure(`The backup is complete, but ${faults}.`, [
      'Restore these files from an older backup, or delete their comments; `collab doctor --deep` names ' +
        'them. Everything else in this backup is intact.',
    ]);
}

/** Creates the folder, or accepts an empty one. Returns the folders that it has created, as `ensureFolder`. */
async function claimEmptyFolder(to: string): Promise<string[]> {
  const created = await ensureFolder(to);
  if ((await readdir(to)).length > 0)
    throw new Failure(`The folder ${to} is not empty, so no backup was written.`, [
      'Choose a folder that is empty or does not exist.',
    ]);
  return created;
}

/** Writes the backup. If that fails or is aborted, removes what was written, and the folders in `created`. */
async function copyOrCleanUp(
  to: string,
  created: readonly string[],
  config: Config,
  signal: AbortSignal,
): Promise<Manifest> {
  const progress = new Progress();
  try {
    const manifest = await copyAll(to, config, progress, signal);
    signal.throwIfAborted();
    return manifest;
  } catch (error) {
    await Promise.all(
      [STORE, FILES, SUMS, MANIFEST].map((name) => rm(join(to, name), { recursive: true, force: true })),
    );
    await removeEmptyFolders(created);
    throw error;
  } finally {
    progress.end();
  }
}

async function copyAll(to: string, config: Config, progress: Progress, signal: AbortSignal): Promise<Manifest> {
  const recorded = new RecordedFiles();
  const audit: AuditHeads = [];
  const blobs = await openBlobs(config);
  const { store, copied } = await whileFilesAreKept(blobs, signal, async (kept) => ({
    store: await copyStore(storeFolder(config), join(to, STORE), { recorded, audit }, progress, kept),
    copied: await copyFiles(blobs, to, recorded, progress, kept),
  }));
  // Hashed by reading the copy, not while copying, because only what is on the disk matters.
  const { STORE_FILE } = await storeCopies();
  const storeFile = `${STORE}/${STORE_FILE}`;
  const sums = [[storeFile, await sha256Of(join(to, storeFile), () => signal.throwIfAborted())], ...copied.sums];
  await syncTree(to);
  signal.throwIfAborted();
  await writeDurably(join(to, SUMS), sums.map(([path, sha256]) => `${sha256}  ${path}\n`).join(''));
  const manifest: Manifest = {
    kind: 'collab-backup',
    format: BACKUP_FORMAT,
    version,
    createdAt: new Date().toISOString(),
    store,
    files: copied.files,
    audit,
    sumsSha256: await sha256Of(join(to, SUMS)),
  };
  await writeDurably(join(to, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`);
  return manifest;
}

/** Copies the store, and adds what its copy contains to `found`. */
async function copyStore(
  from: string,
  to: string,
  found: { recorded: RecordedFiles; audit: AuditHeads },
  progress: Progress,
  signal: AbortSignal,
): Promise<Manifest['store']> {
  const copies = await storeCopies();
  const total = await sizeOf(join(from, copies.STORE_FILE));
  const watch = setInterval(() => {
    void sizeOf(join(to, copies.STORE_FILE)).then((bytes) => {
      if (!signal.aborted) progress.update(() => `copying the store: ${bytesText(bytes)} of ${bytesText(total)}`);
    });
  }, PROGRESS_MS);
  try {
    // LMDB cannot be stopped while it copies: the signal takes effect when it has finished.
    await copies.copyStore(from, to);
    signal.throwIfAborted();
  } finally {
    clearInterval(watch);
  }
  progress.update(() => 'checking the copy of the store');
  return await copies.inspectStore(to, (partition, key, value) => {
    signal.throwIfAborted();
    found.recorded.add(partition, key, value);
    const environmentId = chainOfHead(partition);
    if (environmentId !== undefined) found.audit.push({ environmentId, ...(JSON.parse(value) as AuditHead) });
  });
}

/** Describes the server's missing and damaged files, as found by the backup; null if there are none. */
function faultsOf({ files: { missing, damaged = [] } }: Manifest): string | null {
  const faults = [
    countAndName(missing, 'missing on the server'),
    countAndName(damaged, 'damaged on the server (they differ from their records)'),
  ].filter((fault) => fault !== null);
  return faults.length === 0 ? null : faults.join(', and ');
}

function countAndName(names: readonly string[], fault: string): string | null {
  if (names.length === 0) return null;
  const shown = names.slice(0, SHOWN_NAMES).join(', ') + (names.length > SHOWN_NAMES ? ', …' : '');
  return `${names.length === 1 ? 'one file is' : `${names.length} files are`} ${fault} (${shown})`;
}

function describe(to: string, { store, files }: Manifest, hasFaults: boolean): string {
  return [
    hasFaults
      ? 'The backup was written, but files of the server are missing or damaged.'
      : 'The backup is complete and was verified.',
    '',
    keyValues([
      ['folder', to],
      ['environments', String(store.environments)],
      ['records', String(store.records)],
      ['events', String(store.events)],
      ['store', bytesText(store.bytes)],
      ['files', `${files.count}, ${bytesText(files.bytes)}`],
    ]),
    nextSteps(`collab restore ${shellWord(to)} --dir <folder>`),
  ].join('\n');
}
