import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { Script } from 'node:vm';

/** When the cache is written, so that it has what a start compiles. */
const WRITE_AFTER_MS = 5_000;
const DIGEST = 'sha256';
const DIGEST_BYTES = 32;

/**
 * Runs a CommonJS file with V8's code cache: without it V8 compiles the file again in every process that runs it. If there is
 * no cache that fits the file and this version of V8 with its flags, one is written after 5 seconds, or when the process exits
 * earlier. Never fails because of the cache: what is damaged is not used, and what cannot be written is left out.
 *
 * @param file path of the file; `import()` fails in it (import-module.ts), and `require.main` is another module
 * @param cache path of the cache, in a folder that no other user can write to, since its content is run; undefined for none. The
 *   folder is created, those above it must exist
 */
export function runWithCodeCache(file: string, cache: string | undefined): void {
  const source = readFileSync(file);
  const cachedData = cache === undefined ? undefined : readCache(cache, source);
  // The wrapper of CommonJS modules, on the first line so that line numbers stay.
  const script = new Script(`(function (exports, require, module, __filename, __dirname) {${source.toString()}\n})`, { filename: file, cachedData });
  if (cache !== undefined && (cachedData === undefined || script.cachedDataRejected === true)) {
    const write = (): void => {
      clearTimeout(timer);
      process.off('exit', write);
      writeCache(cache, source, script.createCachedData());
    };
    const timer = setTimeout(write, WRITE_AFTER_MS).unref();
    process.on('exit', write);
  }
  const module = { exports: {} };
  (script.runInThisContext() as Run)(module.exports, createRequire(file), module, file, dirname(file));
}

/** A compiled CommonJS module. */
type Run = (exports: object, require: NodeJS.Require, module: object, filename: string, dirname: string) => void;

/** V8 compares only the length of the source, and does not notice damage. */
const digestOf = (source: Buffer, data: Buffer): Buffer => createHash(DIGEST).update(source).update(data).digest();

/** The code in a cache; undefined if there is none, it is damaged, or it belongs to another source. */
function readCache(cache: string, source: Buffer): Buffer | undefined {
  try {
    const content = readFileSync(cache);
    const data = content.subarray(DIGEST_BYTES);
    return digestOf(source, data).equals(content.subarray(0, DIGEST_BYTES)) ? data : undefined;
  } catch {
    return undefined;
  }
}

function writeCache(cache: string, source: Buffer, data: Buffer): void {
  const unfinished = `${cache}.${process.pid}`;
  try {
    makeFolder(dirname(cache));
    try {
      writeFileSync(unfinished, Buffer.concat([digestOf(source, data), data]), { mode: 0o600 });
      renameSync(unfinished, cache);
    } finally {
      rmSync(unfinished, { force: true });
    }
  } catch {
    // The disk is full or read-only: workers start without a cache.
  }
}

/** Makes a folder, but not those above it: a data folder that was removed stays removed. */
function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
