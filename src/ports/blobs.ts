/** The size of a blob, in bytes. */
export interface BlobStat {
  readonly size: number;
}

/** How long a retention lease lasts without being renewed, in milliseconds. */
export const RETENTION_TERM_MS = 5 * 60_000;

/** While a retention lease exists, callers remove no blob (`Blobs.retain`). */
export interface RetentionLease {
  /**
   * Makes the lease last for another term. Rejects with `RetentionLostError` if it has ended. What was read until the
   * last call that resolved was retained; call it once more after the last read.
   */
  renew(): Promise<void>;
  /** Ends the lease. No effect when called again, or when it has ended. */
  release(): Promise<void>;
}

/** A retention lease was not renewed in time and has ended: blobs may have been removed since. */
export class RetentionLostError extends Error {
  override readonly name = 'RetentionLostError';

  constructor() {
    super('the retention lease of the files has ended: it was not renewed in time');
  }
}

/** A blob that is being written; it is invisible until `commit`. */
export interface StagedBlob {
  /**
   * Appends. Resolves once the bytes are handed to the operating system: await it before the next write (backpressure).
   */
  write(chunk: Uint8Array): Promise<void>;
  /**
   * As `BlobReader.read`, of the bytes written so far. Call it after the last `write` and before `commit` or `discard`:
   * an adapter may have to complete its upload first.
   */
  read(offset: number, length: number): Promise<Buffer>;
  /** Flushes what has been written, so that `commit` has less to do. */
  flush(): Promise<void>;
  /** Flushes the blob and makes it visible under its name, atomically and durably. */
  commit(): Promise<void>;
  /** Removes what was written. No effect after `commit`, or when called again; also possible after a failure. */
  discard(): Promise<void>;
}

/**
 * An open blob. It stays readable when the blob is removed, except that reads beyond its first 64 KiB may then reject if
 * the store has no open files. They never return bytes of another blob.
 */
export interface BlobReader {
  /** Reads `length` bytes at `offset`, fewer only at the end. */
  read(offset: number, length: number): Promise<Buffer>;
  close(): Promise<void>;
}

/** Returns the name of a blob, or the id of an environment. Throws if `Blobs` does not allow it. */
export function checkedBlobName(name: string): string {
  if (!/^[!-\-0-~][!-.0-~]{0,127}$/.test(name))
    throw new TypeError(`invalid blob name or environment id: ${JSON.stringify(name)}`);
  return name;
}

/**
 * Blobs: the bytes of files, written once and never changed. Names and environment ids are printable ASCII without
 * slashes, spaces or a leading dot, 1 to 128 characters. Blobs of different environments are separate.
 * `test/conformance/blobs.ts` asserts this contract for every adapter.
 */
export interface Blobs {
  /**
   * Begins a blob of this name, which an adapter may need from the first byte on. A name may be staged several times at
   * once: each commit makes its own bytes the blob, and a discard affects no other. Rejects with `storage_full` when the
   * disk has too little space, as `write`, `flush` and `commit` do when it is full; all of them reject with
   * `storage_failed` on an I/O error, or `storage_unavailable` while a store on another machine cannot be reached.
   */
  stage(environmentId: string, name: string): Promise<StagedBlob>;
  /** Returns undefined if there is no such blob. */
  stat(environmentId: string, name: string): Promise<BlobStat | undefined>;
  /** Rejects if there is no such blob. */
  open(environmentId: string, name: string): Promise<BlobReader>;
  /** Removes a blob; no effect if there is none. */
  remove(environmentId: string, name: string): Promise<void>;
  /**
   * Lists the names of all blobs of an environment, in no particular order. Where the lists of a store lag, this one,
   * `environments` and `removeAll` miss blobs that were committed a moment ago, and name blobs that were removed.
   */
  list(environmentId: string): AsyncIterable<string>;
  /** Lists every environment that has blobs, and possibly some that had. */
  environments(): Promise<string[]>;
  /**
   * Removes staged files to which nothing has been written for `ageMs`, or whose upload began so long ago, where the
   * store does not say more: their upload ended without commit or discard.
   * With `dryRun` it only counts them. Returns their number.
   */
  sweepStaged(ageMs: number, dryRun?: boolean): Promise<number>;
  /**
   * Retains the blobs of all processes by a record that ends when it is released, or was not renewed for
   * `RETENTION_TERM_MS`: while a backup copies blobs, those that a record named when it began must stay. An adapter that
   * knows that the process of a lease has ended may end it earlier.
   */
  retain(): Promise<RetentionLease>;
  /**
   * Whether there is a retention lease. A lease ends when a process finds that it has not been renewed for the term: not
   * by a wall clock, which can be set, so a process may have to look twice, a term apart. Call it after the commit that
   * deletes a record and before its blob is removed: then every lease begins either before this check, or after that
   * commit.
   */
  isRetained(): Promise<boolean>;
  /** Removes every blob of an environment. */
  removeAll(environmentId: string): Promise<void>;
}
