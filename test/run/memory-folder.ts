import { chmodSync, mkdtempSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs';
import { freemem } from 'node:os';
import { join } from 'node:path';
import { processExists } from '../../src/lib/process/process-identity.ts';

/** Where Linux has a file system in memory. */
const SHARED_MEMORY = '/dev/shm';
const PREFIX = 'collab-tests-';
/** The type of tmpfs in `statfs`, as linux/magic.h has it. */
const TMPFS = 0x01021994;
/** After this time without a new file the folder of a process that does not run is abandoned, in milliseconds. */
const ABANDONED_MS = 3_600_000;
/** Files of all tests at the same time take a tenth of it. */
const NEEDED_BYTES = 4 * 2 ** 30;

/**
 * Makes a folder in memory for temporary files of tests, and removes those of runs that were killed an hour ago. A file that is
 * created and removed takes a tenth of the processor time there.
 *
 * @returns its path; undefined where there is no such file system or less than 4 GiB free in it or in memory
 */
export function makeMemoryFolder(): string | undefined {
  try {
    const { type, bavail, bsize } = statfsSync(SHARED_MEMORY);
    if (type !== TMPFS || bavail * bsize < NEEDED_BYTES || freemem() < NEEDED_BYTES) return undefined;
    removeAbandoned();
    const folder = mkdtempSync(join(SHARED_MEMORY, `${PREFIX}${process.pid}-`));
    // As other folders of temporary files: some tests run as another user.
    chmodSync(folder, 0o1777);
    return folder;
  } catch {
    return undefined;
  }
}

/** Removes such a folder, as far as nothing is written to it; the rest is left to another run. */
export function removeMemoryFolder(path: string | undefined): void {
  try {
    if (path !== undefined) rmSync(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  } catch {
    // Of another user, or a process that was killed has not ended yet.
  }
}

function removeAbandoned(): void {
  for (const name of readdirSync(SHARED_MEMORY)) {
    if (!name.startsWith(PREFIX) || processExists(Number.parseInt(name.slice(PREFIX.length), 10))) continue;
    const path = join(SHARED_MEMORY, name);
    // A run in a container that shares this memory has processes that are not to be seen.
    if (Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Infinity) > ABANDONED_MS)
      removeMemoryFolder(path);
  }
}
