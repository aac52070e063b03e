import { realpath, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { storeCopies } from '../../app.ts';
import { openBlobs } from '../../engines.ts';
import { lockDataFolder } from '../../cluster/data-folder-lock.ts';
import type { Config } from '../../config/schema.ts';
import { addToChain } from '../../domain/audit/chain.ts';
import { AUDIT_HEAD_KEY, auditHeadOf, auditKey, auditOf } from '../../domain/records/partitions.ts';
import { RecordedFiles } from '../../domain/files/recorded-files.ts';
import { ensureFolder, removeEmptyFolders } from '../../lib/files/durable-files.ts';
import type { Blobs } from '../../ports/blobs.ts';
import { lostFiles } from './backup-files.ts';
import { blobAt, type Manifest, readManifest, readSums, STORE, SUMS } from './backup-folder.ts';
import { fileToBlob } from './copy-blob.ts';
import { copyFile, sha256Of } from './copy-file.ts';
import { addCommand } from '../command.ts';
import { pathArgument } from '../option-values.ts';
import { Failure } from '../failure.ts';
import { hasStore, requireStoreInFolder } from '../shared/folder.ts';
import { loadFolderConfig } from '../shared/open-store.ts';
import { invocationOf } from '../shared/invocation.ts';
import { keyValues, nextSteps, withDirOption, printNote, printResult } from '../terminal/output.ts';
import { shellWord } from '../../lib/shell-word.ts';
import { bytesText, Progress } from '../terminal/progress.ts';
import { confirmDestruction } from '../terminal/prompt.ts';
import { createStagingFolder, replaceData } from './replace-data.ts';
import { operatorName } from '../shared/operator.ts';
import { findRunningServer } from '../shared/running-server.ts';

/** Adds `restore`. */
export function register(program: Command): void {
  addCommand(program, 'restore <backup>', {
    summary: 'Restore a backup into a folder.',
    details:
      'The server must be stopped. If the folder already has data, asks first, and moves the old data aside ' +
      'instead of deleting it. Everything is ' +
      'checked before anything changes. The event streams get a new epoch, so that clients reload instead ' +
      'of resuming at positions that no longer exist.',
    examples: [
      'collab restore /backups/collab-2026-05-01 --dir /srv/collab',
      'collab restore /backups/collab-2026-05-01 --dir /srv/collab --yes',
    ],
  })
    .option('--yes', 'Do not ask.')
    .action(restore);
}

async function restore(backup: string, options: { yes?: true }, command: Command): Promise<void> {
  const at = invocationOf(command);
  const from = resolve(pathArgument('<backup>', backup));
  const manifest = await readManifest(from);
  const config = await loadFolderConfig(at.dir);
  requireStoreInFolder(
    config,
    'Restore PostgreSQL by its own tools (pg_restore, or recovery to a point in time), and the bucket of blobs.url to ' +
      'the same or a later time. Then `collab doctor --deep` shows whether they belong together.',
  );
  const running = findRunningServer(config.dataDir);
  if (running !== null) {
    throw new Failure(`A server is running on ${config.dataDir} (process ${running.pid}), so nothing was restored.`, [
      'Stop it first: kill -TERM ' + running.pid,
    ]);
  }
  if (hasStore(config)) {
    const warning = `This replaces the data in ${config.dataDir} with the backup of ${manifest.createdAt}. The old data is moved aside.`;
    await confirmDestruction({ warning, answer: 'restore', yes: options.yes === true });
  }
  const { epoch, aside } = await copyAndReplace(from, manifest, config);
  const result = {
    dir: at.dir,
    dataDir: config.dataDir,
    backup: from,
    createdAt: manifest.createdAt,
    epoch,
    movedAside: aside,
    store: manifest.store,
  };
  printResult(at.json, result, () =>
    [
      `Restored the backup of ${manifest.createdAt}.`,
      '',
      keyValues([
        ['data folder', config.dataDir],
        ['environments', String(manifest.store.environments)],
        ['records', String(manifest.store.records)],
        ['files', String(manifest.files.count)],
        ...(aside === null ? [] : [['old data', `${aside} (delete it once you no longer need it)`] as const]),
      ]),
      nextSteps(`collab start --dir ${shellWord(at.dir)}`),
    ].join('\n'),
  );
}

/** Copies the backup into a staging folder, checks it, and moves it into place. No server can start meanwhile. */
async function copyAndReplace(
  from: string,
  manifest: Manifest,
  config: Config,
): Promise<{ epoch: string; aside: string | null }> {
  const { dataDir } = config;
  const created = await ensureFolder(dataDir);
  const lock = await lockDataFolder(dataDir);
  const progress = new Progress();
  let staging: string | undefined;
  try {
    staging = await createStagingFolder(dataDir);
    const blobs = await openBlobs({ ...config, dataDir: staging });
    const sums = await copyChecked(from, staging, blobs, manifest, progress);
    await blobs.sweepStaged(0);
    const epoch = await checkStore(join(staging, STORE), manifest, sums);
    const aside = await replaceData(dataDir, staging);
    return { epoch, aside };
  } finally {
    progress.end();
    if (staging !== undefined) await rm(staging, { recursive: true, force: true });
    lock.release();
    // They are empty if the restore has failed.
    await removeEmptyFolders(created);
  }
}

async function copyChecked(
  from: string,
  staging: string,
  blobs: Blobs,
  manifest: Manifest,
  progress: Progress,
): Promise<ReadonlyMap<string, string>> {
  if ((await sha256Of(join(from, SUMS)).catch(() => '')) !== manifest.sumsSha256) throw damaged(from, SUMS);
  const total = manifest.store.bytes + manifest.files.bytes;
  let done = 0;
  const sums = await readSums(from);
  const root = await realpath(from);
  for (const [name, sha256] of sums) {
    // A symbolic link could point to any file of this machine, which would then be served to users.
    if ((await realpath(join(from, name)).catch(() => null)) !== join(root, name)) throw damaged(from, name);
    const bytes = await copyInto(join(from, name), join(staging, name), sha256, blobs, blobAt(name));
    if (bytes === null) throw damaged(from, name);
    done += bytes;
    progress.update(() => `${bytesText(done)} of ${bytesText(total)}`);
  }
  return sums;
}

/**
 * Copies the store's file, or a file that becomes a blob. Returns its size; null if it is missing or has another
 * SHA-256.
 */
async function copyInto(
  from: string,
  to: string,
  sha256: string,
  blobs: Blobs,
  blob: [environmentId: string, name: string] | null,
): Promise<number | null> {
  if (blob !== null) return fileToBlob(from, sha256, blobs, ...blob);
  const copied = await copyFile(from, to);
  return copied?.sha256 === sha256 ? copied.bytes : null;
}

/** Gives the store a new epoch, and reads all of it to compare it with the manifest. Returns the epoch. */
async function checkStore(path: string, manifest: Manifest, sums: ReadonlyMap<string, string>): Promise<string> {
  const copies = await storeCopies();
  const { store } = manifest;
  let added = 0;
  const epoch = await copies.renewEpoch(path, (records) => (added = recordRestore(records, manifest)));
  const recorded = new RecordedFiles();
  const found = await copies.inspectStore(path, (partition, key, value) => recorded.add(partition, key, value));
  const same =
    found.environments === store.environments &&
    found.records - added === store.records &&
    found.events === store.events &&
    found.epoch === epoch;
  if (!same) {
    throw new Failure(
      `The restored store has ${found.records} records and ${found.events} events, but the backup's ` +
        `manifest says ${store.records} and ${store.events}. Nothing was changed.`,
    );
  }
  const lost = lostFiles(recorded, sums).length;
  if (lost > 0)
    printNote(
      `In the backup ${lost === 1 ? 'one file is' : `${lost} files are`} missing or damaged: their comments will show files that cannot be loaded. ${withDirOption('`collab doctor --deep` names them.')}`,
    );
  return epoch;
}

/** The records of the copied store. */
interface CopiedRecords {
  get(partition: string, key: string): string | undefined;
  put(partition: string, key: string, value: string): void;
}

/** Adds the restore to the audit log of the restored server. Returns how many records the store has more. */
function recordRestore(records: CopiedRecords, { createdAt, version }: Manifest): number {
  const stored = records.get(auditHeadOf(null), AUDIT_HEAD_KEY);
  const { text, head } = addToChain(null, stored, {
    at: new Date().toISOString(),
    actor: { kind: 'cli', id: operatorName() },
    action: 'server.restore',
    target: { kind: 'server', id: 'server' },
    details: { backup: createdAt, version },
  });
  records.put(auditOf(null), auditKey(head.seq), text);
  records.put(auditHeadOf(null), AUDIT_HEAD_KEY, JSON.stringify(head));
  return stored === undefined ? 2 : 1;
}

function damaged(from: string, name: string): Failure {
  return new Failure(
    `The backup ${from} is damaged: ${name} is missing, is a symbolic link, or was changed. Nothing was restored.`,
    ['Use another backup. `sha256sum -c SHA256SUMS` inside this one lists its damaged files.'],
  );
}
