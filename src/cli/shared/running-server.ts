import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { lockOwner } from '../../cluster/data-folder-lock.ts';

/** How a running server can be reached, as it has written down for the other commands. */
export interface Running {
  readonly pid: number;
  readonly address: string;
  readonly workers: number;
  /** ISO 8601. */
  readonly startedAt: string;
}

const FILE = 'server.json';

/** Writes down how the server of a data folder is reached; called by the holder of its lock. */
export function writeRunning(dataDir: string, running: Running): void {
  writeFileSync(join(dataDir, FILE), `${JSON.stringify(running)}\n`, { mode: 0o600 });
}

/** Removes what this process wrote. A server that has taken over the folder meanwhile keeps its own. */
export function clearRunning(dataDir: string): void {
  if (readRunning(dataDir)?.pid === process.pid) rmSync(join(dataDir, FILE), { force: true });
}

/** The server that runs on a data folder: its pid, and how it is reached once it is ready. Null when none runs. */
export function findRunning(dataDir: string): { readonly pid: number; readonly reached: Running | null } | null {
  const holder = lockOwner(dataDir);
  if (holder === null) return null;
  const written = readRunning(dataDir);
  return { pid: holder.pid, reached: written?.pid === holder.pid ? written : null };
}

/** What a server that was killed has left behind may be there still: the lock decides. */
function readRunning(dataDir: string): Running | null {
  try {
    return JSON.parse(readFileSync(join(dataDir, FILE), 'utf8')) as Running;
  } catch {
    return null;
  }
}
