/** A record of a partition. */
export interface Entry {
  readonly key: string;
  readonly value: string;
}

/** The bounds of a range. */
export interface RangeOptions {
  /** Only keys that start with this. */
  readonly prefix?: string | undefined;
  /** Only keys after this one in the direction of the read, exclusive. The key need not exist. */
  readonly after?: string | undefined;
  /** From the last key to the first. */
  readonly reverse?: boolean | undefined;
  /** Maximum number of entries. */
  readonly limit?: number | undefined;
}

/**
 * A read shows every commit of any process that was made before the current callback of the event loop began, and none
 * that is not flushed to disk. So it shows everything that the sender of the bytes that the callback handles can know.
 * Reads never go back: a read shows every commit that an earlier read of this process has shown, with all its records
 * and events. This holds for `get`, `range`, `cached`, `lastSeq`, `oldestSeq`, `events` and `partitions` alike.
 */
export interface Reader {
  /** Returns the value of a record; undefined if there is none. */
  get(partition: string, key: string): Promise<string | undefined>;
  /** Returns the entries of a partition, ordered by key. */
  range(partition: string, options?: RangeOptions): Promise<Entry[]>;
}

/** The reads of a transaction that do not guard it. */
export interface UnguardedReader extends Reader {
  /**
   * As `Reader.get`. With `suffices`, the first run of a transaction may get an earlier value that the adapter has at
   * hand. If the record has another value at the commit for which `suffices` is false, the transaction runs again.
   * `suffices` is synchronous, has no side effects and may be called more than once, or not at all.
   */
  get(partition: string, key: string, suffices?: (current: string | undefined) => boolean): Promise<string | undefined>;
}

/**
 * Returns the text of an event for its position. Called at commit, possibly more than once: it must have no side
 * effects.
 */
export type RenderEvent = (seq: number) => string;

/** The reads and buffered writes of one run of `Store.transact`. */
export interface Transaction extends Reader {
  /**
   * As `Reader.get`. If another transaction that writes this key (by `put`, `delete` or `update`) commits before this
   * one, this one runs again.
   */
  get(partition: string, key: string): Promise<string | undefined>;
  /** As `Reader.range`, without that guard. To be safe, `get` a key that every writer of the range updates. */
  range(partition: string, options?: RangeOptions): Promise<Entry[]>;
  /** Reads without that guard, for records that change so often that the transaction would keep conflicting. */
  readonly unguarded: UnguardedReader;
  /** Writes a record. */
  put(partition: string, key: string, value: string): void;
  /** Deletes a record; no effect if there is none. */
  delete(partition: string, key: string): void;
  /**
   * Changes a value as of the commit, so that transactions that change the same record, such as a counter, do not
   * conflict. `change` is synchronous, has no side effects and may be called more than once; it takes and returns
   * undefined for no record. The writes of one transaction to one key apply in the order of the calls.
   */
  update(partition: string, key: string, change: (current: string | undefined) => string | undefined): void;
  /**
   * Appends an event to a stream, which begins with its first event. Positions are assigned at commit, in the order of
   * the calls. If the stream has ended by then, the transaction is refused with `environment_not_found`.
   */
  emit(stream: string, render: RenderEvent): void;
  /**
   * Ends a stream: the commit deletes its events, and its name never takes an event again. No effect if it has ended.
   */
  endStream(stream: string): void;
}

/** An event of a stream. */
export interface StoredEvent {
  readonly seq: number;
  readonly text: string;
}

/**
 * Receives the events of every stream, each once, per stream in the order of `seq` without gaps: except that a process
 * that did not look for so long that events were deleted meanwhile continues after those. When a stream ends, it
 * receives null, once; it may not have received the last events of that stream.
 */
export type EventListener = (stream: string, event: StoredEvent | null) => void;

/** Streams that have grown: by name, the position of the last event; null if the stream has ended. */
export type Growth = ReadonlyMap<string, number | null>;

/**
 * Records and streams of events. A record is a text under a key in a partition, which is ordered by key (by byte).
 * Partition names and keys are printable ASCII without spaces (0x21–0x7e), each at least one character, together at
 * most 1 900 bytes; names of streams follow the rules for those of partitions. Values are well-formed Unicode text,
 * normally JSON. `test/conformance/store.ts` asserts every sentence of this file for every adapter.
 */
export interface Store extends Reader {
  /** Identifies this incarnation of the store. A restore changes it: positions of another epoch mean nothing. */
  readonly epoch: string;

