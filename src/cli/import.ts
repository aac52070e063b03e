import { createReadStream } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { StartError } from '../cluster/exit.ts';
import { type DataLock, lockDataFolder } from '../cluster/lock.ts';
import type { Context } from '../domain/context.ts';
import { Import } from '../domain/import.ts';
import { CollabError } from '../errors.ts';
import { addCommand } from './command.ts';
import { Failure } from './failure.ts';
import { invocation, withStore } from './folder.ts';
import { readLines } from './lines.ts';
import { facts, next, printResult } from './output.ts';
import { bytesText, Progress } from './progress.ts';

/** Adds `import`. */
export function register(program: Command): void {
  addCommand(program, 'import <file>', {
    summary: 'Take in the environments of an export.',
    details:
      'Each environment comes whole or not at all: it appears when its last line was read, and what a broken import has left is removed by ' +
      'the next one. "-" reads standard input. Works beside a running server. An environment that is here already is refused, unless told to skip it.',
    examples: ['collab import all.ndjson', 'collab import all.ndjson --skip-existing', 'gunzip -c default.ndjson.gz | collab import -'],
  })
    .option('--skip-existing', 'Pass over environments that are here already: the way to call it again after a part of the file came in.')
    .action(take);
}

async function take(file: string, options: { skipExisting?: true }, command: Command): Promise<void> {
  const at = invocation(command);
  const path = file === '-' ? null : resolve(file);
  const whole = path === null ? null : (await stat(path)).size;
  const { done, skipped, lines } = await withStore(at, async (ctx, { dataDir }) => {
    const lock = await lockImports(dataDir);
    try {
      return await run(ctx, path, whole, options.skipExisting === true);
    } finally {
      lock.release();
    }
  });
  const environments = done.map(({ id, slug }) => ({ id, slug }));
  printResult(at.json, { environments, skipped, lines }, () =>
    [
      `Took in ${done.length === 1 ? 'one environment' : `${done.length} environments`}.`,
      '',
      facts([['taken in', done.map(({ slug }) => slug).join(', ') || 'none'], ['skipped', skipped.join(', ') || 'none'], ['lines', String(lines)]]),
      next('collab status', ...done.slice(0, 1).map(({ slug }) => `collab key create --env ${slug} --kind secret`)),
    ].join('\n'),
  );
}

/** Two imports at once could each take the other's work for leftovers. */
async function lockImports(dataDir: string): Promise<DataLock> {
  const folder = join(dataDir, 'import');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  try {
    return await lockDataFolder(folder);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    throw new Failure('Another import runs on this folder: nothing was taken in.', ['Wait until it has ended.']);
  }
}

async function run(ctx: Context, path: string | null, whole: number | null, skipExisting: boolean) {
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
      progress.say(() => `${lines} lines, ${bytesText(read)}${whole === null ? '' : ` of ${bytesText(whole)}`}`);
    }
    work.finish();
    return { done: work.done, skipped: work.skipped, lines };
  } catch (error) {
    await work.abandon();
    throw error instanceof CollabError ? refusal(error, lines, work) : error;
  } finally {
    progress.end();
  }
}

function refusal(error: CollabError, lines: number, { done }: Import): Failure {
  const come = done.length === 0 ? 'Nothing was taken in.' : `Taken in before: ${done.map(({ slug }) => slug).join(', ')}.`;
  const remedies = {
    id_taken: ['To leave it as it is and take in the others, add --skip-existing.', 'To replace it, delete it first: collab env delete <slug>'],
    slug_taken: ['Import it into another folder, or delete the one that is here: collab env delete <slug>'],
  } as const;
  const remedy: readonly string[] = error.code === 'id_taken' || error.code === 'slug_taken' ? remedies[error.code] : ['docs/export-format.md describes every line.'];
  return new Failure(`Line ${lines}: ${error.message}. ${come}`, remedy);
}
