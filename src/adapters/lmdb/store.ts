import { statfs } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { diskFull } from '../../model/disk-refusal.ts';
import { CollabError } from '../../model/errors.ts';
import { MOVE_KEY, movedRefusal, MOVES } from '../../model/move.ts';
import { ListenerErrors, Listeners } from '../../lib/listeners.ts';
import type { Entry, EventListener, Growth, RangeOptions, Store, StoredEvent, Transaction } from '../../ports/store.ts';
import type { OpenSnapshot, StoreFault, StoreOperations } from '../../ports/store-operations.ts';
import type { StoreBounds } from './bounds.ts';
import { CheckpointPacer } from './engine/checkpoint-pacer.ts';
import { Committer } from './engine/committer.ts';
import { storeErrorOf } from './env/commit-failure.ts';
import { requireNotMoved } from './require-not-moved.ts';
import { upgradeChecksums } from './env/checksum-upgrade.ts';
import { type Database, openDatabase } from './env/database.ts';
import { checkpoint } from './engine/checkpoint.ts';
import { findFaults } from './engine/integrity.ts';
import { logBytes, recordRotation, rotateLog } from './engine/log-rotation.ts';
import { partitionNames } from './engine/partition-names.ts';
import { StoreView } from './engine/store-view.ts';
import { Snapshots } from './engine/snapshots.ts';
import { LmdbTransaction } from './engine/transaction.ts';

/** How `openLmdbStore` opens a store. */
export interface LmdbStoreOptions {
  /** Folder of the database; created if it is missing. */
  readonly path: string;
  /** Writes are refused while the disk has less free space than this, in bytes. */
  readonly minFreeBytes: number;
  /** Bounds that differ from `DEFAULT_BOUNDS`; for tests. */
  readonly bounds?: Partial<StoreBounds> | undefined;
  /** Opens at the last flushed commit, as after a power cut. Only for a copy that no other process has open. */
  readonly lastFlushed?: boolean | undefined;
}

const ATTEMPTS = 12;
const FREE_SPACE_CHECK_MS = 1_000;

/**
 * Opens the LMDB store in `path`, or creates it. Any number of processes may have it open. A commit appends one batch
 * to a write-ahead log; a checkpoint moves the log into an ordered table now and then
 * (docs/decisions/0001-log-first-store.md).
 *
 * @throws {EngineError} if it was moved to another store, or is the target of an unfinished move
 */
