/**
 * The Store: records, and streams of events, each ordered. Records live in partitions, a partition is an
 * ordered map from key to text. Partition names and keys are printable ASCII (0x21–0x7e), together at most 1 900
 * bytes; values are text, normally JSON. `test/conformance/store.ts` holds every sentence below for every adapter.
 */
export interface Entry {
  readonly key: string;
  readonly value: string;
}

export interface RangeOptions {
  /** Only keys that start with this. */
  readonly prefix?: string | undefined;
  /** Only keys past this one in the direction read, exclusive. */
  readonly after?: string | undefined;
  /** From the last key to the first. */
  readonly reverse?: boolean | undefined;
  /** At most this many entries. */
  readonly limit?: number | undefined;
}

/**
 * A read sees every commit of every process that was made before the current callback of the event loop began: so it sees
 * whatever the sender of the bytes that the callback handles was told before it sent them.
 */
export interface Reader {
  /** The value, or undefined where there is none. */
  get(partition: string, key: string): Promise<string | undefined>;
  /** The entries of a partition, ordered by key (by byte). */
  range(partition: string, options?: RangeOptions): Promise<Entry[]>;
}

/** Gives the text of an event once its position is known. Called at commit, maybe more than once: no side effects. */
export type RenderEvent = (seq: number) => string;

export interface Transaction extends Reader {
  /**
   * As `Reader.get`, and remembered: if another transaction's `put` or `delete` of this key commits before this one,
   * this one runs again. A key changed only by `update` conflicts just the same.
   */
  get(partition: string, key: string): Promise<string | undefined>;
  /** As `Reader.range`. Ranges are not guarded: to be safe, `get` a key that every writer of the range updates. */
  range(partition: string, options?: RangeOptions): Promise<Entry[]>;
  put(partition: string, key: string, value: string): void;
  delete(partition: string, key: string): void;
  /**
   * Changes a value as it stands at commit, without making the transaction depend on it: the way of counters, so that
   * busy records don't conflict. `change` is synchronous, has no side effects and may be called more than once;
   * undefined stands for absent, both ways. Of several updates of one key in one transaction all apply, in order.
   */
  update(partition: string, key: string, change: (current: string | undefined) => string | undefined): void;
  /**
   * Appends an event to a stream, which begins with its first event; positions are assigned at commit, in the order of the
   * calls. The names of streams obey the rules for those of partitions. `environment_not_found` when the stream has ended by then.
   */
  emit(stream: string, render: RenderEvent): void;
  /** Ends a stream: its events are gone with the commit, and it takes no others. Its name is never used again. */
  endStream(stream: string): void;
}

export interface StoredEvent {
  readonly seq: number;
  readonly text: string;
}

/**
 * Receives each flushed event of every stream once, in order of `seq` per stream, without a gap; and null when a stream has
 * ended, whose last events it may not have received.
 */
export type EventListener = (stream: string, event: StoredEvent | null) => void;

/** A snapshot that another process holds: what it shows takes space that commits could use again. */
export interface OpenSnapshot {
  readonly table: 'log' | 'tree';
  readonly pid: number;
  /** Program and first argument, such as `collab tail`; null where the system does not tell. */
  readonly command: string | null;
  /** Whether the process has been stopped (SIGSTOP, Ctrl-Z). */
  readonly stopped: boolean;
  /** Milliseconds for which it has been seen. */
  readonly heldMs: number;
}

export interface Store extends Reader {
  /** Names this log. Another value after a restore: positions of the old epoch mean nothing in the new. */
  readonly epoch: string;

  /**
   * Read, decide, commit. `work` reads through `tx` and buffers its writes there; nothing is visible before the commit,
   * which applies all or nothing and stamps event positions (1, 2, 3 … per stream, gapless). If what it read has
   * changed meanwhile, `work` runs again (at most 12 times, with jitter), so it must have no effect but through `tx`.
   * Reads of `tx` do not see its own buffered writes.
   *
   * Resolves with what `work` returned once the commit is flushed to disk; a transaction that wrote nothing resolves
   * once everything it read is flushed. Rejects with whatever `work` threw, `write_conflict` when the attempts
   * are used up, `storage_full` when the disk is; then nothing was written.
   */
  transact<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;

