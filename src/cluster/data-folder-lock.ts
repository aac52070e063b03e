import { createHash, randomBytes } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { writeNamedSync } from '../lib/files/named-writes.ts';
import {
  livenessOf,
  currentProcess,
  type ProcessIdentity,
  parseProcessIdentity,
} from '../lib/process/process-identity.ts';
import { StartError } from './exit.ts';

const TOUCH_MS = 2_000;
const SILENT_MS = 10_000;
/** A running holder touches its lock file at least once in this time. */
const WATCH_MS = TOUCH_MS + 1_000;
const RETRY_MS = 25;
/** Longer than it takes to conclude that a silent holder has ended. */
const TIMEOUT_MS = SILENT_MS + 5_000;

/** The lock on a data folder. This process has it until `release`. */
export interface DataLock {
  /** The previous holder ended without releasing the lock; its worker processes may need another moment to end. */
  readonly tookOver: boolean;
  /** Removes the lock. Synchronous, so that it can run while the process exits. May be called more than once. */
  release(): void;
}

/** The process named in a lock file, and whether it is running; `unsure` if that cannot be seen from here. */
interface LockHolder {
  readonly identity: ProcessIdentity | null;
  /** Identifies this exact content of the lock file. */
  readonly contentHash: string;
  readonly state: 'alive' | 'dead' | 'unsure';
}

/**
 * Acquires the lock file `collab.lock` of a data folder, which must exist. If its holder has ended (no such pid, or the
 * pid belongs to a process that started at another time), the lock is taken over; of several processes that try, one
 * succeeds. A holder in another container or on another machine cannot be checked directly. It touches the file every 2
 * s, and counts as ended when the file is older than 10 s and was not touched while this process watched it for 3 s;
 * or, if the age is not over 10 s because the clocks differ, for 10 s. The age alone is not enough because it jumps
 * when a clock is set.
 *
 * @throws {StartError} naming the holder, if it is running
 */
export async function lockDataFolder(folder: string): Promise<DataLock> {
  const path = join(folder, 'collab.lock');
  const acquired = await acquire(path);
  if (acquired === null) throw new StartError(lockedMessage(folder, read(path)?.identity ?? null));
  const touching = setInterval(() => touch(path), TOUCH_MS);
  touching.unref();
  return {
    tookOver: acquired.tookOver,
    release() {
      clearInterval(touching);
      if (readIfExists(path) === acquired.content) rmSync(path, { force: true });
    },
  };
}

/** The process that has the lock of a data folder now, or null if none has. */
export function lockHolder(folder: string): ProcessIdentity | null {
  const path = join(folder, 'collab.lock');
  const holder = read(path);
  return holder === null || holder.state === 'dead' || (holder.state === 'unsure' && isOld(path))
    ? null
    : holder.identity;
}

interface Acquired {
  readonly content: string;
  readonly tookOver: boolean;
}

/**
 * Creates the lock file at `path` with the identity of this process, atomically (a link to a finished file). Replacing
 * the file of a holder that has ended needs a second lock, named after that very file: so it cannot be replaced twice,
 * and the lock of a faster process cannot be removed. A crash may leave that second lock behind too; it is taken over
 * in the same way. Returns null if the holder is running.
 */
async function acquire(path: string): Promise<Acquired | null> {
  const content = JSON.stringify({ ...currentProcess(), nonce: randomBytes(8).toString('hex') });
  const temporary = `${path}.${randomBytes(8).toString('hex')}`;
  const giveUpAt = performance.now() + TIMEOUT_MS;
  const watch = new HolderWatch(path);
  for (;;) {
    if (publishFile(temporary, content, () => linkSync(temporary, path))) return { content, tookOver: false };
    const holder = read(path);
    if (holder === null) continue;
    if (holder.state === 'alive' || performance.now() > giveUpAt) return null;
    const hasEnded = holder.state === 'dead' || watch.holderIsGone();
    if (hasEnded && (await republishFile(path, holder, temporary, content))) return { content, tookOver: true };
    await delay(RETRY_MS);
  }
}

async function republishFile(path: string, dead: LockHolder, temporary: string, content: string): Promise<boolean> {
  const guard = `${path}.${dead.contentHash}`;
  if ((await acquire(guard)) === null) return false;
  try {
    if (read(path)?.contentHash !== dead.contentHash) return false;
    return publishFile(temporary, content, () => renameSync(temporary, path));
  } finally {
    rmSync(guard, { force: true });
  }
}

/** Writes a temporary file and publishes it; false if the target exists already. */
function publishFile(temporary: string, content: string, publish: () => void): boolean {
  try {
    writeNamedSync(temporary, content, { mode: 0o600 });
    publish();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
}

function read(path: string): LockHolder | null {
  const content = readIfExists(path);
  if (content === null) return null;
  const identity = parseProcessIdentity(content);
  const contentHash = createHash('sha256').update(content).digest('hex').slice(0, 16);
  // Lock files are published complete, so an unreadable one was damaged by a power cut.
  return { identity, contentHash, state: identity === null ? 'dead' : livenessOf(identity) };
}

const touchedAt = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

const isOld = (path: string): boolean => Date.now() - touchedAt(path) > SILENT_MS;

/** Watches whether the holder of a lock file touches it. */
class HolderWatch {
  readonly #path: string;
  #touchedAt: number;
  #since = performance.now();

  constructor(path: string) {
    this.#path = path;
    this.#touchedAt = touchedAt(path);
  }

  /** Whether the file has been untouched for so long that its holder must have ended. Call it repeatedly. */
  holderIsGone(): boolean {
    const touched = touchedAt(this.#path);
    if (touched !== this.#touchedAt) {
      this.#touchedAt = touched;
      this.#since = performance.now();
    }
    return performance.now() - this.#since > (isOld(this.#path) ? WATCH_MS : SILENT_MS);
  }
}

function readIfExists(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

function touch(path: string): void {
  try {
    utimesSync(path, new Date(), new Date());
  } catch {
    // The folder may be gone or full. The store reports that; it matters more than the lock.
  }
}

function lockedMessage(folder: string, holder: ProcessIdentity | null): string {
  const held = holder === null ? 'another process' : `process ${holder.pid} on ${holder.host}`;
  return `The data folder ${folder} is in use by ${held}. Stop that server first, or start this one with another --dir.`;
}
