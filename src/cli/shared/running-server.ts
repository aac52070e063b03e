import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { lockHolder } from '../../cluster/data-folder-lock.ts';
import { reserveSpace, withReserve } from '../../cluster/disk-reserve.ts';
import { writeNamedSync } from '../../lib/files/named-writes.ts';
import { messageOf } from '../../lib/thrown.ts';

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

/** How often server.json is tried again on a disk that refuses it, in milliseconds. */
const RETRY_MS = 5_000;

/**
 * Writes server.json, and reserves space for the next start. The caller has locked the data folder. If the disk refuses
 * the file, says so on standard error, because the server serves all the same, and tries again until it is written.
 */
export async function publishServer(dataDir: string, running: RunningServer): Promise<void> {
  const write = (): void => writeNamedSync(join(dataDir, FILE), `${JSON.stringify(running)}\n`, { mode: 0o600 });
  try {
    await withReserve(dataDir, write);
    reserveSpace(dataDir);
  } catch (error) {
    process.stderr.write(
      `collab: ${messageOf(error)}. The server runs, but other commands do not find its address until the disk has ` +
        'space.\n',
    );
    const retry = setInterval(() => {
      try {
        write();
        clearInterval(retry);
        reserveSpace(dataDir);
      } catch {
        // The disk still refuses.
      }
    }, RETRY_MS);
    retry.unref();
  }
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
