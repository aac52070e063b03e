import { spawn } from 'node:child_process';

/**
 * Waits until its input ends, which the kernel does for a process that a signal has ended, and prints the text that it
 * was given.
 */
const SCRIPT = 'read -r _; printf "%s\\n" "$1" >&2';

/**
 * Prints a text to standard error if a signal ends this process before it exits by itself, and thus before it can say
 * anything: while LMDB opens or reads a file, an error of the disk does that
 * (docs/decisions/0063-disks-that-refuse.md). A shell, because it needs less than a megabyte; no text on a system
 * without /bin/sh. Returns a function that ends this.
 */
export function announceCrash(text: string): () => void {
  const watcher = spawn('/bin/sh', ['-c', SCRIPT, 'collab-crash-notice', text], {
    stdio: ['pipe', 'ignore', 'inherit'],
    cwd: '/',
    env: {},
  });
  watcher.on('error', () => {});
  watcher.stdin.on('error', () => {});
  watcher.unref();
  (watcher.stdin as { unref?: () => void }).unref?.();
  const end = (): void => {
    process.off('exit', end);
    watcher.kill('SIGKILL');
  };
  process.once('exit', end);
  return end;
}
