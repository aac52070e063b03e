/** The result of counting a hit, or of spending from a budget. */
export interface RateLimitResult {
  readonly allowed: boolean;
  /** Hits, or units of the budget, that are left. */
  readonly remaining: number;
  /**
   * Milliseconds until the oldest hit leaves the window or the budget is full; after a refusal, until the same call is
   * allowed.
   */
  readonly resetMs: number;
}

/** An amount to spend from a budget of `limit`, which is refilled evenly by `limit` per `windowMs`. */
export interface Budget {
  readonly amount: number;
  /** More than 0. */
  readonly limit: number;
  readonly windowMs: number;
  /** Spends the amount even if it is not allowed: for what has been used already. */
  readonly overdraw?: boolean | undefined;
}

/** A small record to be stored. */
export interface NewSharedRecord {
  readonly key: string;
  /** Unique under its key. */
  readonly name: string;
  /** Whose lease it ends with; '' for nobody's, which lasts until it is deleted or expires. */
  readonly owner: string;
  readonly text: string;
  /** Milliseconds after which it expires, whether or not its owner has a lease; absent for never. */
  readonly expiresInMs?: number | undefined;
}

/** A small record as it is stored. */
export interface SharedRecord {
  readonly key: string;
  readonly name: string;
  /** '' for nobody. */
  readonly owner: string;
  readonly text: string;
  /** When it was put, by the time of the memory in milliseconds: compare it with that of other records only. */
  readonly putAt: number;
  /** Milliseconds until it expires, more than 0; null if it lasts as long as its owner has a lease. */
  readonly expiresInMs: number | null;
}

/**
 * How long a lease lasts that is not renewed, in milliseconds. For so long the users of a process that was killed
 * together with the process that reports its end are still shown (decision 71), and for so long a process may be
 * busy, or cut off, before it has to store its entries again.
 */
export const LEASE_MS = 20_000;

/**
 * Shared memory: small facts that all processes of a cluster see at once and that may be lost with the machine, such as
 * rate windows, connections and presence. Every method is atomic across processes. `test/conformance/shared.ts` asserts
 * this contract for every adapter.
 *
 * Counts and records have an owner: a process, by a name that no other one has had on any machine, also before a
 * restart. They exist only while their owner has a lease, which lasts `LEASE_MS` and which the owner renews. What is
 * called the end of a lease below is that time, `endLease` or the next `beginLease`, whichever comes first. Entries
 * that are written without a lease are not shown, and the next lease begins without them.
 *
 * Every method returns a promise, because an adapter may have to ask over a network. The calls of one process take
 * effect in the order in which they are made, even if the caller does not await them. One that rejects may have taken
 * effect, and does not keep later ones from it. Time is that of the memory, which all processes share, also those of
 * machines whose clocks differ; it never goes back. Do not call this in a transaction of the store: the transaction may
 * run again, and would wait for the network (decision 30).
 */
export interface Shared {
  /**
   * Counts a hit if fewer than `limit` were counted in the last `windowMs` milliseconds. The window slides: at most
   * `limit` hits are allowed in any interval of that length. A refused hit is not counted.
   */
  hit(key: string, limit: number, windowMs: number): Promise<RateLimitResult>;
  /**
   * Spends an amount if the budget of the key has that much left, or is full: an amount above the limit needs a full
   * budget. `remaining` is what is left, in units of the amount, and `resetMs` the time until the budget is full; after
   * a refusal, until the same amount is allowed. The keys are separate from those of `hit`.
   */
  spend(key: string, budget: Budget): Promise<RateLimitResult>;
  /**
   * Begins a lease of `owner`, in place of one that it may have had: it has no entries. Calls that were made before this
   * one leave no entries either, even if they are not answered yet.
   */
  beginLease(owner: string): Promise<void>;
  /**
   * Renews the lease of `owner`. Returns false, without an effect, if it has none: it has ended, and all entries with
   * it. The owner then begins another one and writes its entries again. The cost does not depend on their number.
   */
  renewLease(owner: string): Promise<boolean>;
  /**
   * Ends the lease of `owner`, of whom somebody knows that it has ended: its counts are gone at once. Its records become
   * nobody's, and expire `keepRecordsMs` later, if not before. No effect on the entries of a lease that has ended.
   */
  endLease(owner: string, keepRecordsMs: number): Promise<void>;

  /**
   * Adds `delta` to the count of `owner` under `key`, but not below 0. Returns the total of `key` over all owners that
   * have a lease.
   */
  count(key: string, owner: string, delta: number): Promise<number>;
  /** Returns the total of `key` over all owners that have a lease. */
  total(key: string): Promise<number>;

  /**
   * Stores a record under its key and name, replacing one of any owner. Key, name and owner have no spaces or control
   * characters.
   */
  put(record: NewSharedRecord): Promise<void>;
  /** Deletes a record of any owner; no effect if there is none. */
  delete(key: string, name: string): Promise<void>;
  /** Returns the records under a key that have not expired and whose lease has not ended, ordered by name. */
  list(key: string): Promise<SharedRecord[]>;
  /** As `list`, for one record; undefined if there is none. The cost does not depend on how many the key has. */
  get(key: string, name: string): Promise<SharedRecord | undefined>;

  /**
   * Deletes what no other method shows: records that have expired, entries without a lease, windows without a hit in
   * the last `idleMs` milliseconds, and budgets that have been full for longer. Reads everything: for maintenance only.
   */
  sweep(idleMs: number): Promise<void>;
  /** Frees what ended processes have held in the memory itself; called with the maintenance of the store. */
  maintain(): Promise<void>;
  /**
   * Whether what is read is of this process alone, because the memory is on another machine and cannot be reached.
   * Absent for a memory that cannot be out of reach.
   */
  isPartial?(): boolean;
  /**
   * Whether an owner should renew its lease now, not when it is due, because a memory on another machine was or is out
   * of reach. Absent as above.
   */
  wantsRenewal?(): boolean;
  /** Closes the memory after the calls that were made before. Call nothing afterwards. */
  close(): Promise<void>;
}
