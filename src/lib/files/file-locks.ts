import { readFileSync, statSync } from 'node:fs';

/**
 * The ids of other processes that have a POSIX lock on a file, as /proc/locks shows: without those of other containers.
 * None if the file does not exist or the system has no /proc.
 */
export function otherLockHolders(path: string): number[] {
  const inode = statSync(path, { bigint: true, throwIfNoEntry: false })?.ino;
  // "1: POSIX  ADVISORY  READ 4711 fe:00:2271280 0 EOF": process, and device and inode. The device is not compared,
  // because some file systems show another one here.
  const fields = readLocks().map((line) => line.trim().split(/\s+/));
  const holders = fields
    .filter(([, , , , , file]) => file?.split(':')[2] === String(inode))
    .map(([, , , , pid]) => Number(pid));
  return [...new Set(holders)].filter((pid) => pid !== process.pid);
}

function readLocks(): string[] {
  try {
    return readFileSync('/proc/locks', 'utf8').split('\n');
  } catch {
    return [];
  }
}
