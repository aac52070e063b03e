/**
 * Blobs: bytes of files, written once and never changed. Names are printable ASCII without slashes or dots at the
 * start, at most 128 characters; `environmentId` keeps tenants apart on disk.
 */
export interface BlobStat {
  readonly size: number;
}

/** Blobs are held as long as it is there. */
export interface BlobHold {
  /** Ends it. Harmless when called again. */
  release(): Promise<void>;
}

/** A file on its way in: nobody sees it before `commit`. */
export interface StagedBlob {
  /** Appends; resolves when the bytes are handed to the operating system: await it before the next write (backpressure). */
  write(chunk: Uint8Array): Promise<void>;
  /** Where the bytes are meanwhile, for a reader of media metadata in the same process. */
  readonly path: string;
  /** Flushes what is written; `commit` then has less to wait for. */
  flush(): Promise<void>;
  /** Flushes, and makes the blob visible under its name, atomically. */
  commit(environmentId: string, name: string): Promise<void>;
  /** Forgets it. Safe to call twice, and after a failure. */
  discard(): Promise<void>;
}

export interface BlobReader {
  /** Reads up to `length` bytes at `offset`; shorter only at the end. */
  read(offset: number, length: number): Promise<Buffer>;
  close(): Promise<void>;
}

export interface Blobs {
  /** Begins a blob. Rejects with `storage_full` when there is too little space, as `write` and `commit` do when it runs out. */
  stage(): Promise<StagedBlob>;
  /** Undefined when there is no such blob. */
  stat(environmentId: string, name: string): Promise<BlobStat | undefined>;
  /** Rejects when there is no such blob. */
  open(environmentId: string, name: string): Promise<BlobReader>;
  /** No effect when it is absent. */
  remove(environmentId: string, name: string): Promise<void>;
  /** Every blob of an environment, in no particular order; none for one that has none. */
  list(environmentId: string): AsyncIterable<string>;
  /** Every environment that has blobs, or has had. */
  environments(): Promise<string[]>;
  /** Removes staged files to which nothing was written for `ageMs`: their upload ended without commit or discard. Returns how many. With `dryRun` only counts them. */
  sweepStaged(ageMs: number, dryRun?: boolean): Promise<number>;
  /**
   * Begins to hold the blobs, in all processes, until it is released or its process has ended: while a backup copies
   * them, whatever a record named at its beginning must stay. A process that stands still for five minutes loses its hold.
   */
  hold(): Promise<BlobHold>;
  /**
   * Whether anybody holds the blobs. Ask after the commit that removed a record and before the blob is removed, so that a
   * hold begins either before that question or after that commit.
   */
  isHeld(): Promise<boolean>;
  /** Removes every blob of an environment. */
  removeAll(environmentId: string): Promise<void>;
}
