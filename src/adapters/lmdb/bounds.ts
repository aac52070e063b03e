/** The bounds at which the store does what it does rarely. Options of the adapter, not of the operator: small ones make tests of it short. */
export interface StoreBounds {
  /**
   * The log is rotated when its file is larger than this, in bytes. The file is reused and takes about 100 MB at most, or
   * 133 MB with commits of 1 MB. It grows larger only while a process holds a snapshot of it; at this size it is replaced, so
   * that the snapshot keeps one file from being reused and no more.
   */
  readonly rotateBytes: number;
  /** How often `maintain` checks the size of the log's file, in milliseconds. */
  readonly rotationCheckMs: number;
  /**
   * A checkpoint is due when the log has this much that is not in the base table, in bytes. The larger, the fewer pages are
   * written per comment. Commits are delayed from 1.25 times this on, and wait for a checkpoint from twice this on.
   */
  readonly checkpointBytes: number;
  /**
   * `probe` fails when commits have waited longer than this for a checkpoint, in milliseconds. The background worker does one
   * when the log is 5 s old; after this it must be assumed to have failed.
   */
  readonly stalledMs: number;
}

const MB = 1024 * 1024;

/** The bounds of a server. */
export const DEFAULT_BOUNDS: StoreBounds = { rotateBytes: 192 * MB, rotationCheckMs: 1_000, checkpointBytes: 16 * MB, stalledMs: 60_000 };
