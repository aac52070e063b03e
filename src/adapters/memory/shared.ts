import {
  type Budget,
  LEASE_MS,
  type NewSharedRecord,
  type RateLimitResult,
  type Shared,
  type SharedRecord,
} from '../../ports/shared.ts';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { spendFrom } from './budget.ts';

/** A record, with the time at which it expires in place of how long that is away; Infinity for never. */
interface StoredRecord extends Omit<SharedRecord, 'expiresInMs'> {
  readonly expiresAt: number;
}

/** Shared memory of a single process. */
export class MemoryShared implements Shared {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** key -> times of the allowed hits, oldest first. */
  readonly #hits = new Map<string, number[]>();
  /** key -> when the budget is full again. */
  readonly #budgets = new Map<string, number>();
  /** owner -> when its lease ends. */
  readonly #leases = new Map<string, number>();
  /** key -> owner -> count. */
  readonly #counts = new Map<string, Map<string, number>>();
  /** key -> name -> record. */
  readonly #records = new Map<string, Map<string, StoredRecord>>();

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

  async sweep(idleMs: number): Promise<void> {
    const now = this.#clock.monotonic();
    const before = now - idleMs;
    for (const [key, fullAt] of this.#budgets) if (fullAt < before) this.#budgets.delete(key);
    for (const [key, hits] of this.#hits) {
      if ((hits.at(-1) ?? Number.NEGATIVE_INFINITY) < before) this.#hits.delete(key);
    }
    this.#clear((owner) => !this.#hasLease(owner));
    for (const { key, name, expiresAt } of this.#allRecords()) if (expiresAt <= now) this.#deleteRecord(key, name);
    for (const [owner, endsAt] of this.#leases) if (endsAt <= now) this.#leases.delete(owner);
  }

  async beginLease(owner: string): Promise<void> {
    this.#clear((other) => other === owner);
    this.#leases.set(owner, this.#clock.monotonic() + LEASE_MS);
  }

  async renewLease(owner: string): Promise<boolean> {
    if (!this.#hasLease(owner)) return false;
    this.#leases.set(owner, this.#clock.monotonic() + LEASE_MS);
    return true;
  }

  async endLease(owner: string, keepRecordsMs: number): Promise<void> {
    const expiresAt = this.#clock.monotonic() + keepRecordsMs;
    if (this.#hasLease(owner))
      for (const record of this.#allRecords())
        if (record.owner === owner)
          this.#putRecord({ ...record, owner: '', expiresAt: Math.min(record.expiresAt, expiresAt) });
    this.#clear((other) => other === owner);
    this.#leases.delete(owner);
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
    for (const [owner, count] of this.#counts.get(key) ?? []) if (this.#hasLease(owner)) total += count;
    return total;
  }

  async put({ expiresInMs = Number.POSITIVE_INFINITY, ...record }: NewSharedRecord): Promise<void> {
    const putAt = this.#clock.monotonic();
    this.#putRecord({ ...record, putAt, expiresAt: putAt + expiresInMs });
  }

  async delete(key: string, name: string): Promise<void> {
    this.#deleteRecord(key, name);
  }

  async list(key: string): Promise<SharedRecord[]> {
    const names = [...(this.#records.get(key)?.keys() ?? [])].sort();
    return names.flatMap((name) => this.#shown(key, name) ?? []);
  }

  async get(key: string, name: string): Promise<SharedRecord | undefined> {
    return this.#shown(key, name);
  }

  async maintain(): Promise<void> {
    // There are no other processes.
  }

  async close(): Promise<void> {
    this.#hits.clear();
    this.#budgets.clear();
    this.#leases.clear();
    this.#counts.clear();
    this.#records.clear();
  }

  #hasLease(owner: string): boolean {
    return owner === '' || (this.#leases.get(owner) ?? 0) > this.#clock.monotonic();
  }

  #shown(key: string, name: string): SharedRecord | undefined {
    const record = this.#records.get(key)?.get(name);
    if (record === undefined || !this.#hasLease(record.owner)) return undefined;
    const { expiresAt, ...shown } = record;
    const leftMs = expiresAt - this.#clock.monotonic();
    return leftMs <= 0 ? undefined : { ...shown, expiresInMs: leftMs === Number.POSITIVE_INFINITY ? null : leftMs };
  }

  #allRecords(): StoredRecord[] {
    return [...this.#records.values()].flatMap((records) => [...records.values()]);
  }

  /** Deletes the counts and records of the owners that `isGone` names. */
  #clear(isGone: (owner: string) => boolean): void {
    for (const { key, name, owner } of this.#allRecords()) if (isGone(owner)) this.#deleteRecord(key, name);
    for (const [key, owners] of this.#counts) {
      for (const owner of owners.keys()) if (isGone(owner)) owners.delete(owner);
      if (owners.size === 0) this.#counts.delete(key);
    }
  }

  #putRecord(record: StoredRecord): void {
    let records = this.#records.get(record.key);
    if (records === undefined) this.#records.set(record.key, (records = new Map<string, StoredRecord>()));
    records.set(record.name, record);
  }

  #deleteRecord(key: string, name: string): void {
    const records = this.#records.get(key);
    records?.delete(name);
    if (records?.size === 0) this.#records.delete(key);
  }
}
