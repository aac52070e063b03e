import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { lockHolder } from '../../cluster/data-folder-lock.ts';
import { writeNamedSync } from '../../lib/files/named-writes.ts';

/** The contents of server.json: how other commands reach the running server. */
export interface RunningServer {
  readonly pid: number;
  readonly address: string;
  readonly workers: number;
  /** File of the native HTTP core, or `node`; absent if a version that did not write it has started the server. */
  readonly core?: string;
  /** When it became ready, in ISO 8601. */
  readonly startedAt: string;
}

const FILE = 'server.json';

/** Writes server.json. The caller has locked the data folder. */
export function writeServerFile(dataDir: string, running: RunningServer): void {
  writeNamedSync(join(dataDir, FILE), `${JSON.stringify(running)}\n`, { mode: 0o600 });
}

/** Removes server.json if this process wrote it. A server that has taken over the folder keeps its own. */
export function removeServerFile(dataDir: string): void {
  if (readServerFile(dataDir)?.pid === process.pid) rmSync(join(dataDir, FILE), { force: true });
}

/**
 * Finds the server that is running on a data folder: its pid, and its endpoint once it is ready. Null if none is
 * running.
 */
export function findRunningServer(
  dataDir: string,
): { readonly pid: number; readonly endpoint: RunningServer | null } | null {
  const holder = lockHolder(dataDir);
  if (holder === null) return null;
  const written = readServerFile(dataDir);
  return { pid: holder.pid, endpoint: written?.pid === holder.pid ? written : null };
}

/** Reads server.json. It may be of a killed server: compare its pid with the holder of the lock. */
function readServerFile(dataDir: string): RunningServer | null {
  try {
    return JSON.parse(readFileSync(join(dataDir, FILE), 'utf8')) as RunningServer;
  } catch {
    return null;
  }
}
