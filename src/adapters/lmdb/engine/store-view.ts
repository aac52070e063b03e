import { ListenerErrors } from '../../../lib/listeners.ts';
import type { Entry, EventListener, Growth, RangeOptions } from '../../../ports/store.ts';
import { Arena } from './arena.ts';
import { decodeBatch, type EncodedBatch, STREAM_END, textOf } from './batch.ts';
import { bytesBetween, endOf, LogRotated, readLog, LogOverwritten, requireEnd } from './commit-log.ts';
import { textOfValue } from '../env/checked-value.ts';
import { type Database, checkpointPosition, checkpointText, switchLog, tableKey } from '../env/database.ts';
import { EventDelivery } from './event-delivery.ts';
import { EventLog } from './event-log.ts';
import { Freshness } from './freshness.ts';
import { endLogSnapshot, recordedGeneration } from '../env/log-file.ts';
import { ValueCache } from '../../../lib/value-cache.ts';
import { mergeRange, Memtable } from './memtable.ts';
import { TableCache } from './table-cache.ts';
import { MOVE_KEY, MOVES } from '../../../model/move.ts';

/**
 * One process's view of the store at one position of the log: the base table on disk, and in memory the changes of the
 * log since, with the caches above them. Everything here is synchronous; `refresh` brings the view to the end of the
 * log as committed by any process.
 */
export class StoreView {
  readonly memtable = new Memtable();
  readonly valueCache: ValueCache;
  readonly arena: Arena;
  readonly events: EventLog;
  readonly #database: Database;
  readonly #tableCache: TableCache;
  readonly #delivery: EventDelivery;
  readonly #report: (error: unknown) => void;
  readonly #freshness = new Freshness(() => this.release());
  #head: number;
  #checkpointed: number;
  /** The recorded checkpoint that `#checkpointed` was read from. */
  #checkpointText: string | undefined;
  /** Position up to which the memtable has been dropped. */
  #dropped: number;
  #backlogSince = 0;
  /**
   * A commit of this process that may be read back from the log before its promise resolves: it need not be decoded.
   */
  #expected: { start: number; batch: EncodedBatch } | undefined;
  #isMoving = false;
  #onWrites: (partition: string | null) => void = () => {};

