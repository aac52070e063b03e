import { randomBytes } from 'node:crypto';
import { readdir, readFile, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { ensureFolder, writeDurably } from '../../lib/files/durable-files.ts';
import { livenessOf, currentProcess, parseProcessIdentity } from '../../lib/process/process-identity.ts';
import type { RetentionLease } from '../../ports/blobs.ts';
import { isMissing } from './local-staged-blob.ts';

const HEARTBEAT_MS = 15_000;
const EXPIRY_MS = 5 * 60_000;

/**
 * Creates a retention lease: a file in `folder` (created if it is missing) that identifies this process and is touched
 * periodically until the lease is released.
 */
export async function createRetentionLease(folder: string): Promise<RetentionLease> {
  await ensureFolder(folder);
  const file = join(folder, randomBytes(12).toString('hex'));
  await writeDurably(file, JSON.stringify(currentProcess()));
  // If the file is gone, another process has removed it as expired: the blobs may be gone too, so it is not created
  // again.
  const heartbeat = setInterval(
    () => void utimes(file, new Date(), new Date()).catch(() => clearInterval(heartbeat)),
    HEARTBEAT_MS,
  );
  heartbeat.unref();
  return {
    async release() {
      clearInterval(heartbeat);
      await rm(file, { force: true });
    },
  };
}

/** When this process first saw a lease with the time of its last touch. */
interface Observation {
  readonly touchedAt: number;
  /** As `performance.now()`. */
  readonly since: number;
}

/**
 * The retention leases in a folder, as this process sees them. A lease has expired when this process has not seen it
 * touched for five minutes of the monotonic clock. Its age would not do: it jumps when the wall clock is set.
 */
export class RetentionLeases {
  readonly #folder: string;
  #seen: ReadonlyMap<string, Observation> = new Map();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Whether there is a lease of a running process. Removes expired leases and those of ended processes. */
  async hasActive(): Promise<boolean> {
    const seen = new Map<string, Observation>();
    for (const name of await namesIn(this.#folder)) {
      const file = join(this.#folder, name);
      const observed = await this.#observe(name, file);
      if (observed === null) await rm(file, { force: true });
      else seen.set(name, observed);
    }
    this.#seen = seen;
    return seen.size > 0;
  }

  /** The state of a lease as observed now; null if it has ended or expired. */
  async #observe(name: string, file: string): Promise<Observation | null> {
    const [text, found] = await Promise.all([readFile(file, 'utf8').catch(() => ''), stat(file).catch(() => null)]);
    if (found === null) return null;
    const now = performance.now();
    const last = this.#seen.get(name);
    const observed = last?.touchedAt === found.mtimeMs ? last : { touchedAt: found.mtimeMs, since: now };
    if (now - observed.since > EXPIRY_MS) return null;
    const holder = parseProcessIdentity(text);
    return holder === null || livenessOf(holder) !== 'dead' ? observed : null;
  }
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}
