import { createReadStream, existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { StartError } from '../../cluster/exit.ts';
import { type DataLock, lockDataFolder } from '../../cluster/data-folder-lock.ts';
import type { Config } from '../../config/schema.ts';
import type { Context } from '../../domain/context.ts';
import { Import } from '../../domain/transfer/import.ts';
import { CollabError } from '../../model/errors.ts';
import { ensureFolder } from '../../lib/durable-files.ts';
import { addCommand, pathArgument } from '../command.ts';
import { Failure } from '../failure.ts';
import { configOf, filesFolder, hasStore, invocation, useStore } from '../shared/folder.ts';
import { readLines } from '../terminal/lines.ts';
import { facts, next, printResult, shellWord } from '../terminal/output.ts';
import { bytesText, Progress } from '../terminal/progress.ts';
import { makeFolder } from '../setup/setup.ts';

/** What is read. */
interface Source {
  /** Null for standard input. */
  readonly path: string | null;
  /** Its size, where that is known. */
  readonly bytes: number | null;
  readonly skipExisting: boolean;
}

interface Taken {
  readonly done: Import['done'];
  readonly skipped: Import['skipped'];
  readonly lines: number;
}

/** Adds `import`. */
export function register(program: Command): void {
  addCommand(program, 'import <file>', {
    summary: 'Take in the environments of an export.',
    details:
      'Each environment comes whole or not at all: it appears when its last line was read, and what a broken import has left is removed by ' +
      'the next one, or by a running server after an hour. A folder without data is made first, as `collab init` does, but without an ' +
      'environment of its own; there the whole file comes in or nothing. "-" reads standard input. Works beside a running server. An environment that is here already is refused, unless told to skip it.',
    examples: ['collab import all.ndjson', 'collab import all.ndjson --dir /srv/new', 'collab import all.ndjson --skip-existing', 'gunzip -c default.ndjson.gz | collab import -'],
  })
    .option('--skip-existing', 'Pass over environments that are here already: the way to call it again after a part of the file came in.')
    .action(take);
}

async function take(file: string, options: { skipExisting?: true }, command: Command): Promise<void> {
  const at = invocation(command);
  const path = file === '-' ? null : resolve(pathArgument('<file>', file));
  const source: Source = { path, bytes: path === null ? null : (await stat(path)).size, skipExisting: options.skipExisting === true };
  const config = await configOf(at.dir);
  const isNew = !hasStore(config);
  const { done, skipped, lines } = isNew ? await intoNewFolder(at.dir, config, source) : await intoStore(config, source);
  const environments = done.map(({ id, slug }) => ({ id, slug }));
  const dir = `--dir ${shellWord(at.dir)}`;
  printResult(at.json, { dir: at.dir, madeFolder: isNew, environments, skipped, lines }, () =>
    [
      `${isNew ? `Made the folder ${at.dir} and took` : 'Took'} in ${done.length === 1 ? 'one environment' : `${done.length} environments`}.`,
      '',
      facts([['taken in', done.map(({ slug }) => slug).join(', ') || 'none'], ['skipped', skipped.join(', ') || 'none'], ['lines', String(lines)]]),
      next(`collab ${isNew ? 'start' : 'status'} ${dir}`, ...done.slice(0, 1).map(({ slug }) => `collab key create --env ${slug} --kind secret ${dir}`)),
    ].join('\n'),
  );
}

async function intoStore(config: Config, source: Source): Promise<Taken> {
  // Two imports at once could each take the other's work for leftovers.
  const lock = await lockImports(join(config.dataDir, 'import'));
  try {
    return await useStore(config, (ctx) => run(ctx, source, true));
  } finally {
    lock.release();
  }
}

/** Makes the folder, with what is read as all that it holds; when that fails there is none. */
async function intoNewFolder(dir: string, config: Config, source: Source): Promise<Taken> {
  const files = filesFolder(config);
  if (existsSync(files)) throw new Failure(`${files} is there, but no store beside it: nothing was taken in.`, ['Import into another folder, or move those files away.']);
  // The lock of the whole folder: no server may begin to write into what is about to be moved there.
  const lock = await lockImports(config.dataDir);
  try {
    const taken = await makeFolder(dir, config, (ctx) => run(ctx, source, false));
    if (taken === null) throw new Failure(`Another process has made the folder ${dir} meanwhile: nothing was taken in.`, ['Call it again to import into that one.']);
    return taken;
  } finally {
    lock.release();
  }
}

async function lockImports(folder: string): Promise<DataLock> {
  await ensureFolder(folder);
  try {
    return await lockDataFolder(folder);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    throw new Failure('Another import runs on this folder: nothing was taken in.', ['Wait until it has ended.']);
  }
}

/** @param keeps whether environments that came in before a failure stay */
async function run(ctx: Context, { path, bytes, skipExisting }: Source, keeps: boolean): Promise<Taken> {
  const work = new Import(ctx, { skipExisting });
  const progress = new Progress();
  let lines = 0;
  let read = 0;
  const counted = async function* (): AsyncIterable<Buffer> {
    for await (const chunk of path === null ? process.stdin : createReadStream(path, { highWaterMark: 1024 * 1024 })) {
      read += (chunk as Buffer).byteLength;
      yield chunk as Buffer;
    }
  };
  try {
    for await (const line of readLines(counted())) {
      lines++;
      await work.add(line);
      progress.say(() => `${lines} lines, ${bytesText(read)}${bytes === null ? '' : ` of ${bytesText(bytes)}`}`);
    }
    work.finish();
    return { done: work.done, skipped: work.skipped, lines };
  } catch (error) {
    await work.abandon();
    throw error instanceof CollabError ? refusal(error, lines, keeps ? work.done : []) : error;
  } finally {
    progress.end();
  }
}

function refusal(error: CollabError, lines: number, done: Import['done']): Failure {
  const come = done.length === 0 ? 'Nothing was taken in.' : `Taken in before: ${done.map(({ slug }) => slug).join(', ')}.`;
  const remedies = {
    id_taken: ['To leave it as it is and take in the others, add --skip-existing.', 'To replace it, delete it first: collab env delete <slug>'],
    slug_taken: ['Import it into another folder, or delete the one that is here: collab env delete <slug>'],
  } as const;
  const remedy: readonly string[] = error.code === 'id_taken' || error.code === 'slug_taken' ? remedies[error.code] : ['docs/export-format.md describes every line.'];
  return new Failure(`Line ${lines}: ${error.message}. ${come}`, remedy);
}
