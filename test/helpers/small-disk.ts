import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';

/** A disk of a few megabytes, gone with the test. */
export interface SmallDisk {
  readonly path: string;
  /** Takes `bytes` of it away, or all there is. */
  fill(bytes?: number): void;
  /** Gives them back. */
  empty(): void;
}

/** Why there can be no small disk here; false when there can. */
export const noSmallDisk: string | false = (() => {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return 'only root on Linux can mount a small disk (tmpfs)';
  const path = mkdtempSync(join(tmpdir(), 'collab-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', path], { stdio: 'ignore' });
    execFileSync('umount', [path]);
    return false;
  } catch {
    return 'no tmpfs can be mounted here';
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
})();

/** Mounts a disk of `megabytes`. */
export function smallDisk(t: Test, megabytes: number): SmallDisk {
  const path = mkdtempSync(join(tmpdir(), 'collab-disk-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0700`, 'tmpfs', path]);
  t.teardown(() => {
    execFileSync('umount', ['--lazy', path]);
    rmSync(path, { recursive: true, force: true });
  });
  const ballast = join(path, 'ballast');
  return { path, fill: (bytes = Infinity) => write(ballast, bytes), empty: () => rmSync(ballast, { force: true }) };
}

/** Writes so many bytes, or as many as there is room for, to the last one. */
function write(path: string, bytes: number): void {
  const file = openSync(path, 'a');
  try {
    for (let size = 64 * 1024, written = 0; size >= 1 && written < bytes;) {
      try {
        written += writeSync(file, Buffer.alloc(Math.min(size, bytes - written)));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
        size = Math.floor(size / 2);
      }
    }
  } finally {
    closeSync(file);
  }
}
