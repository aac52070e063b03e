import { createHash, type Hash } from 'node:crypto';
import { createReadStream, type Dirent } from 'node:fs';
import { mkdir, open, readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import Type, { type Static } from 'typebox';
import { InputSchema } from '../../domain/input/validate.ts';
import { Failure } from '../failure.ts';

/** The folder inside a backup, and inside a data folder, that holds the store. */
export const STORE = 'store';
/** The same for the files. */
export const FILES = 'files';
/** One line a file, as `sha256sum -c` reads them. */
export const SUMS = 'SHA256SUMS';
/** Written last: a folder without it is no finished backup. */
export const MANIFEST = 'manifest.json';
/** What backups of this version are. */
export const BACKUP_FORMAT = 1;

const COPY_BYTES = 1024 * 1024;
const STORE_FILE = 'data.mdb';
/** Names of the files of a backup: the store, and `files/<environment>/<folder>/<name>` (ports/blobs.ts says what names are). */
const CONTENT = /^(?:store\/data\.mdb|files(?:\/[!-\-0-~][!-.0-~]{0,127}){3})$/;

const count = () => Type.Integer({ minimum: 0 });

const ManifestSchema = Type.Object({
  kind: Type.Literal('collab-backup'),
  /** Of this layout. */
  format: Type.Integer({ minimum: 1 }),
  /** The version that made it. */
  version: Type.String(),
  createdAt: Type.String(),
  store: Type.Object({
    /** Of the store's layout. */
    format: Type.Integer({ minimum: 1 }),
    epoch: Type.String(),
    environments: count(),
    records: count(),
    events: count(),
    bytes: count(),
  }),
  files: Type.Object({
    count: count(),
    bytes: count(),
    /** Recorded files that are not in it, because the server has lost them: `environment/file`. */
    missing: Type.Array(Type.String()),
    /** Files in it that are not what their record says, because the server's are not; absent in older backups. */
    damaged: Type.Optional(Type.Array(Type.String())),
  }),
  /** SHA-256 of SHA256SUMS, hex. */
  sumsSha256: Type.String(),
});
/** What a backup says of itself. */
export type Manifest = Static<typeof ManifestSchema>;

const manifestInput = new InputSchema(ManifestSchema);

/**
 * The manifest of a finished backup.
 *
 * @throws {Failure} when the folder holds none, or one of a newer version
 */
export async function readManifest(folder: string): Promise<Manifest> {
  const text = await readFile(join(folder, MANIFEST), 'utf8').catch(() => null);
  if (text === null) {
    throw new Failure(`${folder} is no finished backup: it holds no ${MANIFEST}.`, ['Name the folder that `collab backup` was given.']);
  }
  const manifest = parsed(text);
  if (!manifestInput.check(manifest)) throw new Failure(`${join(folder, MANIFEST)} is not what \`collab backup\` writes.`);
  if (manifest.format > BACKUP_FORMAT) {
    throw new Failure(`The backup was made by a newer Collab (${manifest.version}).`, ['Restore it with that version.']);
  }
  return manifest;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Every file below a folder as a path relative to it, in order; none when it is absent. What begins with a dot is left out. */
export async function filesBelow(folder: string): Promise<string[]> {
  const found: string[] = [];
  const look = async (at: string): Promise<void> => {
    const entries: Dirent[] = await readdir(at, { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      if (entry.name.startsWith('.')) continue;
      if (entry.isDirectory()) await look(join(at, entry.name));
      else if (entry.isFile()) found.push(relative(folder, join(at, entry.name)));
    }
  };
  await look(folder);
  return found.sort();
}

/** Copies a file to a path that is free, flushed. Returns its SHA-256 (hex) and size; null when it is gone. */
export async function copyFile(from: string, to: string, onBytes: (bytes: number) => void = () => {}): Promise<{ sha256: string; bytes: number } | null> {
  const source = await open(from, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (source === null) return null;
  try {
    await mkdir(dirname(to), { recursive: true, mode: 0o700 });
    const target = await open(to, 'wx', 0o600);
    try {
      const hash = createHash('sha256');
      let bytes = 0;
      for await (const chunk of source.createReadStream({ autoClose: false, highWaterMark: COPY_BYTES }) as AsyncIterable<Buffer>) {
        hash.update(chunk);
        for (let at = 0; at < chunk.byteLength; ) at += (await target.write(chunk, at)).bytesWritten;
        bytes += chunk.byteLength;
        onBytes(chunk.byteLength);
      }
      await target.datasync();
      return { sha256: hash.digest('hex'), bytes };
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

/** The SHA-256 of a file, hex. */
export async function sha256Of(file: string, onBytes: (bytes: number) => void = () => {}): Promise<string> {
  const hash: Hash = createHash('sha256');
  for await (const chunk of createReadStream(file, { highWaterMark: COPY_BYTES }) as AsyncIterable<Buffer>) {
    hash.update(chunk);
    onBytes(chunk.byteLength);
  }
  return hash.digest('hex');
}

/**
 * The lines of SHA256SUMS: file relative to the backup -> SHA-256 (hex).
 *
 * @throws {Failure} for a name that no backup holds, such as one that leads out of the folder, and without the store
 */
export async function readSums(folder: string): Promise<Map<string, string>> {
  const sums = new Map<string, string>();
  for (const line of (await readFile(join(folder, SUMS), 'utf8')).split('\n').filter((text) => text !== '')) {
    const [, sha256, name] = /^([0-9a-f]{64}) {2}(.*)$/.exec(line) ?? [];
    if (sha256 === undefined || name === undefined || !CONTENT.test(name)) {
      throw new Failure(`${join(folder, SUMS)} is not what \`collab backup\` writes: it names ${JSON.stringify(line.slice(66, 266))}. Nothing was changed.`);
    }
    sums.set(name, sha256);
  }
  if (!sums.has(`${STORE}/${STORE_FILE}`)) throw new Failure(`${join(folder, SUMS)} names no store. Nothing was changed.`);
  return sums;
}

/** The bytes of a file, 0 when it is absent. */
export async function sizeOf(file: string): Promise<number> {
  return (await stat(file).catch(() => null))?.size ?? 0;
}
