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
