import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../lib/clock.ts';
import { RETENTION_TERM_MS, type RetentionLease, RetentionLostError } from '../../ports/blobs.ts';
import type { S3Client } from './client/client.ts';
import { ConnectionFailure } from './client/failures.ts';
import { hashed } from './multipart.ts';
import { deleteObject, listObjects, putObject, readRange } from './objects.ts';
import { asBlobError } from './refusals.ts';

/** What the keys of leases begin with. */
const LEASES = 'leases/';
const STAMP_BYTES = 24;
/** How long a new lease may take to appear in the list of a store whose lists lag. */
const LISTED_WITHIN_MS = 60_000;

/** When this process first saw a lease with its last stamp. */
interface Observation {
  readonly stamp: string;
  /** By the monotonic clock. */
  readonly since: number;
}

/**
 * Retention leases as objects, each with a random stamp that a renewal replaces. No times of two machines are compared:
 * a lease has ended for a process that has seen one stamp for longer than a term, and its holder takes it for lost if
 * a renewal has not taken effect within a term of the beginning of the one before, which is earlier.
 */
export class S3RetentionLeases {
  readonly #client: S3Client;
  readonly #clock: Pick<Clock, 'monotonic'>;
  #seen: ReadonlyMap<string, Observation> = new Map();

  constructor(client: S3Client, clock: Pick<Clock, 'monotonic'>) {
    this.#client = client;
    this.#clock = clock;
  }

  /** Creates a lease, and waits until lists have it. */
  async create(): Promise<RetentionLease> {
    const key = LEASES + randomBytes(12).toString('hex');
    const put = (): Promise<void> => putObject(this.#client, key, hashed(Buffer.from(newStamp())));
    let renewedAt = this.#clock.monotonic();
    await asBlobError(put());
    await asBlobError(this.#untilListed(key));
    let isOver = false;
    return {
      renew: async () => {
        const now = this.#clock.monotonic();
        if (!isOver && (await asBlobError(this.#stampOf(key))) !== null) {
          await asBlobError(put());
          // The clock is read again: others may have given the lease up while the store was slow.
          if (this.#clock.monotonic() - renewedAt <= RETENTION_TERM_MS) {
            renewedAt = now;
            return;
          }
          await asBlobError(deleteObject(this.#client, key));
        }
        isOver = true;
        throw new RetentionLostError();
      },
      release: async () => {
        isOver = true;
        await asBlobError(deleteObject(this.#client, key));
      },
    };
  }

  /** Whether there is a lease. Removes those that have ended. */
  async hasActive(): Promise<boolean> {
    const seen = new Map<string, Observation>();
    for await (const { keys } of listObjects(this.#client, LEASES)) {
      for (const key of keys) {
        // Lists may lag, so the object itself says whether there is one and how it was renewed.
        const stamp = await this.#stampOf(key);
        if (stamp === null) continue;
        const last = this.#seen.get(key);
        const now = this.#clock.monotonic();
        const observed = last?.stamp === stamp ? last : { stamp, since: now };
        if (now - observed.since > RETENTION_TERM_MS) await deleteObject(this.#client, key);
        else seen.set(key, observed);
      }
    }
    this.#seen = seen;
    return seen.size > 0;
  }

  async #stampOf(key: string): Promise<string | null> {
    const found = await readRange(this.#client, key, 0, STAMP_BYTES);
    return found === undefined ? null : found.bytes.toString();
  }

  async #untilListed(key: string): Promise<void> {
    const start = performance.now();
    for (let pause = 50; ; pause = Math.min(2 * pause, 5_000)) {
      for await (const { keys } of listObjects(this.#client, key)) if (keys.includes(key)) return;
      if (performance.now() - start > LISTED_WITHIN_MS)
        throw new ConnectionFailure('the store does not list an object that was written a minute ago');
      await sleep(pause);
    }
  }
}

function newStamp(): string {
  return randomBytes(STAMP_BYTES / 2).toString('hex');
}
