import { Faults, Listeners } from '../../../lib/listeners.ts';
import type { Entry, EventListener, RangeOptions, StoredEvent } from '../../../ports/store.ts';
import { Arena } from './arena.ts';
import { decodeBatch, type EncodedBatch, STREAM_END, textOf } from './batch.ts';
import { bytesBetween, endOf, LogRotated, readLog, LogOverwritten } from './commit-log.ts';
import { type Database, checkpointText, moveToLog, tableKey } from '../env/database.ts';
import { EventLog } from './event-log.ts';
import { recordedGeneration } from '../env/log-file.ts';
import { ValueCache } from './value-cache.ts';
import { mergeRange, Memtable } from './memtable.ts';
import { TableCache } from './table-cache.ts';

/** Bytes of rendered lists and settings that one process keeps. */
const MEMO_BYTES = 64 * 1024 * 1024;

/** Reads of one callback after which the view is renewed: a long run of reads must not hold one snapshot of the tree. */
const READS_A_VIEW = 256;

const RESOLVED = Promise.resolve();

/** Counts commits of every store in this process: a view read earlier in the callback is old once one has landed. */
let localCommits = 0;

/**
 * This process's view of the store: the folded tree on disk, and over it, in memory, what the log says since.
 * Everything here is synchronous; `refresh` brings the view to the end of the log as committed by any process.
 */
