import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { RecordedFiles } from '../../domain/files/recorded-files.ts';
import type { Blobs } from '../../ports/blobs.ts';
import { blobAt, FILES, type Manifest, pathOfBlob } from './backup-folder.ts';
import { blobToFile } from './copy-blob.ts';
import { bytesText, type Progress } from '../terminal/progress.ts';

/** The files of a backup. */
export interface CopiedFiles {
  readonly files: Manifest['files'];
  /** SHA-256 (hex) by path in the backup. */
  readonly sums: ReadonlyMap<string, string>;
}

/**
 * Copies the blobs that `recorded` lists, and their thumbnails, into the backup `to`. A file that differs from its
 * record is read a second time; if it still differs, it is copied as it is and listed as damaged.
 *
 * @throws the reason of `signal` soon after it is aborted
 */
export async function copyFiles(
  blobs: Blobs,
  to: string,
  recorded: RecordedFiles,
  progress: Pick<Progress, 'update'>,
  signal: AbortSignal,
): Promise<CopiedFiles> {
  const sums = new Map<string, string>();
  const damaged: string[] = [];
  const found = new Set<string>();
  let bytes = 0;
  for await (const [environmentId, name] of namesOf(blobs)) {
    if (!recorded.has(environmentId, name)) continue;
    const path = pathOfBlob(environmentId, name);
    const target = join(to, path);
    const expected = recorded.hashOf(environmentId, name);
    let copied = await blobToFile(blobs, environmentId, name, target, signal);
    if (copied !== null && expected !== undefined && copied.sha256 !== expected) {
      await rm(target);
      copied = await blobToFile(blobs, environmentId, name, target, signal);
    }
    if (copied === null) continue;
    if (expected !== undefined && copied.sha256 !== expected) damaged.push(path.slice(FILES.length + 1));
    found.add(`${environmentId}/${name}`);
    sums.set(path, copied.sha256);
    bytes += copied.bytes;
    progress.update(() => `copying files: ${sums.size}, ${bytesText(bytes)}`);
  }
  const missing = [...recorded.all()].map((names) => names.join('/')).filter((name) => !found.has(name));
  return { files: { count: sums.size, bytes, missing, damaged }, sums };
}

/** All blobs, in order. */
async function* namesOf(blobs: Blobs): AsyncIterable<[environmentId: string, name: string]> {
  for (const environmentId of (await blobs.environments()).sort()) {
    const names: string[] = [];
    for await (const name of blobs.list(environmentId)) names.push(name);
    for (const name of names.sort()) yield [environmentId, name];
  }
}

/**
 * The recorded files that a backup lacks or has only damaged, as `environment/file`.
 *
 * @param sums as in `CopiedFiles`
 */
export function lostFiles(recorded: RecordedFiles, sums: ReadonlyMap<string, string>): string[] {
  const hashes = new Map([...sums].map(([path, sha256]) => [blobAt(path)?.join('/'), sha256]));
  return [...recorded.all()]
    .filter(
      ([environmentId, fileId]) => hashes.get(`${environmentId}/${fileId}`) !== recorded.hashOf(environmentId, fileId),
    )
    .map((names) => names.join('/'));
}
