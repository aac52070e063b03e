import { isStoreError } from '../../model/errors.ts';
import type { Budget, NewSharedRecord, RateLimitResult, Shared, SharedRecord } from '../../ports/shared.ts';
import type { Clock } from '../../lib/clock.ts';
import { MemoryShared } from '../memory/shared.ts';

/** After a failed write the next one is not attempted for this long: each attempt costs a write to a full disk. */
const RETRY_MS = 250;

/** An amount to be added to a count. */
interface PendingCount {
  readonly key: string;
  readonly owner: string;
  delta: number;
}

/**
 * Shared memory that keeps working while its disk is full or fails, so that requests are answered and sockets stay
 * open: what cannot be written then counts in this process only, and is written when the disk works again. Meanwhile a
 * limit holds in each process, so N processes together allow up to N times as much.
 */
export class FallbackShared implements Shared {
  readonly #shared: Shared;
  /** Hits and budgets that could not be counted in the shared memory. */
  readonly #local: MemoryShared;
  /** Changes to be written, in their order; the key says what they are about. */
  readonly #pendingChanges = new Map<string, () => Promise<void>>();
  /** By `key owner`. Never with a delta of 0. */
  readonly #pendingCounts = new Map<string, PendingCount>();
  #writing: Promise<void> | undefined;
  #failedAt = Number.NEGATIVE_INFINITY;

  /**
   * @param shared the memory that is written to a disk
   * @param clock the time of what counts in this process only
   */
  constructor(shared: Shared, clock?: Pick<Clock, 'monotonic'>) {
    this.#shared = shared;
    this.#local = new MemoryShared(clock);
  }

  async hit(key: string, limit: number, windowMs: number): Promise<RateLimitResult> {
    if (this.#hasPending) await this.#writePending();
    try {
      return await this.#shared.hit(key, limit, windowMs);
    } catch (error) {
      if (!isStoreError(error)) throw error;
      return this.#local.hit(key, limit, windowMs);
    }
  }

  async spend(key: string, budget: Budget): Promise<RateLimitResult> {
    try {
      return await this.#shared.spend(key, budget);
    } catch (error) {
      if (!isStoreError(error)) throw error;
      return this.#local.spend(key, budget);
    }
  }

  async sweep(idleMs: number): Promise<void> {
    await this.#local.sweep(idleMs);
    await this.#try(() => this.#shared.sweep(idleMs));
  }

  /** If the disk fails, the owner has no lease: it begins another one when it finds out that it cannot renew it. */
  async beginLease(owner: string): Promise<void> {
    for (const [name, count] of this.#pendingCounts) if (count.owner === owner) this.#pendingCounts.delete(name);
    await this.#try(() => this.#shared.beginLease(owner));
  }

  /** If the disk fails, returns true: nothing could be written again. The entries last as long as the lease does. */
  async renewLease(owner: string): Promise<boolean> {
    let renewed = true;
    await this.#try(async () => (renewed = await this.#shared.renewLease(owner)));
    return renewed;
  }

  endLease(owner: string, keepRecordsMs: number): Promise<void> {
    return this.#change(` ${owner}`, () => this.#shared.endLease(owner, keepRecordsMs));
  }

  async count(key: string, owner: string, delta: number): Promise<number> {
    if (!this.#isBehind) {
      try {
        return await this.#shared.count(key, owner, delta);
      } catch (error) {
        this.#requireDiskFailure(error);
      }
    }
    this.#addPending({ key, owner, delta });
    await this.#writePending();
    return this.total(key);
  }

  async total(key: string): Promise<number> {
    const written = this.#shared.total(key);
    let pending = 0;
    for (const count of this.#pendingCounts.values()) if (count.key === key) pending += count.delta;
    return Math.max(0, (await written) + pending);
  }

  put(record: NewSharedRecord): Promise<void> {
    return this.#change(`${record.key} ${record.name}`, () => this.#shared.put(record));
  }

  delete(key: string, name: string): Promise<void> {
    return this.#change(`${key} ${name}`, () => this.#shared.delete(key, name));
  }

  async list(key: string): Promise<SharedRecord[]> {
    await this.#writing;
    return this.#shared.list(key);
  }

  async get(key: string, name: string): Promise<SharedRecord | undefined> {
    await this.#writing;
    return this.#shared.get(key, name);
  }

  maintain(): Promise<void> {
    return this.#shared.maintain();
  }

  async close(): Promise<void> {
    await this.#writing;
    await this.#shared.close();
  }

  get #hasPending(): boolean {
    return this.#pendingCounts.size > 0 || this.#pendingChanges.size > 0;
  }

  /** Whether the disk has failed, and not everything has been written since. */
  get #isBehind(): boolean {
    return this.#hasPending || this.#writing !== undefined;
  }

  #addPending({ key, owner, delta }: PendingCount): void {
    const name = `${key} ${owner}`;
    const sum = delta + (this.#pendingCounts.get(name)?.delta ?? 0);
    if (sum === 0) this.#pendingCounts.delete(name);
    else this.#pendingCounts.set(name, { key, owner, delta: sum });
  }

  /** Makes a change now, or when the disk works again. A later change with the same name replaces it. */
  async #change(name: string, change: () => Promise<void>): Promise<void> {
    // An earlier change that has failed in the meantime is not to be made after a later one.
    if (!this.#isBehind && (await this.#try(change))) return void this.#pendingChanges.delete(name);
    this.#pendingChanges.delete(name);
    this.#pendingChanges.set(name, change);
    await this.#writePending();
  }

  /** Resolves once everything pending is written, or the disk has failed. */
  async #writePending(): Promise<void> {
    while (this.#hasPending && performance.now() - this.#failedAt >= RETRY_MS) await (this.#writing ??= this.#write());
  }

  /** Writes what is pending, until the disk fails. Runs once at a time, so that changes take effect in their order. */
  async #write(): Promise<void> {
    try {
      for (const [name, count] of this.#pendingCounts) {
        // Not pending while it is being written, or `total` would count it twice.
        this.#pendingCounts.delete(name);
        if (await this.#try(() => this.#shared.count(count.key, count.owner, count.delta))) continue;
        this.#addPending(count);
        return;
      }
      for (const [name, change] of this.#pendingChanges) {
        if (!(await this.#try(change))) return;
        if (this.#pendingChanges.get(name) === change) this.#pendingChanges.delete(name);
      }
    } finally {
      this.#writing = undefined;
    }
  }

  /** Returns false if the disk has failed; rejects with any other error. */
  async #try(change: () => Promise<unknown>): Promise<boolean> {
    try {
      await change();
      return true;
    } catch (error) {
      this.#requireDiskFailure(error);
      return false;
    }
  }

  /** Throws any other error. */
  #requireDiskFailure(error: unknown): void {
    if (!isStoreError(error)) throw error;
    this.#failedAt = performance.now();
  }
}
