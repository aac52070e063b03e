import type { Budget, SharedRecord, RateLimitResult, Shared } from '../../ports/shared.ts';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { spendFrom } from './budget.ts';

/** Shared memory of a single process. */
export class MemoryShared implements Shared {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** key -> times of the allowed hits, oldest first. */
  readonly #hits = new Map<string, number[]>();
  /** key -> when the budget is full again. */
  readonly #budgets = new Map<string, number>();
  /** key -> owner -> count. */
  readonly #counts = new Map<string, Map<string, number>>();
  /** key -> name -> record. */
  readonly #records = new Map<string, Map<string, SharedRecord>>();

  /** @param clock the time of the memory */
  constructor(clock: Pick<Clock, 'monotonic'> = systemClock) {
    this.#clock = clock;
  }

  async hit(key: string, limit: number, windowMs: number): Promise<RateLimitResult> {
    const now = this.#clock.monotonic();
    const hits = (this.#hits.get(key) ?? []).filter((at) => at > now - windowMs);
    const allowed = hits.length < limit;
    if (allowed) hits.push(now);
    this.#hits.set(key, hits);
    const leaving = allowed ? hits[0] : hits[hits.length - limit];
    return { allowed, remaining: Math.max(0, limit - hits.length), resetMs: (leaving ?? now) + windowMs - now };
  }

  async spend(key: string, budget: Budget): Promise<RateLimitResult> {
    const { window, fullAt } = spendFrom(this.#budgets.get(key), budget, this.#clock.monotonic());
    this.#budgets.set(key, fullAt);
    return window;
  }

  async sweepWindows(idleMs: number): Promise<void> {
    const before = this.#clock.monotonic() - idleMs;
    for (const [key, fullAt] of this.#budgets) if (fullAt < before) this.#budgets.delete(key);
    for (const [key, hits] of this.#hits) {
      if ((hits.at(-1) ?? Number.NEGATIVE_INFINITY) < before) this.#hits.delete(key);
    }
  }

  async count(key: string, owner: string, delta: number): Promise<number> {
    let owners = this.#counts.get(key);
    if (owners === undefined) this.#counts.set(key, (owners = new Map<string, number>()));
    const count = (owners.get(owner) ?? 0) + delta;
    if (count > 0) owners.set(owner, count);
    else owners.delete(owner);
    if (owners.size === 0) this.#counts.delete(key);
    return this.total(key);
  }

  async total(key: string): Promise<number> {
    let total = 0;
    for (const count of this.#counts.get(key)?.values() ?? []) total += count;
    return total;
  }

  async put(record: SharedRecord): Promise<void> {
    let records = this.#records.get(record.key);
    if (records === undefined) this.#records.set(record.key, (records = new Map<string, SharedRecord>()));
    records.set(record.name, record);
  }

  async delete(key: string, name: string): Promise<void> {
    this.#deleteRecord(key, name);
  }

  async list(key: string): Promise<SharedRecord[]> {
    return this.#recordsOf(key);
  }

  async get(key: string, name: string): Promise<SharedRecord | undefined> {
    return this.#records.get(key)?.get(name);
  }

  async listByOwner(owner: string): Promise<SharedRecord[]> {
    return [...this.#records.keys()].flatMap((key) => this.#recordsOf(key)).filter((record) => record.owner === owner);
  }

  async deleteOwner(owner: string): Promise<void> {
    for (const [key, records] of this.#records) {
      for (const record of records.values()) if (record.owner === owner) this.#deleteRecord(key, record.name);
    }
    for (const [key, owners] of this.#counts) {
      owners.delete(owner);
      if (owners.size === 0) this.#counts.delete(key);
    }
  }

  async maintain(): Promise<void> {
    // There are no other processes.
  }

  async close(): Promise<void> {
    this.#hits.clear();
    this.#budgets.clear();
    this.#counts.clear();
    this.#records.clear();
  }

  #recordsOf(key: string): SharedRecord[] {
    return [...(this.#records.get(key)?.values() ?? [])].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  #deleteRecord(key: string, name: string): void {
    const records = this.#records.get(key);
    records?.delete(name);
    if (records?.size === 0) this.#records.delete(key);
  }
}
