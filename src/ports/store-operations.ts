/** A part of the stored data that differs from what was written. */
export interface StoreFault {
  /** Identifies it, e.g. by table and key. */
  readonly name: string;
  /** The predicate of a sentence about it, e.g. `is corrupted`. */
  readonly fault: string;
}

/** A snapshot that another process holds: the space of what it shows cannot be reused until it is released. */
export interface OpenSnapshot {
  /** `log`: the write-ahead log; `tree`: the base table. Tools show these names, so they stay. */
  readonly table: 'log' | 'tree';
  readonly pid: number;
  /** Program and first argument, such as `collab tail`; null if the system does not show it. */
  readonly command: string | null;
  /** Whether the process is stopped (SIGSTOP, Ctrl-Z). */
  readonly stopped: boolean;
  /** Milliseconds since the first call of `openSnapshots` that found it. */
  readonly heldMs: number;
  /**
   * Of these, the milliseconds since the process was last seen to use processor time; 0 if the system does not show
   * that.
   */
  readonly idleMs: number;
  /** Bytes by which the file that the snapshot shows has grown since that call. */
  readonly grownBytes: number;
}

/**
 * What an adapter needs from its process, and shows to operators, whose store is a folder of this machine that several
 * processes map into memory. A store that is a server of its own has none of this. The functions of the domain do not
 * need it; workers and the CLI get it as `Context.operations`. After `Store.close`, `maintain`, `faults`,
 * `openSnapshots` and `killHolder` throw or reject; `releaseSnapshot` has no effect.
 */
export interface StoreOperations {
  /**
   * Makes reads cheaper for a process that serves requests. After this call, a read shows every commit that was made
   * before the last call of the returned function, and before the current event loop iteration began, instead of every
   * commit from before the current callback. Call the returned function before handling a request or message of a
   * client that may have begun to arrive after the last call: its sender may know of commits that this process has not
   * seen.
   */
  expireOnInput(): () => void;

  /**
   * Releases the snapshot that reads of this process use; the next read takes a new one. While a snapshot is open, the
   * space that commits free cannot be reused. Call it after a read and before waiting in the same event loop iteration,
   * such as for a write to a pipe, and before long computations.
   */
  releaseSnapshot(): void;

  /** Lists the snapshots that other processes hold now. A healthy process holds one for milliseconds. */
  openSnapshots(): OpenSnapshot[];
  /**
   * Kills (SIGKILL) the process that holds a snapshot. Does so only if the system shows that a process with this id has
   * the file of the store open: ids in the store may be those of another container. Returns whether the signal was
   * sent.
   */
  killHolder(snapshot: OpenSnapshot): boolean;

  /**
   * Does the maintenance that is due, such as freeing what ended processes have held, and looks for commits as
   * `Store.poll` does. Call it several times per second in one process, and whenever a process has ended. If it is not
   * done in time, `Store.probe` rejects.
   */
  maintain(): Promise<void>;
  /**
   * Reads everything that is on disk and yields each fault, also those that no read would show, such as a record that
   * is whole but cannot be found. Takes as long as reading the whole store.
   */
  faults(): AsyncIterable<StoreFault>;
}

/** A process that holds a lock of the store, which is named by its file. */
export interface LockHolder {
  readonly pid: number;
  /** Path of the lock file. */
  readonly file: string;
}

/** Finds the processes that hold locks of the store, without opening it. */
export interface LockHolders {
  /** Those that do at the moment. The ids may be wrong, such as those of another container. */
  find(): readonly LockHolder[];
  /**
   * Kills (SIGKILL) the process if the system confirms that it has the file of the lock open. Returns whether the
   * signal was sent.
   */
  kill(holder: LockHolder): boolean;
}

/** The result of reading a whole store. */
export interface StoreSummary {
  /** Version of the layout. */
  readonly format: number;
  /** As `Store.epoch`. */
  readonly epoch: string;
  readonly environments: number;
  readonly records: number;
  readonly events: number;
  /** Size of the data file. */
  readonly bytes: number;
}

/** Called with one record of a store. */
export type RecordListener = (partition: string, key: string, value: string) => void;

/** The records of a copy that no other process has open. */
export interface CopiedRecords {
  get(partition: string, key: string): string | undefined;
  put(partition: string, key: string, value: string): void;
}

/** Copies a store folder for backups, and works on such copies. Errors of the disk become refusals that name a path. */
export interface StoreCopies {
  /** The only file of a copy. */
  readonly STORE_FILE: string;
  /**
   * Copies the store in folder `path` into the empty folder `to`, as of one moment, while any number of processes read
   * and write it. Resolves once the copy is on disk.
   */
  copyStore(path: string, to: string): Promise<void>;
  /**
   * Migrates a copy to the current format and gives it a new epoch, so that no client resumes in it with positions of
   * the original store. Returns the epoch. The caller flushes the file.
   *
   * @param change changes records of the copy
   */
  renewEpoch(path: string, change?: (records: CopiedRecords) => void): Promise<string>;
  /**
   * Reads every record and event of a copy in folder `path`, which no other process may have open. Leaves no files
   * behind. Rejects when the copy is no store, damaged, or of a newer version.
   *
   * @param onRecord called with each record
   */
  inspectStore(path: string, onRecord?: RecordListener): Promise<StoreSummary>;
}
