import type { Budget, SharedRecord, RateWindow, Shared } from '../../ports/shared.ts';
import { isDiskFailure } from '../lmdb/env/commit-failure.ts';
import { MemoryShared } from '../memory/shared.ts';

/** After a failed write the next one is not attempted for this long: each attempt costs a write to a full disk. */
const RETRY_MS = 250;

/**
 * Shared memory that keeps working while its disk is full or fails, so that requests are answered and sockets stay open:
 * what cannot be written then counts in this process only, and is written when the disk works again.
 */
export class FallbackShared implements Shared {
  readonly #shared: Shared;
  /** Hits and budgets that could not be counted in the shared memory. */
  readonly #local = new MemoryShared();
  /** Changes to be written; the key says what they are about. */
  readonly #pendingChanges = new Map<string, () => void>();
  /** `key owner` -> amount to be added to the count. */
  readonly #pendingCounts = new Map<string, { readonly key: string; readonly owner: string; delta: number }>();
  #failedAt = Number.NEGATIVE_INFINITY;

  /** @param shared the memory that is written to a disk */
  constructor(shared: Shared) {
    this.#shared = shared;
  }

  hit(key: string, limit: number, windowMs: number, now: number): RateWindow {
    if (this.#pendingCounts.size > 0 || this.#pendingChanges.size > 0) this.#writePending();
    try {
      return this.#shared.hit(key, limit, windowMs, now);
    } catch (error) {
      requireDiskFailure(error);
      return this.#local.hit(key, limit, windowMs, now);
    }
  }

  spend(key: string, budget: Budget): RateWindow {
    try {
      return this.#shared.spend(key, budget);
    } catch (error) {
      requireDiskFailure(error);
      return this.#local.spend(key, budget);
    }
  }

  sweepWindows(before: number): void {
    this.#local.sweepWindows(before);
    this.#try(() => this.#shared.sweepWindows(before));
  }

  count(key: string, owner: string, delta: number): number {
    const name = `${key} ${owner}`;
    const pending = this.#pendingCounts.get(name) ?? { key, owner, delta: 0 };
    pending.delta += delta;
    this.#pendingCounts.set(name, pending);
    this.#writePending();
    return this.total(key);
  }

  total(key: string): number {
    let total = this.#shared.total(key);
    for (const pending of this.#pendingCounts.values()) if (pending.key === key) total += pending.delta;
    return Math.max(0, total);
  }

  put(record: SharedRecord): void {
    this.#change(`${record.key} ${record.name}`, () => this.#shared.put(record));
  }

  delete(key: string, name: string): void {
    this.#change(`${key} ${name}`, () => this.#shared.delete(key, name));
  }

  list(key: string): SharedRecord[] {
    return this.#shared.list(key);
  }

  get(key: string, name: string): SharedRecord | undefined {
    return this.#shared.get(key, name);
  }

  listByOwner(owner: string): SharedRecord[] {
    return this.#shared.listByOwner(owner);
  }

  deleteOwner(owner: string): void {
    this.#change(` ${owner}`, () => this.#shared.deleteOwner(owner));
  }

  maintain(): void {
    this.#shared.maintain();
  }

  async close(): Promise<void> {
    await this.#shared.close();
  }

  /** Makes a change now, or when the disk works again. A later change with the same subject replaces it. */
  #change(subject: string, change: () => void): void {
    this.#pendingChanges.delete(subject);
    this.#pendingChanges.set(subject, change);
    this.#writePending();
  }

  #writePending(): void {
    if (performance.now() - this.#failedAt < RETRY_MS) return;
    for (const [name, { key, owner, delta }] of this.#pendingCounts) {
      if (delta !== 0 && !this.#try(() => this.#shared.count(key, owner, delta))) return;
      this.#pendingCounts.delete(name);
    }
    for (const [subject, change] of this.#pendingChanges) {
      if (!this.#try(change)) return;
      this.#pendingChanges.delete(subject);
    }
  }

  /** Returns false if the disk has failed; throws any other error. */
  #try(change: () => void): boolean {
    try {
      change();
      return true;
    } catch (error) {
      requireDiskFailure(error);
      this.#failedAt = performance.now();
      return false;
    }
  }
}

function requireDiskFailure(error: unknown): void {
  if (!isDiskFailure(error)) throw error;
}
