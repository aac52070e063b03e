import { readdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { storeCopies } from '../app.ts';
import { loadConfig } from '../config/load.ts';
import { ensureFolder, syncTree, writeDurably } from '../lib/durable-files.ts';
import { version } from '../lib/version.ts';
import { BACKUP_FORMAT, copyFile, FILES, filesBelow, MANIFEST, type Manifest, sha256Of, sizeOf, STORE, SUMS } from './backup-folder.ts';
import { addCommand } from './command.ts';
import { Failure } from './failure.ts';
import { hasStore, invocation, missingFolder, storeFolder } from './folder.ts';
import { facts, next, note, printResult } from './output.ts';
import { bytesText, Progress } from './progress.ts';

/** How often the growth of the store's copy is looked at. */
const LOOK_MS = 200;
/** Names of missing files that people are shown; the manifest has all. */
const SHOWN_NAMES = 5;

/** Adds `backup`. */
export function register(program: Command): void {
  addCommand(program, 'backup <folder>', {
    summary: 'Copy everything into a new folder, beside a running server or without one.',
    details:
      'The store is copied as it stands at one moment, then the files; then the copy is opened and read whole. A folder with a manifest.json is ' +
      'a finished backup. config.json is not in it. It holds signing secrets: keep it as safe as the server.',
    examples: ['collab backup /backups/collab-$(date +%F)', 'collab backup /mnt/backup/collab --dir /srv/collab --json'],
  }).action(backup);
}

async function backup(folder: string, _options: object, command: Command): Promise<void> {
  const at = invocation(command);
  const config = loadConfig({ dir: at.dir, env: process.env, flags: {} });
  if (!hasStore(config)) throw missingFolder(at.dir);
  const to = resolve(folder);
  await claim(to);
  const progress = new Progress();
  try {
    const manifest = await fill(to, storeFolder(config), join(config.dataDir, FILES), progress);
    progress.end();
    sayMissing(manifest);
    printResult(at.json, { folder: to, verified: true, ...manifest }, () => describe(to, manifest));
  } catch (error) {
    progress.end();
    await Promise.all([STORE, FILES, SUMS, MANIFEST].map((name) => rm(join(to, name), { recursive: true, force: true })));
    throw error;
  }
}

/** Makes the folder, or takes it when it is empty. */
async function claim(to: string): Promise<void> {
  await ensureFolder(to);
  if ((await readdir(to)).length > 0) throw new Failure(`The folder ${to} is not empty: nothing was written.`, ['Name one that is new or empty.']);
}

async function fill(to: string, store: string, files: string, progress: Progress): Promise<Manifest> {
  const sums: string[] = [];
  const summary = await copyStore(store, join(to, STORE), progress);
  // Read once more rather than hashed on its way: what is on the disk is what counts.
  const { STORE_FILE } = await storeCopies();
  sums.push(line(await sha256Of(join(to, STORE, STORE_FILE)), `${STORE}/${STORE_FILE}`));

  const missing: string[] = [];
  const copied = { count: 0, bytes: 0 };
  // Files never change, so all that the copied store speaks of are there already, unless they are removed right now.
  for (const name of await filesBelow(files)) {
    const done = await copyFile(join(files, name), join(to, FILES, name), (bytes) => (copied.bytes += bytes));
    if (done === null) missing.push(name);
    else {
      copied.count++;
      sums.push(line(done.sha256, `${FILES}/${name}`));
    }
    progress.say(() => `files: ${copied.count}, ${bytesText(copied.bytes)}`);
  }
  await syncTree(to);
  await writeDurably(join(to, SUMS), sums.join(''));
  const manifest: Manifest = {
    kind: 'collab-backup',
    format: BACKUP_FORMAT,
    version,
    createdAt: new Date().toISOString(),
    store: summary,
    files: { ...copied, missing },
    sumsSha256: await sha256Of(join(to, SUMS)),
  };
  await writeDurably(join(to, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`);
  return manifest;
}

async function copyStore(from: string, to: string, progress: Progress): Promise<Manifest['store']> {
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
  return await copies.inspectStore(to);
}

function line(sha256: string, name: string): string {
  return `${sha256}  ${name}\n`;
}

function sayMissing({ files: { missing } }: Manifest): void {
  if (missing.length === 0) return;
  const names = missing.slice(0, SHOWN_NAMES).join(', ') + (missing.length > SHOWN_NAMES ? ', …' : '');
  note(`${missing.length} files were removed while the backup was made, and are not in it: ${names}`);
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
