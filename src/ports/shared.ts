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

/** A small record that belongs to a worker. */
export interface SharedRecord {
  readonly key: string;
  /** Unique under its key. */
  readonly name: string;
  readonly owner: string;
  readonly text: string;
}

/**
 * Shared memory: small facts that all processes of a cluster see at once and that may be lost with the machine, such as
 * rate windows, connections and presence. Every method is atomic across processes. `test/conformance/shared.ts` asserts
 * this contract for every adapter.
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
  /** Deletes windows without a hit in the last `idleMs` milliseconds, and budgets that have been full for longer. */
  sweepWindows(idleMs: number): Promise<void>;

  /**
   * Adds `delta` to the count of `owner` (a worker) under `key`, but not below 0. Returns the total of `key` over all
   * owners.
   */
  count(key: string, owner: string, delta: number): Promise<number>;
  /** Returns the total of `key` over all owners. */
  total(key: string): Promise<number>;

  /**
   * Stores a record under its key and name, replacing one of any owner. Key, name and owner have no spaces or control
   * characters; the owner may be '' for none.
   */
  put(record: SharedRecord): Promise<void>;
  /** Deletes a record of any owner; no effect if there is none. */
  delete(key: string, name: string): Promise<void>;
  /** Returns the records under a key, ordered by name. */
  list(key: string): Promise<SharedRecord[]>;
  /**
   * Returns one record; undefined if there is none. The cost does not depend on the number of records under the key.
   */
  get(key: string, name: string): Promise<SharedRecord | undefined>;
  /** Returns the records of `owner` under all keys. Reads all records: for maintenance only. */
  listByOwner(owner: string): Promise<SharedRecord[]>;

  /** Deletes the counts and records of `owner`, which has ended. */
  deleteOwner(owner: string): Promise<void>;

  /** Frees what ended processes have held in the memory itself; called with the maintenance of the store. */
  maintain(): Promise<void>;
  /** Closes the memory after the calls that were made before. Call nothing afterwards. */
  close(): Promise<void>;
}
