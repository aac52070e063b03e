import { createReadStream, existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { StartError } from '../../../cluster/exit.ts';
import { type DataLock, lockDataFolder } from '../../../cluster/data-folder-lock.ts';
import type { Config } from '../../../config/schema.ts';
import type { Context } from '../../../domain/context.ts';
import { Import } from '../../../domain/transfer/import.ts';
import { ImportError } from '../../../domain/transfer/import-error.ts';
import { CollabError, isStoreError } from '../../../model/errors.ts';
import { ensureFolder, removeEmptyFolders } from '../../../lib/files/durable-files.ts';
import { addCommand } from '../../command.ts';
import { pathArgument } from '../../option-values.ts';
import { asFailure, Failure } from '../../failure.ts';
import { filesFolder, hasStore } from '../../shared/folder.ts';
import { loadFolderConfig, useStore } from '../../shared/open-store.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { readLines } from '../../../lib/files/read-lines.ts';
import { keyValues, nextSteps, printResult } from '../../terminal/output.ts';
import { shellWord } from '../../../lib/shell-word.ts';
import { bytesText, Progress } from '../../terminal/progress.ts';
import { createFolder } from '../../setup/setup.ts';

/** The file to import. */
interface Source {
  /** Null for standard input. */
  readonly path: string | null;
  /** Its size; null if unknown. */
  readonly bytes: number | null;
  readonly skipExisting: boolean;
}

interface ImportResult {
  readonly done: Import['done'];
  readonly skipped: Import['skipped'];
  readonly lines: number;
}

/** Adds `import`. */
export function register(program: Command): void {
  addCommand(program, 'import <file>', {
    summary: 'Import the environments of an export.',
    details:
      'Each environment is imported completely or not at all: it appears once its last line was read. What ' +
      'an interrupted import has left is removed by ' +
      'the next import, or by a running server after an hour. A folder without data is created first, as by ' +
      '`collab init`, but without a first ' +
      'environment; there the whole file is imported or nothing. "-" reads standard input. Works while a ' +
      'server is running. An environment that exists already is refused, unless --skip-existing is given.',
    examples: [
      'collab import all.ndjson',
      'collab import all.ndjson --dir /srv/new',
      'collab import all.ndjson --skip-existing',
      'gunzip -c default.ndjson.gz | collab import -',
    ],
  })
    .option(
      '--skip-existing',
      'Skip environments that exist already. Use it to repeat an import that imported only a part of the file.',
    )
    .action(importFile);
}

async function importFile(file: string, options: { skipExisting?: true }, command: Command): Promise<void> {
  const at = invocationOf(command);
  const path = file === '-' ? null : resolve(pathArgument('<file>', file));
  const source: Source = {
    path,
    bytes: path === null ? null : (await stat(path)).size,
    skipExisting: options.skipExisting === true,
  };
  const config = await loadFolderConfig(at.dir);
  const isNew = !hasStore(config);
  const { done, skipped, lines } = isNew
    ? await importIntoNewFolder(at.dir, config, source)
    : await importIntoStore(config, source);
  const environments = done.map(({ id, slug }) => ({ id, slug }));
  const dir = `--dir ${shellWord(at.dir)}`;
  printResult(at.json, { dir: at.dir, madeFolder: isNew, environments, skipped, lines }, () =>
    [
      `${isNew ? `Created the folder ${at.dir} and imported` : 'Imported'} ${done.length === 1 ? 'one environment' : `${done.length} environments`}.`,
      '',
      keyValues([
        ['imported', done.map(({ slug }) => slug).join(', ') || 'none'],
        ['skipped', skipped.join(', ') || 'none'],
        ['lines', String(lines)],
      ]),
      nextSteps(
        `collab ${isNew ? 'start' : 'status'} ${dir}`,
        ...done.slice(0, 1).map(({ slug }) => `collab key create --env ${slug} --kind secret ${dir}`),
      ),
    ].join('\n'),
  );
}

async function importIntoStore(config: Config, source: Source): Promise<ImportResult> {
  // Of two imports at once, each could remove the work of the other one as that of an interrupted import.
  const folder = join(config.dataDir, 'import');
  await ensureFolder(folder);
  const lock = await lockImports(folder);
  try {
    return await useStore(config, (ctx) => run(ctx, source, true));
  } finally {
    lock.release();
  }
}

/**
 * Creates the folder with the imported environments only. If the import fails, no store is created, and no folder is
 * left.
 */
async function importIntoNewFolder(dir: string, config: Config, source: Source): Promise<ImportResult> {
  const files = filesFolder(config);
  if (existsSync(files))
    throw new Failure(`${files} exists, but there is no store next to it. Nothing was imported.`, [
      'Import into another folder, or move those files elsewhere.',
    ]);
  const created = [...(await ensureFolder(dir)), ...(await ensureFolder(config.dataDir))];
  try {
    // Lock the whole data folder, so that no server starts on it before the store is moved there.
    const lock = await lockImports(config.dataDir);
    try {
      const imported = await createFolder(dir, config, (ctx) => run(ctx, source, false));
      if (imported === null)
        throw new Failure(`Another process has created the folder ${dir} in the meantime. Nothing was imported.`, [
          'Run the command again to import into that folder.',
        ]);
      return imported;
    } finally {
      lock.release();
    }
  } catch (error) {
    await removeEmptyFolders(created);
    throw error;
  }
}

/** Locks a folder, which must exist, against other imports. */
async function lockImports(folder: string): Promise<DataLock> {
  try {
    return await lockDataFolder(folder);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    throw new Failure('Another import into this folder is running. Nothing was imported.', [
      'Run the command again when it has finished.',
    ]);
  }
}

/** @param keeps whether environments imported before a failure are kept */
async function run(ctx: Context, { path, bytes, skipExisting }: Source, keeps: boolean): Promise<ImportResult> {
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
      progress.update(() => `${lines} lines, ${bytesText(read)}${bytes === null ? '' : ` of ${bytesText(bytes)}`}`);
    }
    work.finish();
    return { done: work.done, skipped: work.skipped, lines };
  } catch (error) {
    // What the store refuses to remove now is removed by the next import, or by a server.
    await work.abandon().catch((failure: unknown) => {
      if (!isStoreError(failure)) throw failure;
    });
    if (isStoreError(error)) throw refusedByDisk(error, keeps ? work.done : []);
    const line = error instanceof ImportError ? error.line : lines;
    throw error instanceof CollabError ? refusal(error, line, keeps ? work.done : []) : error;
  } finally {
    progress.end();
  }
}

/** The failure of an import that the store refuses. */
function refusedByDisk(error: unknown, done: Import['done']): Failure {
  const { message, remedies, exitCode, code } = asFailure(error);
  return new Failure(`${message} ${effectOf(done)}`, remedies, exitCode, code);
}

function effectOf(done: Import['done']): string {
  return done.length === 0
    ? 'Nothing was imported.'
    : `Imported before the error: ${done.map(({ slug }) => slug).join(', ')}.`;
}

function refusal(error: CollabError, line: number, done: Import['done']): Failure {
  const remedies = {
    id_taken: [
      'To keep it and import the others, add --skip-existing.',
      'To replace it, delete it first: `collab env delete <slug>`',
    ],
    slug_taken: ['Import it into another folder, or delete the existing environment: `collab env delete <slug>`'],
  } as const;
  const others = [
    'If the server that made the export accepts it, it is of an earlier version: change it there, such as ' +
      'names with line breaks and origins with a wildcard, and export again.',
    'docs/export-format.md describes every line.',
  ];
  const remedy: readonly string[] =
    error.code === 'id_taken' || error.code === 'slug_taken' ? remedies[error.code] : others;
  return new Failure(`Line ${line}: ${error.message}. ${effectOf(done)}`, remedy);
}
