import { readdirSync, statSync } from 'node:fs';

/**
 * Whether a process has a file open, as /proc/<pid>/fd shows. False if the file does not exist, and if the system has
 * no /proc or does not let this process see that.
 */
export function hasFileOpen(pid: number, path: string): boolean {
  const file = statSync(path, { bigint: true, throwIfNoEntry: false });
  if (file === undefined) return false;
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).some((descriptor) => {
      // A descriptor may be closed meanwhile.
      const open = statSync(`${folder}/${descriptor}`, { bigint: true, throwIfNoEntry: false });
      return open?.ino === file.ino && open.dev === file.dev;
    });
  } catch {
    return false;
  }
}

/**
 * Kills (SIGKILL) a process if `hasFileOpen` shows that it has the file open: its id may be one of another container.
 * Returns whether the signal was sent; not if the process has ended meanwhile.
 */
export function killIfFileOpen(pid: number, path: string): boolean {
  if (!hasFileOpen(pid, path)) return false;
  try {
    return process.kill(pid, 'SIGKILL');
  } catch {
    return false;
  }
}
