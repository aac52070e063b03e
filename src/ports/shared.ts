/**
 * Shared memory: small facts that all processes of the cluster see at once and that may be lost with a power cut:
 * rate windows, who is connected and who is where. Every method is atomic across processes.
 */
export interface RateWindow {
  readonly allowed: boolean;
  /** Hits still allowed now, after this one. */
  readonly remaining: number;
  /** Milliseconds until the oldest counted hit leaves the window. When refused: until the next hit is allowed. */
  readonly resetMs: number;
}

/** An amount to spend, and the budget that it is of: `limit` at once, refilled evenly by `limit` in each `windowMs`. */
export interface Budget {
  readonly amount: number;
  /** More than 0. */
  readonly limit: number;
  readonly windowMs: number;
  /** `Clock.monotonic`. */
  readonly now: number;
  /** Counts the amount even when it is not allowed: for what has been used already. */
  readonly overdraw?: boolean | undefined;
}

/** A small record about one thing of a worker. */
export interface SharedRecord {
  readonly key: string;
  /** Unique under its key. */
  readonly name: string;
  readonly owner: string;
  readonly text: string;
}

export interface Shared {
  /**
   * Counts a hit if fewer than `limit` were counted in the `windowMs` before `now` (`Clock.monotonic`): exact over a sliding window, in
   * any interval of that length at most `limit` hits are allowed. A refused hit is not counted.
   */
  hit(key: string, limit: number, windowMs: number, now: number): RateWindow;
  /**
   * Spends an amount when the budget of the key has as much left, or is full: an amount above the limit takes a full budget.
   * `remaining` is what is left then, in units of the amount, and `resetMs` the time until it is full. When refused, `resetMs` is
   * the time until the same amount is allowed. Keys are apart from those of `hit`.
   */
  spend(key: string, budget: Budget): RateWindow;
  /** Forgets windows in which no hit was counted since `before` (`Clock.monotonic`), and budgets that were full by then. */
  sweepWindows(before: number): void;

  /** Adds `delta` to the count that `owner` (a worker) holds under `key`; a count that reaches 0 is forgotten. Returns the total of `key` over all owners. */
  count(key: string, owner: string, delta: number): number;
  /** The total of `key` over all owners. */
  total(key: string): number;

  /**
   * Keeps a record under its key and name, in place of the one that was there, whoever held that. Key, name and owner hold
   * neither space nor control characters; the owner may be '', for nobody.
   */
  put(record: SharedRecord): void;
  /** Forgets a record, whoever holds it. */
  delete(key: string, name: string): void;
  /** The records under a key, by name, as of now. */
  list(key: string): SharedRecord[];
  /** The record with this key and name, as of now; undefined where there is none. Costs the same however many its key has. */
  get(key: string, name: string): SharedRecord | undefined;
  /** The records of all keys that `owner` holds. Reads everything that is held: for upkeep only. */
  listByOwner(owner: string): SharedRecord[];

  /** Forgets everything that `owner` counts and holds: it has ended. */
  deleteOwner(owner: string): void;

  /** Frees what ended processes have held back in the memory itself; called with the upkeep of the store. */
  maintain(): void;
  close(): Promise<void>;
}