  /**
   * Runs `work`, which reads through `tx` and buffers writes and events there, and commits those atomically. Nothing is
   * visible before the commit, not even to reads of `tx`. Events get the next positions of their streams (1, 2, 3 …
   * without gaps). If a key that `work` has read by `tx.get` has changed by then, `work` runs again, at most 12 times
   * in all with random delays: it must have no effects except through `tx`. Nor may it read or write through the store
   * until it has ended: the connection that such a call needs may be one that a transaction holds which waits for it.
   *
   * Resolves with the result of `work` once the commit is flushed to disk; without a commit if nothing was buffered.
   * Rejects with what `work`, a `change` or a `render` throws, with `write_conflict` when every run conflicted, and
   * with `storage_full` when the disk is full: nothing was written then. Rejects with `storage_failed` on an I/O error,
   * and with `storage_unavailable` while a store on another machine cannot be reached: the commit is not confirmed then,
   * unless the message says that nothing was written. Rejects with `store_moving` once the store is being moved to
   * another one (`StoreTransfer.setState`). An adapter may bound what one transaction writes, to 16 MB at the least, and
   * rejects with `payload_too_large` above that.
   */
  transact<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;

  /**
   * Returns the cached value of `key` if it is valid, and otherwise computes it. A value is valid until a read would
   * show a write to one of `partitions` that was committed, by any process, after the computation began: so it is never
   * older than a read at the same moment. Concurrent calls share one computation. A value that becomes invalid during
   * its computation is not kept, nor is a rejection. Values may be evicted at any time.
   *
   * What `compute` reads from other partitions must not change without a write to one of `partitions` in the same
   * commit, which alone makes the value invalid: so the summary of a room covers its threads, as every change of a
   * thread writes the room's statistics too. The store in memory of the tests refuses a commit that breaks this. A
   * fault must reject the promise of `compute`; it must not throw. Every caller gets the same value, so none may change
   * it.
   *
   * An adapter that cannot see the commits of other processes without waiting asks before it returns a cached value,
   * such as for the version of each partition. Announcements (`Bus`) do not replace that: they may be late or lost.
   */
  cached<T>(key: string, partitions: readonly string[], compute: () => Promise<T>): Promise<T>;

  /** Returns the position of the last event of a stream; 0 if it has none or has ended. */
  lastSeq(stream: string): Promise<number>;
  /** Returns the position of the oldest event that is kept; `lastSeq` + 1 if none is. */
  oldestSeq(stream: string): Promise<number>;
  /**
   * Returns the events after `since` that are kept, in order: at most `limit`, and no more than fit into `maxChars`
   * characters (UTF-16 units) of text, but at least one. Without `maxChars` only `limit` bounds them.
   */
  events(stream: string, since: number, limit: number, maxChars?: number): Promise<StoredEvent[]>;
  /**
   * Deletes events up to `seq`. The latest of them, some hundreds at most, may be kept, and the last event of the
   * stream always is, so that positions continue. `events` may return deleted ones for a while.
   */
  trimEvents(stream: string, seq: number): Promise<void>;

  /**
   * Calls `listener` with every event that any process commits from now on; it may receive events that were committed
   * shortly before too. Those of other processes arrive with a later read or `poll` of this process. The
   * listener may read the `text` of an event until it returns, but not later. What it throws goes to `onListenerError`
   * and affects neither the commit nor other listeners. Returns a function that unsubscribes it.
   */
  follow(listener: EventListener): () => void;
  /**
   * Looks for commits of other processes and calls the followers with their events; it may return before that. Call it
   * when another process announces a commit, and periodically, because announcements can be lost. No effect after
   * `close`.
   *
   * @param growth what was announced: the store looks for the events of these streams up to these positions, and may
   *   look for others. It need not look for what the followers have received. Absent or null: it looks in every stream
   */
  poll(growth?: Growth | null): void;
  /**
   * Calls `listener` after each flushed commit of this process, which may be that of several transactions, with the
   * streams that have grown or ended by it (empty if it has no events) and the milliseconds that it took. What the
   * listener throws goes to `onListenerError` and affects neither the commit nor other listeners. Returns a function
   * that unsubscribes it.
   */
  onFlushed(listener: (growth: Growth, ms: number) => void): () => void;
  /**
   * Calls `handle` with what a listener of `follow` or `onFlushed` throws; without a handler it becomes a process
   * warning. `handle` must not throw. Returns a function that unsubscribes it.
   */
  onListenerError(handle: (error: unknown) => void): () => void;

  /**
   * Returns the names of partitions that start with `prefix`, after `after`, at most `limit`, in order (by byte). They
   * may include one that has just lost its last record.
   */
  partitions(prefix: string, options?: Pick<RangeOptions, 'after' | 'limit'>): Promise<string[]>;

  /** Rejects unless a read and a write would succeed now; the message says why not. */
  probe(): Promise<void>;
  /**
   * Closes the store. A pending transaction is either committed and resolves, or rejects and has written nothing. Later
   * reads and writes throw or reject, and so does `probe`. No effect when called again.
   */
  close(): Promise<void>;
}
