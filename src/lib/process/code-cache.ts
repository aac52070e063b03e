import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { Script } from 'node:vm';

const DIGEST = 'sha256';
const DIGEST_BYTES = 32;

/**
 * Runs a CommonJS module with V8's code cache: without it V8 compiles the file again in every process that runs it. If
 * there is no cache that fits the file and this version of V8 with its flags, one is written when the process exits as
 * it should, and so has compiled all that a start needs. Writing it earlier would cost memory: making it takes several
 * MB, which the C heap keeps. Never fails because of the cache: what is damaged is not used, and what cannot be written
 * is left out.
 *
 * @param file path of the module: ASCII text, already in its wrapper `(function (exports, require, module, __filename,
 *   __dirname) {…})`, so that the text need not be copied. `import()` fails in it (import-module.ts), and
 *   `require.main` is another module
 * @param cache path of the cache, in a folder that no other user can write to, since its content is run; undefined for
 *   none. The folder is created, those above it must exist
 * @param exitCode the exit code of a process that has run as it should
 */
export function runWithCodeCache(file: string, cache: string | undefined, exitCode: number): void {
  const content = readFileSync(file);
  const digest = digestOf(content);
  const cachedData = cache === undefined ? undefined : readCache(cache, digest);
  // Decoded as UTF-8 it would take 6 to 9 MB more per process on a first start: V8 would copy it, and glibc, once a
  // block of this size is freed, keeps most of what the compiler frees.
  const script = new Script(content.toString('latin1'), { filename: file, cachedData });
  if (cache !== undefined && (cachedData === undefined || script.cachedDataRejected === true)) {
    process.on('exit', (code) => {
      if (code === exitCode) writeCache(cache, digest, script.createCachedData());
    });
  }
  const module = { exports: {} };
  (script.runInThisContext() as Run)(module.exports, createRequire(file), module, file, dirname(file));
}

/** A compiled CommonJS module. */
type Run = (exports: object, require: NodeJS.Require, module: object, filename: string, dirname: string) => void;

const digestOf = (...contents: readonly Buffer[]): Buffer =>
  contents.reduce((hash, content) => hash.update(content), createHash(DIGEST)).digest();

/**
 * The code in a cache; undefined if there is none, it is damaged, or it belongs to another source than that with this
 * digest. V8 compares only the length of the source, and does not notice damage.
 */
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
