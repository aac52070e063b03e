import { execFileSync } from 'node:child_process';
import { cpus } from 'node:os';

/** The core for all processes of the measured server. */
export const serverCore = 0;
/** The core for wrk, the sink and this harness. */
export const loadCore = 1;

/** Keeps this process, and what it starts from now on, on the core of the load. */
export function stayOnLoadCore(): void {
  moveTo(String(loadCore));
}

/** Runs `start` while this process may use every core, so that what it starts may use them too. */
export async function startOnEveryCore<T>(start: () => Promise<T>): Promise<T> {
  moveTo(`0-${cpus().length - 1}`);
  try {
    return await start();
  } finally {
    stayOnLoadCore();
  }
}

/** Moves every thread of this process to the cores of a list such as `0-3`. */
function moveTo(cores: string): void {
  execFileSync('taskset', ['-a', '-p', '-c', cores, String(process.pid)], { stdio: 'ignore' });
}