export class StoreView {
  readonly memtable = new Memtable();
  readonly valueCache = new ValueCache(MEMO_BYTES);
  readonly arena = new Arena();
  readonly events: EventLog;
  readonly #database: Database;
  readonly #table = new TableCache();
  readonly #followers: Listeners<Parameters<EventListener>>;
  #head: number;
  #checkpointed: number;
  #foldedText: string | undefined;
  #dropped: number;
  #backlogSince = 0;
  #undelivered: [stream: string, event: StoredEvent | null][] = [];
  /** A commit of this process that may be read back from the log before its promise resolves: spares decoding it. */
  #own: { start: number; batch: EncodedBatch } | undefined;
  /** `localCommits` when the log was looked at in the current callback of the event loop; -1 when it was not. */
  #freshAt = -1;
  /** Reads since the view was renewed. */
  #reads = 0;
  #expiring = false;
  /** Whether the caller announces input (`expireOnInput`). */
  #inputAnnounced = false;
  readonly #expire = (): void => {
    this.#expiring = false;
    this.release();
  };
  readonly #expireAfterMicrotasks = (): void => process.nextTick(this.#expire);

  /** @param report takes what a follower throws */
  constructor(database: Database, report = new Faults().report) {
    this.#database = database;
    this.#followers = new Listeners(report);
    this.events = new EventLog(database, () => this.openTable());
    this.#foldedText = checkpointText(database);
    this.#checkpointed = Number(this.#foldedText ?? 0);
    this.#head = this.#dropped = this.#checkpointed;
    this.#catchUpWithMoves();
    this.release();
  }

  /** Position after the last commit that this view holds. Positions grow with every commit, by more than one. */
  get head(): number {
    return this.#head;
  }

  /** Everything up to here is in the tree. */
  get checkpointed(): number {
    return this.#checkpointed;
  }

  /** Bytes of log that are not folded yet. */
  get backlogBytes(): number {
    return bytesBetween(this.#checkpointed, this.#head);
  }

  /** Milliseconds since the oldest commit that is not folded was seen. */
  get backlogAge(): number {
    return this.#head === this.#checkpointed ? 0 : performance.now() - this.#backlogSince;
  }

  /**
   * Brings the view up to date with every commit of every process that was made before the current callback of the event
   * loop began. Within one callback and its microtasks only the first call looks.
   */
  refresh(): void {
    if (this.#freshAt !== localCommits || ++this.#reads > READS_A_VIEW) this.#look();
    this.deliver();
  }

  /** Brings the view up to date now, also with what was folded, and calls the followers with what is new. */
  renew(): void {
    // The tree first: the log must not end before what the tree has of it.
    this.#renewTree();
    this.#database.log.resetReadTxn();
    this.#catchUpWithMoves();
    // Nothing else reads the log: a process that is stopped from here on doesn't keep its pages.
    this.#database.log.resetReadTxn();
    this.#keepForCallback();
    this.deliver();
  }

  /** As `Store.expireOnInput`. */
  expireOnInput(): () => void {
    this.#inputAnnounced = true;
    return () => {
      this.#freshAt = -1;
    };
  }

  /** Ends the read transactions; the next read brings the view up to date and begins others. */
  release(): void {
    this.#freshAt = -1;
    this.#database.root.resetReadTxn();
    this.#database.log.resetReadTxn();
  }

  /** Reads the log to its end, in whichever file it goes on. While a write transaction is open, it goes on in no other one. */
  #catchUpWithMoves(): void {
    for (;;) {
      try {
        return this.catchUp();
      } catch (error) {
        if (!(error instanceof LogRotated)) throw error;
        moveToLog(this.#database, error.generation);
      }
    }
  }

  /**
   * Reads the log to its end, in the current read transaction or inside a write transaction. Calls nobody.
   *
   * @throws {LogRotated} when it goes on in another file
   */
  catchUp(): void {
    try {
      this.#readToEnd();
      this.#noticeFold();
    } catch (error) {
      if (!(error instanceof LogOverwritten)) throw error;
      // This process was away so long that the log has moved past it: the tree is the view now.
      this.#renewTree();
      this.#startOver();
      this.#readToEnd();
    }
  }

  /**
   * To be called before a read of the tree or the segments, without a wait between the two. lmdb moves the snapshot of the tree
   * on by itself; where it has a fold that this view doesn't know yet, the log is read at least as far. Calls nobody.
   */
  openTable(): void {
    if (checkpointText(this.#database) === this.#foldedText) return;
    this.#database.log.resetReadTxn();
    this.#catchUpWithMoves();
  }

  /** As `renew`, of the log alone: one record is read where nothing is new. The tree is looked at when it is read (`openTree`). */
  #look(): void {
    this.#database.root.resetReadTxn();
    this.#database.log.resetReadTxn();
    try {
      this.#readToEnd();
    } catch (error) {
      if (!(error instanceof LogOverwritten || error instanceof LogRotated)) throw error;
      this.#catchUpWithMoves();
    }
    this.#database.log.resetReadTxn();
    this.#keepForCallback();
  }

  /**
   * Lets the view count as fresh until the microtasks of the current callback have run. A later callback may handle bytes that
   * were read after this look, and their sender may know of a commit that this look missed. Node runs the microtasks of a
   * callback, then the queue of `nextTick`, before the next callback. Where the caller announces input, the
   * view lasts until then, and at most until the end of the turn of the event loop.
   */
  #keepForCallback(): void {
    this.#freshAt = localCommits;
    this.#reads = 0;
    if (this.#expiring) return;
    this.#expiring = true;
    if (this.#inputAnnounced) setImmediate(this.#expire);
    else void RESOLVED.then(this.#expireAfterMicrotasks);
  }

  #readToEnd(): void {
    for (let bytes = this.#next(); bytes !== undefined; bytes = this.#next()) {
      const own = this.#own?.batch;
      this.#accept(this.#head, own?.bytes === bytes ? own : decodeBatch(bytes));
    }
  }

  #next(): Buffer | undefined {
    return readLog(this.#database.log, this.#head, this.arena, this.#own?.start === this.#head ? this.#own.batch.bytes : undefined);
  }

  /** Moves to the tree as it is now: its snapshot begins with a read. */
  #renewTree(): void {
    this.#database.root.resetReadTxn();
    checkpointText(this.#database);
  }

  /** Takes the commit that begins at `start` into the view. They come in order; one already held is passed over. */
  #accept(start: number, batch: EncodedBatch): void {
    if (start !== this.#head) return;
    if (this.#head === this.#checkpointed) this.#backlogSince = performance.now();
    const position = endOf(start, batch.bytes.byteLength);
    this.#head = position;
    this.arena.note(position);
    for (const partition of batch.writes) {
      this.memtable.apply(partition, position);
      this.#table.forget(partition.partition, partition.keys);
      this.valueCache.invalidate(partition.partition);
    }
    for (const { stream, seq, slot } of batch.events) {
      if (seq === STREAM_END) {
        this.events.end(stream, position);
        this.#undelivered.push([stream, null]);
      } else if (this.events.append(stream, seq, slot, position) && this.#followers.size > 0) {
        this.#undelivered.push([stream, { seq, text: textOf(slot) ?? '' }]);
      }
    }
  }

  /** Names the commit that this process is about to make at the end of the log, so that it is not decoded when read back. */
  expectOwn(batch: EncodedBatch): void {
    this.#own = { start: this.#head, batch };
  }

  /** The expected commit has been made, or has failed. */
  settleOwn(committed: boolean): void {
    const own = this.#own;
    this.#own = undefined;
    if (!committed || own === undefined) return;
    this.#accept(own.start, own.batch);
    localCommits++;
    this.deliver();
  }

  get(partition: string, key: string): string | undefined {
    const slot = this.memtable.get(partition, key);
    return slot === undefined ? this.#table.get(partition, key, () => this.#readTree(partition, key)) : textOf(slot);
  }

  range(partition: string, options: RangeOptions): Entry[] {
    this.openTable();
    return mergeRange(this.#treeRange(partition, options), this.memtable.slots(partition), options);
  }

  /** Whether a key may have been written after `position`. */
  changedSince(partition: string, key: string, position: number): boolean {
    if (position < this.#dropped) return true;
    const slot = this.memtable.get(partition, key);
    return slot !== undefined && slot.position > position;
  }

  /** Calls the followers with the events that they have not had. Not inside a write transaction, whose lock others wait for. */
  deliver(): void {
    if (this.#undelivered.length === 0) return;
    const due = this.#undelivered;
    this.#undelivered = [];
    for (const [stream, event] of due) this.#followers.call(stream, event);
  }

  follow(listener: EventListener): () => void {
    return this.#followers.add(listener);
  }

  #noticeFold(): void {
    const text = checkpointText(this.#database);
    if (text === this.#foldedText) return;
    if (Number(text) > this.#head) throw new LogOverwritten(`the tree has the log up to ${text}, this process read it up to ${this.#head}`);
    this.#foldedText = text;
    // What was folded before stays one fold longer: transactions that began meanwhile are checked against it.
    this.#drop(this.#checkpointed);
    this.#checkpointed = Number(text);
    this.#backlogSince = performance.now();
  }

  #readTree(partition: string, key: string): string | undefined {
    this.openTable();
    const slot = this.memtable.get(partition, key);
    return slot === undefined ? this.#database.table.get(tableKey(partition, key)) : textOf(slot);
  }

  #drop(position: number): void {
    this.#dropped = position;
    this.memtable.drop(position);
    this.events.drop(position);
    this.arena.release(position);
  }

  #startOver(): void {
    this.memtable.clear();
    this.#table.clear();
    this.valueCache.clear();
    this.#foldedText = checkpointText(this.#database);
    this.#checkpointed = Number(this.#foldedText ?? 0);
    this.#head = this.#dropped = this.#checkpointed;
    for (const missed of this.events.catchUpFromSegments()) if (this.#followers.size > 0) this.#undelivered.push(missed);
    this.arena.release(this.#checkpointed);
    // The log that this process has read may have ended before the position that it is at now.
    const generation = recordedGeneration(this.#database);
    if (generation > this.#database.generation) throw new LogRotated(generation);
  }

  *#treeRange(partition: string, { prefix = '', after, reverse, limit }: RangeOptions): Iterable<Entry> {
    const low = tableKey(partition, prefix);
    // Keys are below 0x7f, so this is past every key with the prefix.
    const high = `${low}\u007f`;
    const past = after === undefined ? undefined : tableKey(partition, after);
    const skip = partition.length + 1;
    const hidden = this.memtable.slots(partition)?.size ?? 0;
    const bounded = limit === undefined ? {} : { limit: limit + hidden + 1 };
    const range = reverse === true ? { start: past ?? high, end: low, reverse, ...bounded } : { start: past ?? low, end: high, ...bounded };
    for (const { key, value } of this.#database.table.getRange(range)) {
      if (key !== past) yield { key: key.slice(skip), value };
    }
  }
}
