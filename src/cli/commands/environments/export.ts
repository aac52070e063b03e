import { once } from 'node:events';
import { createWriteStream, existsSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Writable } from 'node:stream';
import type { Command } from 'commander';
import type { Context } from '../../../domain/context.ts';
import { findEnvironment, listEnvironments } from '../../../domain/environments/environments.ts';
import { exportEnvironment, exportHead } from '../../../domain/transfer/export.ts';
import { nameFile } from '../../../lib/errno.ts';
import { syncPath } from '../../../lib/files/durable-files.ts';
import type { Environment } from '../../../model/environments/environment.ts';
import { addCommand } from '../../command.ts';
import { pathArgument } from '../../option-values.ts';
import { Failure } from '../../failure.ts';
import { withStore } from '../../shared/open-store.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { keyValues, nextSteps, printNote, printResult } from '../../terminal/output.ts';
import { shellWord } from '../../../lib/shell-word.ts';
import { bytesText, Progress } from '../../terminal/progress.ts';

interface ExportFlags {
  readonly env?: string;
  readonly withSecrets?: true;
}

interface Written {
  readonly environments: number;
  readonly lines: number;
  readonly bytes: number;
  readonly missing: string[];
}

/** Adds `export`. */
export function register(program: Command): void {
  addCommand(program, 'export <file>', {
    summary: 'Export environments with all their contents to a file, as JSON lines.',
    details:
      'docs/export-format.md describes the format. "-" writes to standard output. If a server is running, ' +
      'each thread is exported as of one ' +
      'moment, but not the environment as a whole: for that, restore a backup into another folder and ' +
      'export there. API keys and signing secrets are left out by default.',
    examples: [
      'collab export all.ndjson',
      'collab export staging.ndjson --env staging',
      'collab export - --env default --with-secrets | gzip > default.ndjson.gz',
    ],
  })
    .option('--env <slug>', 'Only this environment (default: all).')
    .option(
      '--with-secrets',
      'Include API keys and signing secrets, so that clients keep working after an import. Keep the file as safe as the server.',
    )
    .action(write);
}

async function write(file: string, flags: ExportFlags, command: Command): Promise<void> {
  const at = invocationOf(command);
  const path = file === '-' ? null : resolve(pathArgument('<file>', file));
  if (path !== null && existsSync(path))
    throw new Failure(`${path} exists already, so nothing was written.`, ['Choose a file that does not exist.']);
  const written = await withStore(at, async (ctx) => {
    const environments =
      flags.env === undefined ? await listEnvironments(ctx) : [await findEnvironment(ctx, flags.env)];
    return path === null
      ? unlessFailed(process.stdout, writeTo(process.stdout, ctx, environments, flags))
      : writeFile(path, ctx, environments, flags);
  });
  for (const what of written.missing) printNote(`Left out because it was deleted or is missing: ${what}`);
  if (path === null) return;
  printResult(at.json, { file: path, withSecrets: flags.withSecrets === true, ...written }, () =>
    [
      `Wrote ${path}.`,
      '',
      keyValues([
        ['environments', String(written.environments)],
        ['lines', String(written.lines)],
        ['size', bytesText(written.bytes)],
        ['secrets', flags.withSecrets ? 'included' : 'left out'],
      ]),
      nextSteps(`collab import ${shellWord(path)} --dir <folder>`),
    ].join('\n'),
  );
}

/** Writes to a temporary file and renames it, so that a file with the final name is always complete. */
async function writeFile(
  path: string,
  ctx: Context,
  environments: readonly Environment[],
  flags: ExportFlags,
): Promise<Written> {
  const temporary = `${path}.partial-${process.pid}`;
  const handle = await open(temporary, 'wx', 0o600);
  try {
    const stream = createWriteStream(temporary, { fd: handle.fd, autoClose: false });
    const written = await unlessFailed(stream, writeTo(stream, ctx, environments, flags));
    await new Promise<void>((done, fail) => stream.end((error?: Error | null) => (error ? fail(error) : done())));
    await handle.sync();
    await rename(temporary, path);
    await syncPath(dirname(path));
    return written;
  } catch (error) {
    await rm(temporary, { force: true });
    throw nameFile(error, path);
  } finally {
    await handle.close();
  }
}

/**
 * Resolves as `work`, which writes to the stream. Rejects as soon as the stream fails, after which `work` could wait
 * forever.
 */
function unlessFailed<T>(stream: Writable, work: Promise<T>): Promise<T> {
  const failed = once(stream, 'error').then(([error]) => Promise.reject(error as Error));
  return Promise.race([work, failed]);
}

async function writeTo(
  stream: Writable,
  ctx: Context,
  environments: readonly Environment[],
  { withSecrets }: ExportFlags,
): Promise<Written> {
  const progress = new Progress();
  const missing: string[] = [];
  let lines = 0;
  let bytes = 0;
  const put = async (line: string): Promise<void> => {
    lines++;
    const data = Buffer.from(`${line}\n`);
    bytes += data.byteLength;
    // Writing may wait for the reader of a pipe, and must not keep a snapshot open meanwhile.
    ctx.operations?.releaseSnapshot();
    if (!stream.write(data)) await once(stream, 'drain');
  };
  await put(exportHead());
  for (const environment of environments) {
    for await (const line of exportEnvironment(ctx, environment, {
      withSecrets: withSecrets === true,
      onMissing: (what) => missing.push(what),
    })) {
      await put(line);
      progress.update(() => `${environment.slug}: ${lines} lines, ${bytesText(bytes)}`);
    }
  }
  progress.end();
  return { environments: environments.length, lines, bytes, missing };
}
