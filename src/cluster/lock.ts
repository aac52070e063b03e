import { createHash, randomBytes } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { livenessOf, currentProcess, type ProcessIdentity, parseProcessIdentity } from '../lib/process-identity.ts';
import { StartError } from './exit.ts';

const BEAT_MS = 2_000;
const SILENT_MS = 10_000;
/** A holder that runs touches its file at least once in this time. */
const WATCH_MS = BEAT_MS + 1_000;
const LOOK_AGAIN_MS = 25;
/** Longer than a silent holder takes to count as ended. */
const PATIENCE_MS = SILENT_MS + 5_000;

/** The data folder is ours until `release`. */
export interface DataLock {
  /** An earlier holder ended without releasing: processes of its own may take another moment to end. */
  readonly tookOver: boolean;
  /** Gives the folder free. Synchronous, so that it can run as the process exits; harmless when called again. */
  release(): void;
}

/** Who a lock file names, and whether that process runs; `unsure` where it can't be seen from here. */
interface Holder {
  readonly identity: ProcessIdentity | null;
  /** Names this very content of the lock file. */
  readonly fingerprint: string;
  readonly state: 'alive' | 'dead' | 'unsure';
}

/**
 * Takes the lock file `collab.lock` of a data folder, which must exist. A lock whose process has ended (no such pid, or
 * one that started at another time) is taken over; of several starts that race for it one wins. Where the holder runs
 * out of sight, in another container or on another machine, its file tells: a holder touches it every 2 s. It counts as
 * ended when the file is older than 10 s and was not touched while this start watched it for 3 s, or, where the clock
 * makes the age meaningless, for 10 s. The age alone is not enough: it jumps when the clock is set.
 *
 * @throws {StartError} that names the holder, when it runs
 */
export async function lockDataFolder(folder: string): Promise<DataLock> {
  const path = join(folder, 'collab.lock');
  const taken = await acquire(path);
  if (taken === null) throw new StartError(refusal(folder, read(path)?.identity ?? null));
  const beat = setInterval(() => touch(path), BEAT_MS);
  beat.unref();
  return {
    tookOver: taken.tookOver,
    release() {
      clearInterval(beat);
      if (readIfThere(path) === taken.content) rmSync(path, { force: true });
    },
  };
}

/** Who holds the lock of a data folder now, or null when nobody does. */
export function lockHolder(folder: string): ProcessIdentity | null {
  const path = join(folder, 'collab.lock');
  const holder = read(path);
  return holder === null || holder.state === 'dead' || (holder.state === 'unsure' && isOld(path)) ? null : holder.identity;
}

interface Taken {
  readonly content: string;
  readonly tookOver: boolean;
}

/**
 * Creates the lock file at `path` with our identity as its content, all at once (a link to a finished file). To replace
 * a dead holder's file takes a second lock, which is named after that very file: so nobody can replace it twice, nor
 * take away the lock of one who was faster. That lock too may be left behind by a crash; it is taken in the same way.
 * Null when the holder runs.
 */
async function acquire(path: string): Promise<Taken | null> {
  const content = JSON.stringify({ ...currentProcess(), nonce: randomBytes(8).toString('hex') });
  const draft = `${path}.${randomBytes(8).toString('hex')}`;
  const giveUp = performance.now() + PATIENCE_MS;
  const watch = new SilenceWatch(path);
  for (;;) {
    if (place(draft, content, () => linkSync(draft, path))) return { content, tookOver: false };
    const holder = read(path);
    if (holder === null) continue;
    if (holder.state === 'alive' || performance.now() > giveUp) return null;
    const hasEnded = holder.state === 'dead' || watch.sawSilence();
    if (hasEnded && (await replace(path, holder, draft, content))) return { content, tookOver: true };
    await delay(LOOK_AGAIN_MS);
  }
}

async function replace(path: string, dead: Holder, draft: string, content: string): Promise<boolean> {
  const guard = `${path}.${dead.fingerprint}`;
  if ((await acquire(guard)) === null) return false;
  try {
    if (read(path)?.fingerprint !== dead.fingerprint) return false;
    return place(draft, content, () => renameSync(draft, path));
  } finally {
    rmSync(guard, { force: true });
  }
}

/** Writes the draft and puts it in place; false when something is there already. */
function place(draft: string, content: string, put: () => void): boolean {
  writeFileSync(draft, content, { mode: 0o600 });
  try {
    put();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

function read(path: string): Holder | null {
  const content = readIfThere(path);
  if (content === null) return null;
  const identity = parseProcessIdentity(content);
  const fingerprint = createHash('sha256').update(content).digest('hex').slice(0, 16);
  // A lock is never seen half written: what can't be read was lost in a power cut.
  return { identity, fingerprint, state: identity === null ? 'dead' : livenessOf(identity) };
}

const touchedAt = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

const isOld = (path: string): boolean => Date.now() - touchedAt(path) > SILENT_MS;

/** Watches whether the holder of a lock file touches it. */
class SilenceWatch {
  readonly #path: string;
  #touchedAt: number;
  #since = performance.now();

  constructor(path: string) {
    this.#path = path;
    this.#touchedAt = touchedAt(path);
  }

  /** Whether the file has not been touched for so long that its holder has ended. To be called again and again. */
  sawSilence(): boolean {
    const touched = touchedAt(this.#path);
    if (touched !== this.#touchedAt) {
      this.#touchedAt = touched;
      this.#since = performance.now();
    }
    return performance.now() - this.#since > (isOld(this.#path) ? WATCH_MS : SILENT_MS);
  }
}

function readIfThere(path: string): string | null {
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
    // The folder may be gone or full; the lock is then the least of the trouble, and the store reports it.
  }
}

function refusal(folder: string, holder: ProcessIdentity | null): string {
  const who = holder === null ? 'another process' : `process ${holder.pid} on ${holder.host}`;
  return `The data folder ${folder} is in use by ${who}. Stop that server first, or start this one with another --dir.`;
}
