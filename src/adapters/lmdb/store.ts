import { statfs } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { CollabError } from '../../model/errors.ts';
import { Faults, Listeners } from '../../lib/listeners.ts';
import type { Entry, EventListener, OpenSnapshot, RangeOptions, Store, StoredEvent, Transaction } from '../../ports/store.ts';
import { Committer } from './engine/committer.ts';
import { type Database, openDatabase } from './env/database.ts';
import { checkpoint } from './engine/checkpoint.ts';
import { logBytes, recordMove, ROTATE_BYTES, rotateLog } from './engine/log-rotation.ts';
import { partitionNames } from './engine/partition-names.ts';
import { StoreView } from './engine/store-view.ts';
import { Snapshots } from './engine/snapshots.ts';
import { LmdbTransaction } from './engine/transaction.ts';

export interface LmdbStoreOptions {
  /** Folder of the database; made when absent. */
  readonly path: string;
  /** Writes are refused while the disk has less free space than this, in bytes. */
  readonly minFreeBytes: number;
  /** The log is replaced when its file is larger than this, in bytes; for tests. Default: `ROTATE_BYTES`. */
  readonly rotateBytes?: number | undefined;
  /** `probe` fails when commits have waited longer than this to be folded, in milliseconds; for tests. Default: 60 s. */
  readonly stalledMs?: number | undefined;
  /** Opens at the last flushed commit, as the machine would after a power cut. Only for a copy that nobody else has open. */
  readonly lastFlushed?: boolean | undefined;
}

const ATTEMPTS = 12;
/** Fold when the log holds this much, or this long: the larger, the fewer pages a comment costs. */
const FOLD_BYTES = 16 * 1024 * 1024;
const FOLD_AGE_MS = 5_000;
/**
 * Between this and the next, each group commit waits the longer the fuller the log is, up to so many milliseconds; past
 * the second, it waits until the log is folded. A load that the fold can't keep up with slows down evenly that way.
 */
const SLOW_BYTES = 1.25 * FOLD_BYTES;
const WAIT_BYTES = 2 * FOLD_BYTES;
const SLOWEST_MS = 10;
/** How often a waiting process looks, and how long it waits for the background worker before it folds by itself. */
const WAIT_LOOK_MS = 5;
const PATIENCE_MS = 250;
const FREE_SPACE_CHECK_MS = 1_000;
/** The background worker folds a log that is 5 s old; one that is not folded for so long won't be. */
const STALLED_MS = 60_000;
/** How often the upkeep looks whether the log's file has grown too large. */
const ROTATION_CHECK_MS = 1_000;

/**
 * Opens the LMDB store in `path`, which many processes may have open. A commit appends one record to a log; a
 * fold moves the log into an ordered tree now and then (docs/decisions/0001-log-first-store.md).
 */
export async function openLmdbStore(options: LmdbStoreOptions): Promise<LmdbStore> {
  return new LmdbStore(await openDatabase(options.path, options.lastFlushed), options);
}

export class LmdbStore implements Store {
  readonly epoch: string;
  readonly #database: Database;
  readonly #options: LmdbStoreOptions;
  readonly #view: StoreView;
  readonly #committer: Committer;
  readonly #faults = new Faults();
  readonly #flushListeners = new Listeners<[position: number, ms: number]>(this.#faults.report);
  readonly #snapshots: Snapshots;
  readonly #rotateBytes: number;
  readonly #stalledMs: number;
  #rotateAfter = Number.NEGATIVE_INFINITY;
  #folding: Promise<void> | undefined;
  #waiting: Promise<void> | undefined;
  #spaceCheckedAt = Number.NEGATIVE_INFINITY;
  #full = false;
  #closed = false;

