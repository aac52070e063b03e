/**
 * The bounds at which the store does what it does rarely. Options of the adapter, not of the operator: small ones make
 * tests of it short.
 */
export interface StoreBounds {
  /**
   * The log is rotated when its file is larger than this, in bytes. The file is reused and takes about 100 MB at most,
   * or 133 MB with commits of 1 MB. It grows larger only while a process holds a snapshot of it; at this size it is
   * replaced, so that the snapshot keeps one file from being reused and no more.
   */
  readonly rotateBytes: number;
  /** How often `maintain` checks the size of the log's file, in milliseconds. */
  readonly rotationCheckMs: number;
  /**
   * A checkpoint is due when the log has this much that is not in the base table, in bytes. The larger, the fewer pages
   * are written per comment. Commits are delayed from 1.25 times this on, and wait for a checkpoint from twice this on.
   */
  readonly checkpointBytes: number;
  /** How long a process whose commits must wait for a checkpoint waits for another one to do it, in milliseconds. */
  readonly checkpointWaitMs: number;
  /**
   * `probe` fails when commits have waited longer than this for a checkpoint, in milliseconds. The background worker
   * does one when the log is 5 s old; after this it must be assumed to have failed.
   */
  readonly stalledMs: number;
  /**
   * WAL records in the ring. It is part of the format of the log, although no file has it: all processes that open a
   * store must use one number. A batch takes a quarter of the ring at most.
   */
  readonly ringRecords: number;
  /**
   * A group takes no more transactions once it has this many characters, so that large writes are not all in memory at
   * once.
   */
  readonly groupLength: number;
  /** Maximum number of events in one chunk, so that a read from the middle of a stream decodes little. */
  readonly chunkEvents: number;
  /** Maximum size of a chunk of several events, in bytes, for the same reason. Events can be as long as a megabyte. */
  readonly chunkBytes: number;
  /** Events that a process reads at once from the chunks when it was overtaken by the ring. */
  readonly reloadEvents: number;
  /** Size of the blocks of memory in which a process keeps batches, in bytes. */
  readonly arenaBlockBytes: number;
  /** Maximum number of values of the base table that one process keeps. */
  readonly tableCacheEntries: number;
  /** Bytes of rendered lists and settings that one process keeps. */
  readonly valueCacheBytes: number;
}

const MB = 1024 * 1024;

/** The bounds of a server. */
export const DEFAULT_BOUNDS: StoreBounds = {
  rotateBytes: 192 * MB,
  rotationCheckMs: 1_000,
  checkpointBytes: 16 * MB,
  checkpointWaitMs: 250,
  stalledMs: 60_000,
  // 64 MB.
  ringRecords: 32_768,
  groupLength: 4 * MB,
  chunkEvents: 256,
  chunkBytes: 256 * 1024,
  reloadEvents: 1_000,
  arenaBlockBytes: MB,
  tableCacheEntries: 50_000,
  valueCacheBytes: 64 * MB,
};
