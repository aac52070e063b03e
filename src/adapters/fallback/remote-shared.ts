import { type Clock, systemClock } from '../../lib/clock.ts';
import { isStoreError } from '../../model/errors.ts';
import type { Budget, NewSharedRecord, RateLimitResult, Shared, SharedRecord } from '../../ports/shared.ts';
import { MemoryShared } from '../memory/shared.ts';

/** While the memory cannot be reached, it is tried again after so long, by one call. */
const RETRY_MS = 250;
/** Windows of this process that have had no hit for so long are forgotten. */
const IDLE_MS = 120_000;
/** The key under which each process that has a lease has a record. */
const PROCESSES = 'processes';

/**
 * Shared memory on another machine that keeps working while that cannot be reached, so that requests are answered,
 * sockets stay open and rooms can be joined. Meanwhile a limit is shared out: each process allows what it has divided by
 * the number of processes that had leases last. Counts and records are those of this process alone (`isPartial`), which
 * its owner writes again when it finds that it has no lease; and once more when the memory is back, in place of what was
 * there, so nothing is counted twice.
 */
export class RemoteShared implements Shared {
  readonly #remote: Shared;
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** What counts in this process only: hits and budgets, and the entries of its owner while `#isAlone`. */
  readonly #windows: MemoryShared;
  #entries: MemoryShared;
  /** Since when a failed call is to be tried again; null while the memory works. */
  #retryAt: number | null = null;
  #isProbing = false;
  /** Whether the entries are in this process. */
  #isAlone = false;
  /** Whether the memory misses what this process has written. */
  #isStale = false;
  #processes = 1;

  /**
   * @param remote the memory, which rejects with store errors while it cannot be reached
   * @param clock the time of what counts in this process only
   */
  constructor(remote: Shared, clock: Pick<Clock, 'monotonic'> = systemClock) {
    this.#remote = remote;
    this.#clock = clock;
    this.#windows = new MemoryShared(clock);
    this.#entries = new MemoryShared(clock);
  }

  isPartial(): boolean {
    return this.#isAlone;
  }

  wantsRenewal(): boolean {
    return this.#isAlone ? this.#retryAt === null : this.#isStale || this.#retryAt !== null;
  }

  hit(key: string, limit: number, windowMs: number): Promise<RateLimitResult> {
    return this.#try(
      () => this.#remote.hit(key, limit, windowMs),
      () => this.#windows.hit(key, Math.min(limit, Math.max(1, Math.floor(limit / this.#processes))), windowMs),
    );
  }

  spend(key: string, budget: Budget): Promise<RateLimitResult> {
    return this.#try(
      () => this.#remote.spend(key, budget),
      () => this.#windows.spend(key, { ...budget, limit: budget.limit / this.#processes }),
    );
  }

  /** Where it cannot be written, the owner has no lease, and is asked to renew it (`wantsRenewal`). */
  async beginLease(owner: string): Promise<void> {
    if (this.#isAlone) return this.#entries.beginLease(owner);
    await this.#write(() => {
      const begun = this.#remote.beginLease(owner);
      const known = this.#remote.put({ key: PROCESSES, name: owner, owner, text: '' });
      return Promise.all([begun, known, this.#countProcesses()]);
    });
  }

  /**
   * Returns false once after the memory has become unreachable, and once after it has come back: the owner begins a
   * lease and writes its entries again, where they are from then on.
   */
  async renewLease(owner: string): Promise<boolean> {
    const [wasAlone, wasStale] = [this.#isAlone, this.#isStale];
    try {
      const [renewed] = await Promise.all([this.#remote.renewLease(owner), this.#countProcesses()]);
      this.#retryAt = null;
      this.#isStale = false;
      await this.#windows.sweep(IDLE_MS);
      if (wasAlone) {
        this.#isAlone = false;
        this.#entries = new MemoryShared(this.#clock);
      }
      return renewed && !wasAlone && !wasStale;
    } catch (error) {
      this.#requireFailure(error);
      if (this.#isAlone) return this.#entries.renewLease(owner);
      // From now on, so that nothing that follows goes elsewhere.
      this.#isAlone = true;
      return false;
    }
  }

  /** Where it cannot be written, the lease ends when it is not renewed. */
  async endLease(owner: string, keepRecordsMs: number): Promise<void> {
    if (this.#isAlone) await this.#entries.endLease(owner, keepRecordsMs);
    else await this.#ignoreFailure(() => this.#remote.endLease(owner, keepRecordsMs));
  }

  async count(key: string, owner: string, delta: number): Promise<number> {
    if (this.#isAlone) return this.#entries.count(key, owner, delta);
    let total = 0;
    await this.#write(async () => (total = await this.#remote.count(key, owner, delta)));
    return total;
  }

  total(key: string): Promise<number> {
    return this.#read((shared) => shared.total(key));
  }

  async put(record: NewSharedRecord): Promise<void> {
    if (this.#isAlone) await this.#entries.put(record);
    else await this.#write(() => this.#remote.put(record));
  }

  async delete(key: string, name: string): Promise<void> {
    if (this.#isAlone) await this.#entries.delete(key, name);
    else await this.#write(() => this.#remote.delete(key, name));
  }

  list(key: string): Promise<SharedRecord[]> {
    return this.#read((shared) => shared.list(key));
  }

  get(key: string, name: string): Promise<SharedRecord | undefined> {
    return this.#read((shared) => shared.get(key, name));
  }

  async sweep(idleMs: number): Promise<void> {
    await this.#windows.sweep(idleMs);
    await this.#ignoreFailure(() => this.#remote.sweep(idleMs));
  }

  maintain(): Promise<void> {
    return this.#remote.maintain();
  }

  close(): Promise<void> {
    return this.#remote.close();
  }

  /** How many processes have a lease, to share limits out by when they can no longer be counted. */
  async #countProcesses(): Promise<void> {
    const processes = await this.#remote.list(PROCESSES);
    this.#processes = Math.max(1, processes.length);
  }

  /**
   * Reads entries where they are. Until the owner has written them into this process, reading fails while the memory
   * cannot be reached: users in a room must not seem to have left it.
   */
  async #read<T>(read: (shared: Shared) => Promise<T>): Promise<T> {
    if (this.#isAlone) return read(this.#entries);
    try {
      return await read(this.#remote);
    } catch (error) {
      this.#requireFailure(error);
      throw error;
    }
  }

  /** Asks the memory, or this process if that fails, or has failed shortly before. */
  async #try<T>(remote: () => Promise<T>, local: () => Promise<T>): Promise<T> {
    const isDown = this.#retryAt !== null;
    if (isDown && (this.#isProbing || performance.now() < (this.#retryAt ?? 0))) return local();
    this.#isProbing = isDown;
    try {
      const answer = await remote();
      this.#retryAt = null;
      return answer;
    } catch (error) {
      this.#requireFailure(error);
      return await local();
    } finally {
      if (isDown) this.#isProbing = false;
    }
  }

  /** Writes, or remembers that the owner has to write everything again. */
  async #write(change: () => Promise<unknown>): Promise<void> {
    if (!(await this.#ignoreFailure(change))) this.#isStale = true;
  }

  /** Returns whether the memory has made a change. */
  async #ignoreFailure(change: () => Promise<unknown>): Promise<boolean> {
    try {
      await change();
      return true;
    } catch (error) {
      this.#requireFailure(error);
      return false;
    }
  }

  /** Throws any other error. */
  #requireFailure(error: unknown): void {
    if (!isStoreError(error)) throw error;
    this.#retryAt = performance.now() + RETRY_MS;
  }
}
