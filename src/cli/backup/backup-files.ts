import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { RecordedFiles } from '../../domain/files/recorded-files.ts';
import { FILES, type Manifest } from './backup-folder.ts';
import { copyFile, filesBelow } from './copy-file.ts';
import { bytesText, type Progress } from '../terminal/progress.ts';

/** The files of a backup. */
export interface CopiedFiles {
  readonly files: Manifest['files'];
  /** SHA-256 (hex) by path in the backup. */
  readonly sums: ReadonlyMap<string, string>;
}

/**
 * Copies the files that `recorded` lists, and their thumbnails, from the folder `from` into the backup `to`. A file that
 * differs from its record is read a second time; if it still differs, it is copied as it is and listed as damaged.
 */
export async function copyFiles(from: string, to: string, recorded: RecordedFiles, progress: Progress): Promise<CopiedFiles> {
  const sums = new Map<string, string>();
  const damaged: string[] = [];
  const found = new Set<string>();
  let bytes = 0;
  for (const path of await filesBelow(from)) {
    const [environmentId, fileId] = blobAt(path);
    if (!recorded.has(environmentId, fileId)) continue;
    const target = join(to, FILES, path);
    const expected = recorded.hashOf(environmentId, fileId);
    let copied = await copyFile(join(from, path), target);
    if (copied !== null && expected !== undefined && copied.sha256 !== expected) {
      await rm(target);
      copied = await copyFile(join(from, path), target);
    }
    if (copied === null) continue;
    if (expected !== undefined && copied.sha256 !== expected) damaged.push(path);
    found.add(`${environmentId}/${fileId}`);
    sums.set(`${FILES}/${path}`, copied.sha256);
    bytes += copied.bytes;
    progress.update(() => `copying files: ${sums.size}, ${bytesText(bytes)}`);
  }
  const missing = [...recorded.all()].map((names) => names.join('/')).filter((name) => !found.has(name));
  return { files: { count: sums.size, bytes, missing, damaged }, sums };
}

/**
 * The recorded files that a backup lacks or has only damaged, as `environment/file`.
 *
 * @param sums as in `CopiedFiles`
 */
export function lostFiles(recorded: RecordedFiles, sums: ReadonlyMap<string, string>): string[] {
  const hashes = new Map([...sums].filter(([path]) => path.startsWith(`${FILES}/`)).map(([path, sha256]) => [blobAt(path.slice(FILES.length + 1)).join('/'), sha256]));
  return [...recorded.all()].filter(([environmentId, fileId]) => hashes.get(`${environmentId}/${fileId}`) !== recorded.hashOf(environmentId, fileId)).map((names) => names.join('/'));
}

/** The environment and name of the blob at a path below the folder of files. */
function blobAt(path: string): [environmentId: string, name: string] {
  const parts = path.split('/');
  return [parts[0] ?? '', parts.at(-1) ?? ''];
}