export async function openLmdbStore(options: LmdbStoreOptions): Promise<LmdbStore> {
  const store = new LmdbStore(await openDatabase(options.path, options), options);
  try {
    requireNotMoved(options.path, await store.get(MOVES, MOVE_KEY));
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** The Store on LMDB. */
export class LmdbStore implements Store, StoreOperations {
  readonly epoch: string;
  readonly #database: Database;
  readonly #options: LmdbStoreOptions;
  readonly #view: StoreView;
  readonly #pacer: CheckpointPacer;
  readonly #committer: Committer;
  readonly #faults = new ListenerErrors();
  readonly #flushListeners = new Listeners<[growth: Growth, ms: number]>(this.#faults.report);
  readonly #snapshots: Snapshots;
  readonly #bounds: StoreBounds;
  #rotateAfter = Number.NEGATIVE_INFINITY;
  #checkpointing: Promise<void> | undefined;
  #spaceCheckedAt = Number.NEGATIVE_INFINITY;
  #full = false;
  #closed = false;

  constructor(database: Database, options: LmdbStoreOptions) {
    this.epoch = database.epoch;
    this.#database = database;
    this.#options = options;
    this.#bounds = database.bounds;
    this.#snapshots = new Snapshots(database);
    this.#view = new StoreView(database, this.#faults.report);
    this.#pacer = new CheckpointPacer(this.#view, this.#bounds, () => this.checkpoint());
    this.#committer = new Committer(database, this.#view, {
      flushed: (growth, ms) => this.#flushListeners.call(growth, ms),
      throttle: () => this.#pacer.throttle(),
      freeLogSpace: () => this.#pacer.waitForCheckpoint(),
    });
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
      const transaction = new LmdbTransaction(this.#view, this);
      this.#refresh();
      const result = await work(transaction);
      if (!transaction.writes) return result;
      if (performance.now() - this.#spaceCheckedAt > FREE_SPACE_CHECK_MS) await this.#checkSpace();
      if (this.#full) throw diskFull();
      this.#requireOpen();
      const outcome = await this.#committer.commit(transaction);
      if (outcome.kind === 'committed') return result;
      if (outcome.kind === 'failed') throw outcome.error;
      if (attempt > 1 && attempt < ATTEMPTS) await delay(Math.random() * 2 ** attempt);
    }
    throw new CollabError(
      'write_conflict',
      'Too many changes at once to the same records: nothing was written, try again',
    );
  }

  cached<T>(key: string, partitions: readonly string[], compute: () => Promise<T>): Promise<T> {
    this.#refresh();
    return this.#view.valueCache.get(key, partitions, compute);
  }

  lastSeq(stream: string): Promise<number> {
    this.#refresh();
    return Promise.resolve(this.#view.events.last(stream));
  }

  oldestSeq(stream: string): Promise<number> {
    this.#refresh();
    return Promise.resolve(this.#view.events.oldest(stream));
  }

  events(stream: string, since: number, limit: number, maxChars = Infinity): Promise<StoredEvent[]> {
    this.#refresh();
    return Promise.resolve(this.#view.events.read(stream, since, limit, maxChars));
  }

  async trimEvents(stream: string, seq: number): Promise<void> {
    await this.checkpoint();
    await this.#database.root.transaction(() => this.#view.events.trim(stream, seq));
  }

  follow(listener: EventListener): () => void {
    return this.#view.follow(listener);
  }

  /** As `StoreView.onWrites`. */
  onWrites(listener: (partition: string | null) => void): void {
    this.#view.onWrites(listener);
  }

  poll(growth: Growth | null = null): void {
    if (!this.#closed && !this.#view.has(growth)) this.#view.renew();
  }

  onFlushed(listener: (growth: Growth, ms: number) => void): () => void {
    return this.#flushListeners.add(listener);
  }

  onListenerError(handle: (error: unknown) => void): () => void {
    return this.#faults.add(handle);
  }

  partitions(prefix: string, { after, limit }: Pick<RangeOptions, 'after' | 'limit'> = {}): Promise<string[]> {
    this.#refresh();
    return Promise.resolve(
      partitionNames(this.#database, this.#view, prefix, after ?? '', limit ?? Number.POSITIVE_INFINITY),
    );
  }

  expireOnInput(): () => void {
    return this.#view.expireOnInput();
  }

  releaseSnapshot(): void {
    if (!this.#closed) this.#view.release();
  }

  openSnapshots(): OpenSnapshot[] {
    this.#refresh();
    return this.#snapshots.list();
  }

  killHolder(snapshot: OpenSnapshot): boolean {
    this.#requireOpen();
    return this.#snapshots.killHolder(snapshot);
  }

  async maintain(): Promise<void> {
    this.#requireOpen();
    this.#snapshots.freeDeadReaders();
    this.poll();
    if (this.#pacer.isDue) await this.checkpoint();
    await this.#rotateWhenDue();
    await upgradeChecksums(this.#database);
  }

  /** Moves the changes of the log into the base table now. */
  async checkpoint(): Promise<void> {
    this.#requireOpen();
    // Before pages are allocated, and also while there is no background worker to do it.
    this.#snapshots.freeDeadReaders();
    this.#checkpointing ??= checkpoint(this.#database, this.#view).finally(() => (this.#checkpointing = undefined));
    await this.#checkpointing;
  }

  async probe(): Promise<void> {
    this.#refresh();
    await this.#checkSpace();
    if (this.#view.isMoving) throw movedRefusal();
    if (this.#full) throw new CollabError('storage_full', 'The disk has too little free space: writes are refused');
    const waiting = this.#view.backlogAge;
    if (waiting > this.#bounds.stalledMs)
      throw new Error(
        `The store’s log has had no checkpoint for ${Math.round(waiting / 1_000)} s: the background worker fails or is too slow`,
      );
    await this.#database.log.transaction(() => {});
    await this.#database.root.transaction(() => void this.#database.meta.put('probe', String(process.pid)));
  }

  faults(): AsyncIterable<StoreFault> {
    this.#refresh();
    return findFaults(this.#database, () => this.#requireOpen());
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    while (this.#committer.isBusy || this.#checkpointing !== undefined) {
      await this.#committer.idle();
      await this.#checkpointing;
    }
    this.#closed = true;
    this.#pacer.close();
    await this.#database.log.close();
    await this.#database.root.close();
  }

  #refresh(): void {
    this.#requireOpen();
    this.#view.refresh();
  }

  #requireOpen(): void {
    if (this.#closed) throw new Error('The store is closed');
  }

  /**
   * Rotates the log when its file has grown: it would not shrink again after the snapshot that made it grow has ended.
   */
  async #rotateWhenDue(): Promise<void> {
    if (performance.now() < this.#rotateAfter) return;
    this.#rotateAfter = performance.now() + this.#bounds.rotationCheckMs;
    if (logBytes(this.#database) > this.#bounds.rotateBytes) {
      await this.checkpoint();
      await rotateLog(this.#database, this.#view);
    }
    await recordRotation(this.#database);
    this.#snapshots.removeReplaced();
  }

  async #checkSpace(): Promise<void> {
    const { path, minFreeBytes } = this.#options;
    this.#spaceCheckedAt = performance.now();
    try {
      const { bavail, bsize } = await statfs(path);
      this.#full = bavail * bsize < minFreeBytes;
    } catch (error) {
      throw storeErrorOf(error, path);
    }
  }
}
