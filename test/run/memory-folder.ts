import { chmodSync, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { freemem } from 'node:os';
import { join } from 'node:path';

/** Where Linux has a file system in memory. */
const SHARED_MEMORY = '/dev/shm';
const PREFIX = 'collab-tests-';
/** The type of tmpfs in `statfs`, as linux/magic.h has it. */
const TMPFS = 0x01021994;
/** Files of all tests at the same time take a tenth of it. */
const NEEDED_BYTES = 4 * 2 ** 30;

/**
 * Makes a folder in memory for temporary files of tests, and removes those of runs that were killed. A file that is
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

function removeAbandoned(): void {
  for (const name of readdirSync(SHARED_MEMORY)) {
    if (!name.startsWith(PREFIX) || isRunning(Number.parseInt(name.slice(PREFIX.length), 10))) continue;
    rmSync(join(SHARED_MEMORY, name), { recursive: true, force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
