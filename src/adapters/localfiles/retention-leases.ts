import { randomBytes } from 'node:crypto';
import { readdir, readFile, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../lib/clock.ts';
import { ensureFolder, writeDurably } from '../../lib/files/durable-files.ts';
import { livenessOf, currentProcess, parseProcessIdentity } from '../../lib/process/process-identity.ts';
import { RETENTION_TERM_MS, type RetentionLease, RetentionLostError } from '../../ports/blobs.ts';
import { isMissing } from './local-staged-blob.ts';

/**
 * Creates a retention lease: a file in `folder` (created if it is missing) that identifies this process. Each renewal
 * sets the time of the file to a later one.
 */
export async function createRetentionLease(folder: string): Promise<RetentionLease> {
  await ensureFolder(folder);
  const file = join(folder, randomBytes(12).toString('hex'));
  await writeDurably(file, JSON.stringify(currentProcess()));
  let { mtimeMs: touchedAt } = await stat(file);
  return {
    async renew() {
      touchedAt = Math.max(Date.now(), Math.ceil(touchedAt) + 1);
      const time = new Date(touchedAt);
      // If the file is gone, a process has removed it as expired: the blobs may be gone too, so it is not created again.
      await utimes(file, time, time).catch((error: unknown) => {
        throw isMissing(error) ? new RetentionLostError() : error;
      });
    },
    async release() {
      await rm(file, { force: true });
    },
  };
}

/** When this process first saw a lease with the time of its last renewal. */
interface Observation {
  readonly touchedAt: number;
  /** By the monotonic clock. */
  readonly since: number;
}

/**
 * The retention leases in a folder, as this process sees them. A lease has expired when this process has not seen it
 * renewed for a term of the monotonic clock. Its age would not do: it jumps when the wall clock is set. One whose
 * process has certainly ended is not waited for.
 */
export class RetentionLeases {
  readonly #folder: string;
  readonly #clock: Pick<Clock, 'monotonic'>;
  #seen: ReadonlyMap<string, Observation> = new Map();

  constructor(folder: string, clock: Pick<Clock, 'monotonic'>) {
    this.#folder = folder;
    this.#clock = clock;
  }

  /** Whether there is a lease. Removes expired ones and those of ended processes. */
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
    const now = this.#clock.monotonic();
    const last = this.#seen.get(name);
    const observed = last?.touchedAt === found.mtimeMs ? last : { touchedAt: found.mtimeMs, since: now };
    if (now - observed.since > RETENTION_TERM_MS) return null;
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