  constructor(database: Database, options: LmdbStoreOptions) {
    this.epoch = database.epoch;
    this.#database = database;
    this.#options = options;
    this.#stalledMs = options.stalledMs ?? STALLED_MS;
    this.#rotateBytes = options.rotateBytes ?? ROTATE_BYTES;
    this.#snapshots = new Snapshots(database);
    this.#view = new StoreView(database, this.#faults.report);
    this.#committer = new Committer(database, this.#view, {
      flushed: (position, ms) => this.#flushListeners.call(position, ms),
      pace: () => this.#pace(),
      makeRoom: () => this.#waitForFold(),
    });
  }

  settle(): Promise<void> {
    this.#refresh();
    return Promise.resolve();
  }

  get(partition: string, key: string): Promise<string | undefined> {
    this.#refresh();
    return Promise.resolve(this.#view.get(partition, key));
  }

  range(partition: string, options: RangeOptions = {}): Promise<Entry[]> {
    this.#refresh();
    return Promise.resolve(this.#view.range(partition, options));
  }

  async transact<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const transaction = new LmdbTransaction(this.#view);
      this.#refresh();
      const result = await work(transaction);
      if (!transaction.writes) return result;
      if (performance.now() - this.#spaceCheckedAt > FREE_SPACE_CHECK_MS) await this.#checkSpace();
      if (this.#full) throw new CollabError('storage_full', 'The server’s disk is full: nothing was written');
      const outcome = await this.#committer.commit(transaction);
      if (outcome.kind === 'committed') return result;
      if (outcome.kind === 'failed') throw outcome.error;
      if (attempt > 1) await delay(Math.random() * 2 ** attempt);
    }
    throw new CollabError('write_conflict', 'Too many changes at once to the same records: nothing was written, try again');
  }

  cached<T>(key: string, partitions: readonly string[], compute: () => Promise<T>): Promise<T> {
    this.#refresh();
    return this.#view.valueCache.get(key, partitions, compute);
  }

  peek<T>(key: string): T | undefined {
    this.#refresh();
    return this.#view.valueCache.recall(key);
  }

  lastSeq(stream: string): Promise<number> {
    this.#refresh();
    return Promise.resolve(this.#view.events.last(stream));
  }

  oldestSeq(stream: string): Promise<number> {
    this.#refresh();
    return Promise.resolve(this.#view.events.oldest(stream));
  }

  events(stream: string, since: number, limit: number): Promise<StoredEvent[]> {
    this.#refresh();
    return Promise.resolve(this.#view.events.read(stream, since, limit));
  }

  async trimEvents(stream: string, seq: number): Promise<void> {
    await this.fold();
    await this.#database.root.transaction(() => this.#view.events.trim(stream, seq));
  }

  follow(listener: EventListener): () => void {
    return this.#view.follow(listener);
  }

  wake(): void {
    if (!this.#closed) this.#view.renew();
  }

  onFlushed(listener: (position: number, ms: number) => void): () => void {
    return this.#flushListeners.add(listener);
  }

  onListenerError(handle: (error: unknown) => void): () => void {
    return this.#faults.add(handle);
  }

  partitions(prefix: string, { after, limit }: Pick<RangeOptions, 'after' | 'limit'> = {}): Promise<string[]> {
    this.#refresh();
    return Promise.resolve(partitionNames(this.#database, this.#view, prefix, after ?? '', limit ?? Number.POSITIVE_INFINITY));
  }

  expireOnInput(): () => void {
    return this.#view.expireOnInput();
  }

  releaseSnapshot(): void {
    if (!this.#closed) this.#view.release();
  }

  openSnapshots(): OpenSnapshot[] {
    this.#refresh();
    return this.#snapshots.look();
  }

  async maintain(): Promise<void> {
    this.#freeDeadReaders();
    this.wake();
    if (this.#view.backlogBytes >= FOLD_BYTES || this.#view.backlogAge >= FOLD_AGE_MS) await this.fold();
    await this.#rotateWhenDue();
  }

  /** Moves what the log holds into the tree now. */
  async fold(): Promise<void> {
    // Before pages are taken, and for the time in which there is no background worker.
    this.#freeDeadReaders();
    this.#folding ??= checkpoint(this.#database, this.#view).finally(() => (this.#folding = undefined));
    await this.#folding;
  }

  async probe(): Promise<void> {
    this.#refresh();
    await this.#checkSpace();
    if (this.#full) throw new CollabError('storage_full', 'The disk has too little free space: writes are refused');
    const waiting = this.#view.backlogAge;
    if (waiting > this.#stalledMs) throw new Error(`The log of the store has not been folded for ${Math.round(waiting / 1_000)} s: the background worker does not get it done`);
    await this.#database.log.transaction(() => {});
    await this.#database.root.transaction(() => void this.#database.meta.put('probe', String(process.pid)));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    await this.#committer.idle();
    await this.#folding;
    this.#closed = true;
    await this.#snapshots.close();
    await this.#database.log.close();
    await this.#database.root.close();
  }

  #refresh(): void {
    if (this.#closed) throw new Error('The store is closed');
    this.#view.refresh();
  }

  /** A process that was killed in the midst of a read keeps its snapshot until somebody looks. */
  #freeDeadReaders(): void {
    if (!this.#closed) this.#snapshots.freeDeadReaders();
  }

  /** Replaces the log when its file has grown: space that is used again after a snapshot has ended stays with the file. */
  async #rotateWhenDue(): Promise<void> {
    if (performance.now() < this.#rotateAfter) return;
    this.#rotateAfter = performance.now() + ROTATION_CHECK_MS;
    if (logBytes(this.#database) > this.#rotateBytes) {
      await this.fold();
      await rotateLog(this.#database, this.#view);
    }
    await recordMove(this.#database);
    await this.#snapshots.removeReplaced();
  }

  async #checkSpace(): Promise<void> {
    this.#spaceCheckedAt = performance.now();
    const { bavail, bsize } = await statfs(this.#options.path);
    this.#full = bavail * bsize < this.#options.minFreeBytes;
  }

  /** What the next group commit has to wait for; undefined when it needn't. Never rejects. */
  #pace(): Promise<void> | undefined {
    const { backlogBytes } = this.#view;
    if (backlogBytes < SLOW_BYTES) return undefined;
    // Where nothing can be folded, such as on a full disk, the log takes what still fits into it.
    if (backlogBytes >= WAIT_BYTES) return this.#waitForFold().catch(() => {});
    return delay(Math.ceil((SLOWEST_MS * (backlogBytes - SLOW_BYTES)) / (WAIT_BYTES - SLOW_BYTES)));
  }

  /** Waits until the log has been folded: by the background worker, or, when it doesn't, by this process. */
  async #waitForFold(): Promise<void> {
    this.#waiting ??= this.#watchForCheckpoint().finally(() => (this.#waiting = undefined));
    await this.#waiting;
  }

  async #watchForCheckpoint(): Promise<void> {
    const { checkpointed } = this.#view;
    for (const begun = performance.now(); performance.now() - begun < PATIENCE_MS; ) {
      await delay(WAIT_LOOK_MS);
      if (this.#closed) return;
      this.#view.renew();
      if (this.#view.checkpointed > checkpointed) return;
    }
    await this.fold();
  }
}
