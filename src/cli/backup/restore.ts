import { realpath, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { storeCopies } from '../../app.ts';
import { lockDataFolder } from '../../cluster/data-folder-lock.ts';
import type { Config } from '../../config/schema.ts';
import { RecordedFiles } from '../../domain/files/recorded-files.ts';
import { ensureFolder } from '../../lib/durable-files.ts';
import { lostFiles } from './backup-files.ts';
import { copyFile, type Manifest, readManifest, readSums, sha256Of, STORE, SUMS } from './backup-folder.ts';
import { addCommand, pathArgument } from '../command.ts';
import { Failure } from '../failure.ts';
import { configOf, hasStore, invocation } from '../shared/folder.ts';
import { facts, next, note, printResult, shellWord } from '../terminal/output.ts';
import { bytesText, Progress } from '../terminal/progress.ts';
import { confirmDestruction } from '../terminal/prompt.ts';
import { makeDraft, putInPlace } from './restore-moves.ts';
import { findRunning } from '../shared/running.ts';

/** Adds `restore`. */
export function register(program: Command): void {
  addCommand(program, 'restore <backup>', {
    summary: 'Put a backup into a folder.',
    details:
      'Into a folder without data, or after a question over data that no server runs on; the old data is moved aside, not deleted. Everything is ' +
      'checked before anything changes. The log of events gets a new name (epoch): clients reload instead of resuming in a past that is gone.',
    examples: ['collab restore /backups/collab-2026-05-01 --dir /srv/collab', 'collab restore /backups/collab-2026-05-01 --dir /srv/collab --yes'],
  })
    .option('--yes', 'Do not ask.')
    .action(restore);
}

async function restore(backup: string, options: { yes?: true }, command: Command): Promise<void> {
  const at = invocation(command);
  const from = resolve(pathArgument('<backup>', backup));
  const manifest = await readManifest(from);
  const config = await configOf(at.dir);
  const running = findRunning(config.dataDir);
  if (running !== null) {
    throw new Failure(`A server runs on ${config.dataDir} (process ${running.pid}): nothing was changed.`, ['Stop it first: kill -TERM ' + running.pid]);
  }
  if (hasStore(config)) {
    const warning = `This replaces the data in ${config.dataDir} by the backup of ${manifest.createdAt}; the old data is moved aside.`;
    await confirmDestruction({ warning, answer: 'restore', yes: options.yes === true });
  }
  const { epoch, aside } = await place(from, manifest, config);
  const result = { dir: at.dir, dataDir: config.dataDir, backup: from, createdAt: manifest.createdAt, epoch, movedAside: aside, store: manifest.store };
  printResult(at.json, result, () =>
    [
      `Restored the backup of ${manifest.createdAt}.`,
      '',
      facts([
        ['data folder', config.dataDir],
        ['environments', String(manifest.store.environments)],
        ['records', String(manifest.store.records)],
        ['files', String(manifest.files.count)],
        ...(aside === null ? [] : [['old data', `${aside} (delete it when all is well)`] as const]),
      ]),
      next(`collab start --dir ${shellWord(at.dir)}`),
    ].join('\n'),
  );
}

/** Copies and checks aside, then moves into place while no server can start. */
async function place(from: string, manifest: Manifest, { dataDir }: Config): Promise<{ epoch: string; aside: string | null }> {
  await ensureFolder(dataDir);
  const lock = await lockDataFolder(dataDir);
  const progress = new Progress();
  let draft: string | undefined;
  try {
    draft = await makeDraft(dataDir);
    const sums = await copyChecked(from, draft, manifest, progress);
    const epoch = await checkStore(join(draft, STORE), manifest, sums);
    const aside = await putInPlace(dataDir, draft);
    return { epoch, aside };
  } finally {
    progress.end();
    if (draft !== undefined) await rm(draft, { recursive: true, force: true });
    lock.release();
  }
}

async function copyChecked(from: string, draft: string, manifest: Manifest, progress: Progress): Promise<ReadonlyMap<string, string>> {
  if ((await sha256Of(join(from, SUMS)).catch(() => '')) !== manifest.sumsSha256) throw damaged(from, SUMS);
  const whole = manifest.store.bytes + manifest.files.bytes;
  let done = 0;
  const sums = await readSums(from);
  const root = await realpath(from);
  for (const [name, sha256] of sums) {
    // A link could lead to any file of this machine, which would then be served to users.
    if ((await realpath(join(from, name)).catch(() => null)) !== join(root, name)) throw damaged(from, name);
    const copied = await copyFile(join(from, name), join(draft, name), (bytes) => (done += bytes));
    if (copied?.sha256 !== sha256) throw damaged(from, name);
    progress.say(() => `${bytesText(done)} of ${bytesText(whole)}`);
  }
  return sums;
}

/** Gives the log a new name (epoch) and reads the whole store once more. */
async function checkStore(path: string, { store }: Manifest, sums: ReadonlyMap<string, string>): Promise<string> {
  const { renewEpoch, inspectStore } = await storeCopies();
  const epoch = await renewEpoch(path);
  const recorded = new RecordedFiles();
  const found = await inspectStore(path, (partition, key, value) => recorded.add(partition, key, value));
  const same = found.environments === store.environments && found.records === store.records && found.events === store.events && found.epoch === epoch;
  if (!same) {
    throw new Failure(`The restored store holds ${found.records} records and ${found.events} events, the backup said ${store.records} and ${store.events}. Nothing was changed.`);
  }
  const lost = lostFiles(recorded, sums).length;
  if (lost > 0) note(`The backup lacks ${lost === 1 ? 'one file' : `${lost} files`} that its records name, or has damaged ones: their comments show files that cannot be loaded. \`collab doctor\` names them.`);
  return epoch;
}

function damaged(from: string, name: string): Failure {
  return new Failure(`The backup ${from} is damaged: ${name} is missing, a link, or not what it was. Nothing was changed.`, ['Take another backup; `sha256sum -c SHA256SUMS` inside it shows what is wrong with this one.']);
}
