import { writeFileSync, type WriteFileOptions } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { nameFile, naming } from '../errno.ts';

/** `writeFile` of Node.js, whose errors name the file whichever call has failed: theirs of a write do not. */
export function writeNamed(path: string, text: string, options: WriteOptions = {}): Promise<void> {
  return naming(path, writeFile(path, text, options));
}

/** As `writeNamed`, synchronously. */
export function writeNamedSync(path: string, text: string, options: WriteOptions = {}): void {
  try {
    writeFileSync(path, text, options);
  } catch (error) {
    throw nameFile(error, path);
  }
}

type WriteOptions = Extract<WriteFileOptions, object>;
