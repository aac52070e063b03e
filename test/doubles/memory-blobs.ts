import { CollabError } from '../../src/model/errors.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import {
  type BlobReader,
  type Blobs,
  type BlobStat,
  checkedBlobName,
  RETENTION_TERM_MS,
  type RetentionLease,
  RetentionLostError,
  type StagedBlob,
} from '../../src/ports/blobs.ts';

interface Staged {
  bytes: Buffer;
  writtenAt: number;
}

/** The record of a retention lease. */
interface Lease {
  renewals: number;
}

/** The content that several `MemoryBlobs` share, as processes share a bucket. */
export class MemoryBucket {
  /** While true, writes are refused as on a full disk. */
  full = false;
  readonly blobs = new Map<string, Map<string, Buffer>>();
  readonly staged = new Set<Staged>();
  readonly leases = new Set<Lease>();
  readonly clock: Pick<Clock, 'monotonic'>;

  /** @param clock by which retention leases expire */
  constructor(clock: Pick<Clock, 'monotonic'> = systemClock) {
    this.clock = clock;
  }
}

/** Blobs without any file: proves that no caller needs a path. */
export class MemoryBlobs implements Blobs {
  readonly #bucket: MemoryBucket;
  /** When this process first saw a lease with its last renewal. */
  readonly #seen = new Map<Lease, { readonly renewals: number; readonly since: number }>();

  constructor(bucket = new MemoryBucket()) {
    this.#bucket = bucket;
  }

  async stage(environmentId: string, name: string): Promise<StagedBlob> {
    checkName(environmentId, name);
    const { staged, blobs } = this.#bucket;
    const own: Staged = { bytes: Buffer.alloc(0), writtenAt: performance.now() };
    this.#requireSpace();
    staged.add(own);
    return {
      write: async (chunk) => {
        this.#requireSpace();
        own.bytes = Buffer.concat([own.bytes, chunk]);
        own.writtenAt = performance.now();
      },
      read: async (offset, length) => Buffer.from(own.bytes.subarray(offset, offset + length)),
      flush: async () => this.#requireSpace(),
      commit: async () => {
        this.#requireSpace();
        if (!staged.delete(own)) throw new Error('the staged blob is gone');
        const environment = blobs.get(environmentId) ?? new Map<string, Buffer>();
        blobs.set(environmentId, environment.set(name, own.bytes));
      },
      discard: async () => void staged.delete(own),
    };
  }

  async stat(environmentId: string, name: string): Promise<BlobStat | undefined> {
    const bytes = this.#find(environmentId, name);
    return bytes === undefined ? undefined : { size: bytes.length };
  }

  async open(environmentId: string, name: string): Promise<BlobReader> {
    const bytes = this.#find(environmentId, name);
    if (bytes === undefined) throw new Error(`there is no blob ${environmentId}/${name}`);
    return {
      read: async (offset, length) => Buffer.from(bytes.subarray(offset, offset + length)),
      close: async () => undefined,
    };
  }

  async remove(environmentId: string, name: string): Promise<void> {
    checkName(environmentId, name);
    const environment = this.#bucket.blobs.get(environmentId);
    environment?.delete(name);
    if (environment?.size === 0) this.#bucket.blobs.delete(environmentId);
  }

  async *list(environmentId: string): AsyncIterable<string> {
    checkName(environmentId);
    yield* [...(this.#bucket.blobs.get(environmentId)?.keys() ?? [])];
  }

  async environments(): Promise<string[]> {
    return [...this.#bucket.blobs.keys()];
  }

  async sweepStaged(ageMs: number, dryRun = false): Promise<number> {
    const old = [...this.#bucket.staged].filter(({ writtenAt }) => performance.now() - writtenAt >= ageMs);
    if (!dryRun) for (const staged of old) this.#bucket.staged.delete(staged);
    return old.length;
  }

  async retain(): Promise<RetentionLease> {
    const { leases } = this.#bucket;
    const lease: Lease = { renewals: 0 };
    leases.add(lease);
    return {
      renew: async () => {
        if (!leases.has(lease)) throw new RetentionLostError();
        lease.renewals++;
      },
      release: async () => void leases.delete(lease),
    };
  }

  async isRetained(): Promise<boolean> {
    const { leases, clock } = this.#bucket;
    const now = clock.monotonic();
    for (const lease of leases) {
      const last = this.#seen.get(lease);
      if (last?.renewals !== lease.renewals) this.#seen.set(lease, { renewals: lease.renewals, since: now });
      else if (now - last.since > RETENTION_TERM_MS) leases.delete(lease);
    }
    return leases.size > 0;
  }

  async removeAll(environmentId: string): Promise<void> {
    checkName(environmentId);
    this.#bucket.blobs.delete(environmentId);
  }

  #find(environmentId: string, name: string): Buffer | undefined {
    checkName(environmentId, name);
    return this.#bucket.blobs.get(environmentId)?.get(name);
  }

  #requireSpace(): void {
    if (this.#bucket.full) throw new CollabError('storage_full', 'The disk is full');
  }
}

/** Throws if a name breaks the rules of the port. */
function checkName(...names: readonly string[]): void {
  for (const name of names) checkedBlobName(name);
}
