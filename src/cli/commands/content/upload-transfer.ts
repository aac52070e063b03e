import type { Stats } from 'node:fs';
import { type FileHandle, open, rm, stat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import { type Context, requireFileStorage } from '../../../domain/context.ts';
import { findEnvironment } from '../../../domain/environments/environments.ts';
import { withBaseUrl } from '../../../domain/files/file-urls.ts';
import { guessedType, SIGNATURE_BYTES } from '../../../domain/files/guess-type.ts';
import { getUpload, type UploadView } from '../../../domain/files/upload-records.ts';
import { beginUpload, type UploadConfig } from '../../../domain/files/uploads.ts';
import type { UserActor } from '../../../domain/access/actor.ts';
import { impersonate } from '../../../domain/users/impersonate.ts';
import type { Attachment } from '../../../model/attachment.ts';
import type { BlobReader } from '../../../ports/blobs.ts';
import { addCommand } from '../../command.ts';
import { Failure } from '../../failure.ts';
import { pathArgument } from '../../option-values.ts';
import { writeContent } from '../../shared/content.ts';
import { withStore } from '../../shared/open-store.ts';
import { fileBaseUrl } from '../../shared/file-urls.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { keyValues, nextSteps, printResult } from '../../terminal/output.ts';
import { nameFile } from '../../../lib/errno.ts';
import { shellWord } from '../../../lib/shell-word.ts';
import { bytesText } from '../../terminal/progress.ts';

const SLICE_BYTES = 1024 * 1024;

/** Adds `upload create|fetch`. */
export function addUploadTransfers(upload: Command): void {
  addCommand(upload, 'create <file>', {
    summary: 'Upload a file, to be attached to a comment.',
    details:
      'The file counts against the quotas of the user, and is deleted after 24 hours if no comment links ' +
      'it. The limits of the environment and the filters of plugins apply as to a request. The URL is a ' +
      'path if no server is running and publicUrl is empty.',
    examples: [
      'collab upload create ./screenshot.png --env default --user ann',
      'collab upload create ./note.webm --env default --user ann --type audio/webm --json | jq -r .id',
    ],
  })
    .requiredOption('--env <slug>', 'Environment of the upload.')
    .requiredOption('--user <id>', 'User who uploads.')
    .option('--type <mime>', 'MIME type (default: as the first bytes and the name suggest).')
    .action(create);

  addCommand(upload, 'fetch <id>', {
    summary: 'Write the bytes of an upload to a file.',
    details: '"-" writes them to standard output, and nothing else.',
    examples: [
      'collab upload fetch file_1m824gecgs4y1gdw90dr --env default --out ./screenshot.png',
      'collab upload fetch file_1m824gecgs4y1gdw90dr --env default --out - | sha256sum',
    ],
  })
    .requiredOption('--env <slug>', 'Environment of the upload.')
    .requiredOption('--out <path>', 'File to write; it must not exist.')
    .action(fetchOne);
}

async function create(
  file: string,
  { env, user, type }: { env: string; user: string; type?: string },
  command: Command,
): Promise<void> {
  const at = invocationOf(command);
  const path = resolve(pathArgument('<file>', file));
  const { size } = await requireFile(path);
  const attachment = await writeContent(at, env, async (ctx, backend, config) => {
    const actor = await impersonate(ctx, backend, user, 'create');
    return withBaseUrl(await store(ctx, actor, config, { path, size, type }), fileBaseUrl(config));
  });
  printResult(at.json, attachment, () =>
    [
      keyValues([
        ['id', attachment.id],
        ['url', attachment.url],
        ['type', attachment.mimeType],
        ['size', `${attachment.sizeBytes} bytes`],
      ]),
      nextSteps(
        `collab thread create --env ${env} --room <id> --user ${shellWord(user)} --body <text> --attach ${attachment.id}`,
      ),
    ].join('\n'),
  );
}

async function requireFile(path: string): Promise<Stats> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ENOENT' || error.code === 'ENOTDIR' ? new Failure(`There is no file ${path}.`) : error;
  });
  if (!found.isFile())
    throw new Failure(`${path} is ${found.isDirectory() ? 'a folder' : 'no regular file'}. <file> must be a file.`);
  return found;
}

/** Stores a file as `POST /upload` does. */
async function store(
  ctx: Context,
  actor: UserActor,
  config: UploadConfig,
  { path, size, type }: { path: string; size: number; type: string | undefined },
): Promise<Attachment> {
  const handle = await open(path);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(SIGNATURE_BYTES), 0, SIGNATURE_BYTES, 0);
    const filename = basename(path);
    const contentType = type ?? guessedType(filename, buffer.subarray(0, bytesRead)) ?? '';
    const upload = await beginUpload(ctx, actor, config, {
      filename,
      contentType,
      isDeclared: type !== undefined,
      minBytes: size,
    });
    try {
      for await (const chunk of handle.createReadStream({ start: 0, autoClose: false, highWaterMark: SLICE_BYTES }))
        await upload.write(chunk as Buffer);
      return await upload.finish();
    } finally {
      await upload.discard();
    }
  } finally {
    await handle.close();
  }
}

async function fetchOne(id: string, { env, out }: { env: string; out: string }, command: Command): Promise<void> {
  const at = invocationOf(command);
  const path = out === '-' ? null : resolve(pathArgument('--out', out));
  const upload = await withStore(at, async (ctx) => {
    const environment = await findEnvironment(ctx, env);
    const found = await getUpload(ctx, environment, id);
    const { blobs } = requireFileStorage(ctx);
    if ((await blobs.stat(environment.id, id)) === undefined)
      throw new Failure(`The bytes of ${id} are missing.`, [
        '`collab doctor` lists the files that are missing; restore them from a backup.',
      ]);
    const reader = await blobs.open(environment.id, id);
    try {
      await (path === null
        ? pipeline(slices(reader, found), process.stdout, { end: false })
        : writeTo(path, slices(reader, found)));
    } finally {
      await reader.close();
    }
    return found;
  });
  if (path !== null)
    printResult(at.json, { file: path, ...upload }, () => `Wrote ${bytesText(upload.sizeBytes)} to ${path}.`);
}

async function* slices(reader: BlobReader, { sizeBytes }: UploadView): AsyncGenerator<Buffer> {
  for (let at = 0; at < sizeBytes; at += SLICE_BYTES) yield await reader.read(at, SLICE_BYTES);
}

async function writeTo(path: string, bytes: AsyncIterable<Buffer>): Promise<void> {
  const handle: FileHandle = await open(path, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'EEXIST'
      ? new Failure(`${path} exists already, so nothing was written.`, ['Choose a file that does not exist.'])
      : error;
  });
  try {
    await pipeline(bytes, handle.createWriteStream());
  } catch (error) {
    await rm(path, { force: true });
    throw nameFile(error, path);
  }
}
