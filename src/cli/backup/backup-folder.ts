import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as Type from 'typebox';
import type { Static } from 'typebox';
import { InputSchema } from '../../domain/input/validate.ts';
import { Failure } from '../failure.ts';

/** The folder of the store, in a backup and in a data folder. */
export const STORE = 'store';
/** The folder of the uploaded files in a backup. */
export const FILES = 'files';
/** The files of an environment whose names begin alike share a folder of a backup. */
const FOLDER_LETTERS = 10;
/** The file with the checksums, one line per file, in the format of `sha256sum -c`. */
export const SUMS = 'SHA256SUMS';
/** The manifest file. It is written last: a folder without it is not a complete backup. */
export const MANIFEST = 'manifest.json';
/** The version of the backup layout. */
export const BACKUP_FORMAT = 1;
const STORE_FILE = 'data.mdb';
/**
 * Matches the paths of the files of a backup: the store, and `files/<environment>/<folder>/<name>` (names as in
 * ports/blobs.ts).
 */
const CONTENT = /^(?:store\/data\.mdb|files(?:\/[!-\-0-~][!-.0-~]{0,127}){3})$/;

/** The path in a backup of a blob (names as in ports/blobs.ts). */
export function pathOfBlob(environmentId: string, name: string): string {
  return `${FILES}/${environmentId}/${name.slice(0, FOLDER_LETTERS)}/${name}`;
}

/** Environment and name of the blob at a path in a backup; null for any other file. */
export function blobAt(path: string): [environmentId: string, name: string] | null {
  const [folder, environmentId, , name] = path.split('/');
  return folder === FILES && environmentId !== undefined && name !== undefined ? [environmentId, name] : null;
}

const count = () => Type.Integer({ minimum: 0 });

const ManifestSchema = Type.Object({
  kind: Type.Literal('collab-backup'),
  /** The version of the backup layout. */
  format: Type.Integer({ minimum: 1 }),
  /** The release of Collab that created it. */
  version: Type.String(),
  createdAt: Type.String(),
  store: Type.Object({
    /** The version of the store's layout. */
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
    /** Recorded files that the server has lost and the backup therefore lacks: `environment/file`. */
    missing: Type.Array(Type.String()),
    /** Files that differ from their record, on the server and therefore in the backup; absent in older backups. */
    damaged: Type.Optional(Type.Array(Type.String())),
  }),
  /** The heads of the audit logs, that of the server with null; absent in older backups. */
  audit: Type.Optional(
    Type.Array(
      Type.Object({ environmentId: Type.Union([Type.String(), Type.Null()]), seq: count(), hash: Type.String() }),
    ),
  ),
  /** SHA-256 of SHA256SUMS, hex. */
  sumsSha256: Type.String(),
});
/** The manifest of a backup. */
export type Manifest = Static<typeof ManifestSchema>;

const manifestInput = new InputSchema(ManifestSchema);

/**
 * Reads the manifest of a complete backup.
 *
 * @throws {Failure} if the folder has none, or one of a newer layout
 */
export async function readManifest(folder: string): Promise<Manifest> {
  const text = await readFile(join(folder, MANIFEST), 'utf8').catch(() => null);
  if (text === null) {
    throw new Failure(`${folder} is not a complete backup: it contains no ${MANIFEST}.`, [
      'Name the folder that a backup was written to.',
    ]);
  }
  const manifest = parseJson(text);
  if (!manifestInput.check(manifest))
    throw new Failure(`${join(folder, MANIFEST)} was not written by \`collab backup\`, or was changed.`);
  if (manifest.format > BACKUP_FORMAT) {
    throw new Failure(`The backup was created by a newer release of Collab (${manifest.version}).`, [
      'Restore it with that release.',
    ]);
  }
  return manifest;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Reads SHA256SUMS: SHA-256 (hex) by file path, relative to the backup.
 *
 * @throws {Failure} if it contains a path that cannot be in a backup, such as one outside of its folder, or lacks the
 *   store
 */
export async function readSums(folder: string): Promise<Map<string, string>> {
  const sums = new Map<string, string>();
  for (const line of (await readFile(join(folder, SUMS), 'utf8')).split('\n').filter((text) => text !== '')) {
    const [, sha256, name] = /^([0-9a-f]{64}) {2}(.*)$/.exec(line) ?? [];
    if (sha256 === undefined || name === undefined || !CONTENT.test(name)) {
      throw new Failure(
        `${join(folder, SUMS)} was not written by \`collab backup\`, or was changed: it contains ${JSON.stringify(line.slice(66, 266))}. Nothing was restored.`,
      );
    }
    sums.set(name, sha256);
  }
  if (!sums.has(`${STORE}/${STORE_FILE}`))
    throw new Failure(`${join(folder, SUMS)} does not list the store. Nothing was restored.`);
  return sums;
}