  /** @param report called with what a follower throws, and when a log that was replaced cannot be closed */
  constructor(database: Database, report = new ListenerErrors().report) {
    this.#database = database;
    this.#report = report;
    const { valueCacheBytes, arenaBlockBytes, tableCacheEntries } = database.bounds;
    this.valueCache = new ValueCache(valueCacheBytes);
    this.arena = new Arena(arenaBlockBytes);
    this.#tableCache = new TableCache(tableCacheEntries);
    this.#delivery = new EventDelivery(report);
    this.events = new EventLog(database, () => this.prepareTableRead());
    this.#checkpointText = checkpointText(database);
    this.#checkpointed = checkpointPosition(this.#checkpointText);
    this.#head = this.#dropped = this.#checkpointed;
    this.#catchUpAcrossRotations();
    requireEnd(database.log, this.#head);
    this.#isMoving = this.get(MOVES, MOVE_KEY) !== undefined;
    this.release();
  }

  /** Whether the store refuses writes because it is moved to another one (`model/move.ts`). */
  get isMoving(): boolean {
    return this.#isMoving;
  }

  /** Calls `listener` with each partition that any process writes to; null when some may have been missed. */
  onWrites(listener: (partition: string | null) => void): void {
    this.#onWrites = listener;
  }

  /** Position after the last commit in this view. Positions grow with every commit, by one or more. */
  get head(): number {
    return this.#head;
  }

  /** Position up to which the base table has everything. */
  get checkpointed(): number {
    return this.#checkpointed;
  }

  /** Bytes of the log that are not in the base table. */
  get backlogBytes(): number {
    return bytesBetween(this.#checkpointed, this.#head);
  }

  /** Milliseconds since this process read the oldest commit that is not in the base table; 0 if there is none. */
  get backlogAge(): number {
    return this.#head === this.#checkpointed ? 0 : performance.now() - this.#backlogSince;
  }

  /**
   * Brings the view up to date with every commit of every process that was made before the current callback of the
   * event loop began, and calls the followers with new events. Within one callback and its microtasks only the first
   * call reads the log.
   */
  refresh(): void {
    if (!this.#freshness.countRead()) this.#refreshFromLog();
    this.#delivery.deliver();
  }

  /** Brings the view up to date with the log and the base table now, and calls the followers with new events. */
  renew(): void {
    // The base table first: the log must not end before what the base table has of it.
    this.#renewTableSnapshot();
    endLogSnapshot(this.#database.log);
    this.#catchUpAcrossRotations();
    // Nothing else reads the log: a process that is stopped after this does not keep its pages.
    endLogSnapshot(this.#database.log);
    this.#freshness.start();
    this.#delivery.deliver();
  }

  /** As `StoreOperations.expireOnInput`. */
  expireOnInput(): () => void {
    return this.#freshness.expireOnInput();
  }

  /**
   * Whether this view shows the announced growth, and the followers were called with it; false if that is not known.
   */
  has(growth: Growth | null): boolean {
    if (growth === null || this.#delivery.isBehind) return false;
    return [...growth].every(([stream, seq]) =>
      seq === null ? this.events.hasEnded(stream) : this.events.isKnownUpTo(stream, seq),
    );
  }

  /** Ends the read transactions; the next read brings the view up to date and begins new ones. */
  release(): void {
    this.#freshness.expire();
    this.#database.root.resetReadTxn();
    endLogSnapshot(this.#database.log);
  }

  /**
   * Reads the log to its end, in the current read transaction or inside a write transaction. Does not call the
   * followers.
   *
   * @throws {LogRotated} when it continues in another file
   */
  catchUp(): void {
    try {
      this.#readToEnd();
      this.#applyCheckpoint();
    } catch (error) {
      if (!(error instanceof LogOverwritten)) throw error;
      // This process did not read the log for so long that it has been overwritten: the base table has everything.
      this.#renewTableSnapshot();
      this.#reloadFromTable();
      this.#readToEnd();
    }
  }

  /**
   * Call this right before a read of the base table or the event chunks, in the same synchronous run. lmdb-js renews
   * their snapshot by itself; when it has a checkpoint that this view does not know, the log is read at least as far.
   * Does not call the followers.
   */
  prepareTableRead(): void {
    if (checkpointText(this.#database) === this.#checkpointText) return;
    endLogSnapshot(this.#database.log);
    this.#catchUpAcrossRotations();
  }

  /**
   * Sets the commit that this process is about to make at the end of the log, so that it is not decoded when it is read
   * back.
   */
  expect(batch: EncodedBatch): void {
    this.#expected = { start: this.#head, batch };
  }

  /** Applies the expected commit if it was made; forgets it in any case. */
  resolveExpected(committed: boolean): void {
    const expected = this.#expected;
    this.#expected = undefined;
    if (!committed || expected === undefined) return;
    this.#apply(expected.start, expected.batch);
    this.#freshness.expireAll();
    this.#delivery.deliver();
  }

  /** The value of a record; undefined if there is none. */
  get(partition: string, key: string): string | undefined {
    const encoded = this.memtable.get(partition, key);
    return encoded === undefined
      ? this.#tableCache.get(partition, key, () => this.#readTable(partition, key))
      : textOf(encoded);
  }

  /** As `Reader.range`. */
  range(partition: string, options: RangeOptions): Entry[] {
    this.prepareTableRead();
    return mergeRange(this.#tableRange(partition, options), this.memtable.partition(partition), options);
  }

  /** Whether a key has been written after `position`; true also if that is not known any more. */
  changedSince(partition: string, key: string, position: number): boolean {
    if (position < this.#dropped) return true;
    const encoded = this.memtable.get(partition, key);
    return encoded !== undefined && encoded.position > position;
  }

  /** As `Store.follow`. */
  follow(listener: EventListener): () => void {
    if (!this.#delivery.hasFollowers) this.events.noteLastEvents();
    return this.#delivery.follow(listener);
  }

  /**
   * As `renew`, of the log alone: reads one WAL record if there is nothing new. The base table follows when it is read
   * (`prepareTableRead`).
   */
  #refreshFromLog(): void {
    this.#database.root.resetReadTxn();
    endLogSnapshot(this.#database.log);
    try {
      this.#readToEnd();
    } catch (error) {
      if (!(error instanceof LogOverwritten || error instanceof LogRotated)) throw error;
      this.#catchUpAcrossRotations();
    }
    endLogSnapshot(this.#database.log);
    this.#freshness.start();
  }

  /**
   * As `catchUp`, and switches to the next generation of the log where this one is sealed. Not inside a write
   * transaction.
   */
  #catchUpAcrossRotations(): void {
    for (;;) {
      try {
        return this.catchUp();
      } catch (error) {
        if (!(error instanceof LogRotated)) throw error;
        switchLog(this.#database, error.generation, this.#report);
      }
    }
  }

  #readToEnd(): void {
    for (let bytes = this.#readNext(); bytes !== undefined; bytes = this.#readNext()) {
      const expected = this.#expected?.batch;
      this.#apply(this.#head, expected?.bytes === bytes ? expected : decodeBatch(bytes));
    }
  }

  #readNext(): Buffer | undefined {
    return readLog(
      this.#database.log,
      this.#head,
      this.arena,
      this.#expected?.start === this.#head ? this.#expected.batch.bytes : undefined,
    );
  }

  /** Moves to the newest snapshot of the base table. */
  #renewTableSnapshot(): void {
    this.#database.root.resetReadTxn();
    // The new snapshot begins with a read.
    checkpointText(this.#database);
  }

  /** Applies the commit that begins at `start`. Commits come in order; one that the view has already is ignored. */
  #apply(start: number, batch: EncodedBatch): void {
    if (start !== this.#head) return;
    if (this.#head === this.#checkpointed) this.#backlogSince = performance.now();
    const position = endOf(start, batch.bytes.byteLength);
    this.#head = position;
    this.arena.assign(position);
    for (const partition of batch.writes) {
      this.memtable.apply(partition, position);
      this.valueCache.invalidate(partition.partition);
      this.#onWrites(partition.partition);
      if (partition.partition === MOVES) this.#isMoving = this.get(MOVES, MOVE_KEY) !== undefined;
    }
    for (const { stream, seq, encoded } of batch.events) {
      if (seq === STREAM_END) {
        this.events.end(stream, position);
        this.#delivery.add(stream, null);
      } else if (this.events.append(stream, seq, encoded, position) && this.#delivery.hasFollowers) {
        this.#delivery.addEncoded(stream, seq, encoded);
      }
    }
  }

  /** Drops from memory what a checkpoint has written to the base table. */
  #applyCheckpoint(): void {
    const text = checkpointText(this.#database);
    if (text === this.#checkpointText) return;
    const position = checkpointPosition(text);
    if (position > this.#head)
      throw new LogOverwritten(
        `the base table has the log up to ${position}, this process has read it up to ${this.#head}`,
      );
    this.#checkpointText = text;
    // Changes written by the previous checkpoint are kept until now: commits that began in between are validated
    // against them.
    this.#drop(this.#checkpointed);
    this.#checkpointed = position;
    this.#backlogSince = performance.now();
  }

  #readTable(partition: string, key: string): string | undefined {
    this.prepareTableRead();
    const encoded = this.memtable.get(partition, key);
    if (encoded !== undefined) return textOf(encoded);
    const name = tableKey(partition, key);
    const value = this.#database.table.get(name);
    return value === undefined ? undefined : textOfValue(name, value);
  }

  #drop(position: number): void {
    this.#delivery.decode();
    this.#dropped = position;
    this.memtable.drop(position, (partition, keys) => this.#tableCache.delete(partition, keys));
    this.events.drop(position);
    this.arena.release(position);
  }

  /** Drops everything in memory and continues from the last checkpoint. */
  #reloadFromTable(): void {
    this.#delivery.decode();
    this.memtable.clear();
    this.#tableCache.clear();
    this.valueCache.clear();
    this.#checkpointText = checkpointText(this.#database);
    this.#checkpointed = checkpointPosition(this.#checkpointText);
    this.#head = this.#dropped = this.#checkpointed;
    this.#onWrites(null);
    this.#isMoving = this.#database.table.get(tableKey(MOVES, MOVE_KEY)) !== undefined;
    for (const [stream, event] of this.events.reloadFromChunks())
      if (this.#delivery.hasFollowers) this.#delivery.add(stream, event);
    this.arena.release(this.#checkpointed);
    // The generation that this process has read may have ended before the position that it is at now.
    const generation = recordedGeneration(this.#database);
    if (generation > this.#database.generation) throw new LogRotated(generation);
  }

  *#tableRange(partition: string, { prefix = '', after, reverse, limit }: RangeOptions): Iterable<Entry> {
    const low = tableKey(partition, prefix);
    // Characters of keys are below 0x7f, so this is past every key with the prefix.
    const high = `${low}\u007f`;
    const past = after === undefined ? undefined : tableKey(partition, after);
    const skip = partition.length + 1;
    const shadowed = this.memtable.partition(partition)?.size ?? 0;
    const bounded = limit === undefined ? {} : { limit: limit + shadowed + 1 };
    // `after` may be outside of the prefix; and a key may equal the prefix, which is `low`.
    const range =
      reverse === true
        ? { start: past === undefined || past > high ? high : past, end: low, inclusiveEnd: true, reverse, ...bounded }
        : { start: past === undefined || past < low ? low : past, end: high, ...bounded };
    for (const { key, value } of this.#database.table.getRange(range)) {
      if (key !== past) yield { key: key.slice(skip), value: textOfValue(key, value) };
    }
  }
}
