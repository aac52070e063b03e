import { once } from 'node:events';
import { createWriteStream, existsSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Writable } from 'node:stream';
import type { Command } from 'commander';
import type { Context } from '../../domain/context.ts';
import { findEnvironment, listEnvironments } from '../../domain/environments/environments.ts';
import { exportEnvironment, exportHead } from '../../domain/transfer/export.ts';
import { syncPath } from '../../lib/durable-files.ts';
import type { Environment } from '../../model/environment.ts';
import { addCommand, pathArgument } from '../command.ts';
import { Failure } from '../failure.ts';
import { invocation, withStore } from '../shared/folder.ts';
import { facts, next, note, printResult } from '../terminal/output.ts';
import { bytesText, Progress } from '../terminal/progress.ts';

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
    summary: 'Write environments with all their content to a file, as JSON lines.',
    details:
      'The format is documented in docs/export-format.md. "-" writes to standard output. Beside a running server every thread is as it was at ' +
      'one moment, the whole is not: for that, restore a backup elsewhere and export there. API keys and signing secrets are left out unless asked for.',
    examples: ['collab export all.ndjson', 'collab export staging.ndjson --env staging', 'collab export - --env default --with-secrets | gzip > default.ndjson.gz'],
  })
    .option('--env <slug>', 'Only this environment (default: all).')
    .option('--with-secrets', 'With API keys and signing secrets, so that clients go on working: keep the file as safe as the server.')
    .action(write);
}

async function write(file: string, flags: ExportFlags, command: Command): Promise<void> {
  const at = invocation(command);
  const path = file === '-' ? null : resolve(pathArgument('<file>', file));
  if (path !== null && existsSync(path)) throw new Failure(`${path} is there already: nothing was written.`, ['Name a file that is not there.']);
  const written = await withStore(at, async (ctx) => {
    const environments = flags.env === undefined ? await listEnvironments(ctx) : [await findEnvironment(ctx, flags.env)];
    return path === null ? unlessFailed(process.stdout, writeTo(process.stdout, ctx, environments, flags)) : writeFile(path, ctx, environments, flags);
  });
  for (const what of written.missing) note(`Left out, for it is not there any more: ${what}`);
  if (path === null) return;
  printResult(at.json, { file: path, withSecrets: flags.withSecrets === true, ...written }, () =>
    [
      `Wrote ${path}.`,
      '',
      facts([['environments', String(written.environments)], ['lines', String(written.lines)], ['size', bytesText(written.bytes)], ['secrets', flags.withSecrets ? 'in it' : 'left out']]),
      next(`collab import ${path} --dir <folder>`),
    ].join('\n'),
  );
}

/** Writes aside, so that a file with the name is always a whole one. */
async function writeFile(path: string, ctx: Context, environments: readonly Environment[], flags: ExportFlags): Promise<Written> {
  const draft = `${path}.partial-${process.pid}`;
  const handle = await open(draft, 'wx', 0o600);
  try {
    const stream = createWriteStream(draft, { fd: handle.fd, autoClose: false });
    const written = await unlessFailed(stream, writeTo(stream, ctx, environments, flags));
    await new Promise<void>((done) => stream.end(done));
    await handle.sync();
    await rename(draft, path);
    await syncPath(dirname(path));
    return written;
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}

/** Gives what `work` on a stream gives; rejects as soon as the stream fails, which `work` might wait for ever after. */
function unlessFailed<T>(stream: Writable, work: Promise<T>): Promise<T> {
  const failed = once(stream, 'error').then(([error]) => Promise.reject(error as Error));
  return Promise.race([work, failed]);
}

async function writeTo(stream: Writable, ctx: Context, environments: readonly Environment[], { withSecrets }: ExportFlags): Promise<Written> {
  const progress = new Progress();
  const missing: string[] = [];
  let lines = 0;
  let bytes = 0;
  const put = async (line: string): Promise<void> => {
    lines++;
    const data = Buffer.from(`${line}\n`);
    bytes += data.byteLength;
    // Writing waits for the reader of a pipe.
    ctx.store.releaseSnapshot();
    if (!stream.write(data)) await once(stream, 'drain');
  };
  await put(exportHead());
  for (const environment of environments) {
    for await (const line of exportEnvironment(ctx, environment, { withSecrets: withSecrets === true, onMissing: (what) => missing.push(what) })) {
      await put(line);
      progress.say(() => `${environment.slug}: ${lines} lines, ${bytesText(bytes)}`);
    }
  }
  progress.end();
  return { environments: environments.length, lines, bytes, missing };
}
