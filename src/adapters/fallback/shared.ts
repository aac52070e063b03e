import type { Budget, SharedRecord, RateWindow, Shared } from '../../ports/shared.ts';
import { isDiskFailure } from '../lmdb/env/commit-failure.ts';
import { MemoryShared } from '../memory/shared.ts';

/** After a change failed, the next is not tried for this long: each attempt costs a write to a full disk. */
const RETRY_MS = 250;

/**
 * Shared memory that goes on when its disk is full or fails, so that requests are answered and sockets live on: what cannot be
 * written then counts in this process alone, and is written when there is space again.
 */
export class FallbackShared implements Shared {
  readonly #shared: Shared;
  /** Hits and budgets counted while they could not be shared. */
  readonly #hits = new MemoryShared();
  /** Changes that are still to be written: what they are about -> how. */
  readonly #owed = new Map<string, () => void>();
  /** `key owner` -> what is still to be added to its count. */
  readonly #deltas = new Map<string, { readonly key: string; readonly owner: string; delta: number }>();
  #failedAt = Number.NEGATIVE_INFINITY;

  constructor(shared: Shared) {
    this.#shared = shared;
  }

  hit(key: string, limit: number, windowMs: number, now: number): RateWindow {
    if (this.#deltas.size > 0 || this.#owed.size > 0) this.#pay();
    try {
      return this.#shared.hit(key, limit, windowMs, now);
    } catch (error) {
      requireDiskFailure(error);
      return this.#hits.hit(key, limit, windowMs, now);
    }
  }

  spend(key: string, budget: Budget): RateWindow {
    try {
      return this.#shared.spend(key, budget);
    } catch (error) {
      requireDiskFailure(error);
      return this.#hits.spend(key, budget);
    }
  }

  sweepWindows(before: number): void {
    this.#hits.sweepWindows(before);
    this.#try(() => this.#shared.sweepWindows(before));
  }

  count(key: string, owner: string, delta: number): number {
    const name = `${key} ${owner}`;
    const owed = this.#deltas.get(name) ?? { key, owner, delta: 0 };
    owed.delta += delta;
    this.#deltas.set(name, owed);
    this.#pay();
    return this.total(key);
  }

  total(key: string): number {
    let total = this.#shared.total(key);
    for (const owed of this.#deltas.values()) if (owed.key === key) total += owed.delta;
    return Math.max(0, total);
  }

  put(record: SharedRecord): void {
    this.#owe(`${record.key} ${record.name}`, () => this.#shared.put(record));
  }

  delete(key: string, name: string): void {
    this.#owe(`${key} ${name}`, () => this.#shared.delete(key, name));
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
    this.#owe(` ${owner}`, () => this.#shared.deleteOwner(owner));
  }

  maintain(): void {
    this.#shared.maintain();
  }

  async close(): Promise<void> {
    await this.#shared.close();
  }

  /** Makes a change now, or as soon as there is space; only the last one about a thing counts. */
  #owe(about: string, change: () => void): void {
    this.#owed.delete(about);
    this.#owed.set(about, change);
    this.#pay();
  }

  #pay(): void {
    if (performance.now() - this.#failedAt < RETRY_MS) return;
    for (const [name, { key, owner, delta }] of this.#deltas) {
      if (delta !== 0 && !this.#try(() => this.#shared.count(key, owner, delta))) return;
      this.#deltas.delete(name);
    }
    for (const [about, change] of this.#owed) {
      if (!this.#try(change)) return;
      this.#owed.delete(about);
    }
  }

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