  /**
   * Keeps what `compute` gives until a record in one of `partitions` changes, in this or another process: the next
   * call after such a change was answered computes again. Bounded in bytes, oldest use out first. `compute` reads only
   * from `partitions`. The value is shared: never change it.
   */
  cached<T>(key: string, partitions: readonly string[], compute: () => Promise<T>): Promise<T>;
  /**
   * What `memo` would give for the key, at once; undefined where it is not known to hold still, and `memo` has to be asked. For
   * what every request needs: a promise costs it as much as a lookup.
   */
  peek<T>(key: string): T | undefined;

  /**
   * Resolves once everything that reads of this process show now is on disk, and in `lastSeq` and `events`. A commit of another
   * process is read at once, and its events are known to be flushed a moment later: this is for who must not miss them.
   */
  settle(): Promise<void>;
  /** Position of the last flushed event of a stream; 0 when there is none, or it has ended. */
  lastSeq(stream: string): Promise<number>;
  /** Position of the oldest event still kept; lastSeq + 1 when none is. */
  oldestSeq(stream: string): Promise<number>;
  /** Events after `since`, in order, at most `limit`, as far as they are kept. Includes only flushed events. */
  events(stream: string, since: number, limit: number): Promise<StoredEvent[]>;
  /** Forgets events up to `seq`, some later ones may stay. The last event is always kept, so that positions go on. */
  trimEvents(stream: string, seq: number): Promise<void>;

  /**
   * Calls `listener` with every event flushed from now on, in any process. What it throws goes to `onFault`, and changes nothing
   * about the commit. Returns the way to stop.
   */
  follow(listener: EventListener): () => void;
  /**
   * Hint that another process may have committed: looks at once and calls the followers.
   * `position` is what that process announced as flushed; without it (a poll) the store makes sure by itself.
   */
  wake(position?: number): void;
  /**
   * Calls `listener` with a position after this process flushed a commit: the moment to hint others; and with how many
   * milliseconds the commit took. What it throws goes to `onFault`. Returns the way to stop.
   */
  onFlushed(listener: (position: number, ms: number) => void): () => void;
  /**
   * Calls `handle` with what a listener of `follow` or `onFlushed` has thrown; the other listeners are called all the same.
   * `handle` must not throw. Without one it becomes a warning of the process. Returns the way to stop.
   */
  onListenerError(handle: (error: unknown) => void): () => void;

  /**
   * The names of partitions that start with `prefix`, past `after`, at most `limit`, in order (by byte). One that has just
   * lost its last record may be among them.
   */
  partitions(prefix: string, options?: Pick<RangeOptions, 'after' | 'limit'>): Promise<string[]>;

  /**
   * Makes reads cheaper for a process that serves requests. Without it, a read sees every commit of any process that was made
   * before the current callback of the event loop began. With it, a read sees every commit that was made before the last call of
   * the function that this returns, and before the last turn of the event loop began. Call that function in every callback that
   * brings bytes of a client, before they are handled: their sender may know of commits that nothing here has seen.
   */
  expireOnInput(): () => void;

  /**
   * Ends the snapshot that this process reads from; the next read takes a new one. While a snapshot is open, the space that
   * commits free is not used again. Call it before a wait in the same turn of the event loop as a read, such as a write to a
   * pipe, and before long computations.
   */
  releaseSnapshot(): void;

  /**
   * The snapshots that other processes hold now. A process that is well holds one for milliseconds: call this again and
   * again, for `heldMs` counts from the first call that has seen it.
   */
  openSnapshots(): OpenSnapshot[];

  /**
   * Does upkeep that is due (moving, trimming, freeing what ended processes have held); called every so often by the
   * background worker, and at once when a process has ended.
   */
  maintain(): Promise<void>;
  /** Throws unless a read and a write would succeed now and upkeep gets done; the message says why not. */
  probe(): Promise<void>;
  /** Flushes and closes. Calls after it reject. */
  close(): Promise<void>;
}
