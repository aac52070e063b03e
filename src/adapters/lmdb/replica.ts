import type { Entry, EventListener, RangeOptions, StoredEvent } from '../../ports/store.ts';
import { Arena } from './arena.ts';
import { decodeBatch, type EncodedBatch, textOf } from './batch.ts';
import { bytesBetween, endOf, readLog } from './commit-log.ts';
import { type Database, treeKey } from './database.ts';
import { EventLog } from './event-log.ts';
import { Memo } from './memo.ts';
import { mergeRange, Overlay } from './overlay.ts';
import { TreeCache } from './tree-cache.ts';

/** Bytes of rendered lists and settings that one process keeps. */
const MEMO_BYTES = 64 * 1024 * 1024;

/** Counts commits of every store in this process: a view read earlier in the turn is old once one has landed. */
let localCommits = 0;

interface Undelivered {
  readonly environmentId: string;
  readonly seq: number;
  /** undefined: nobody listened when it came. */
  readonly text: string | undefined;
  readonly position: number;
}

/**
 * This process's view of the store: the folded tree on disk, and over it, in memory, what the log says since.
 * Everything here is synchronous; `catchUp` brings the view to the end of the log as committed by any process.
 */
export class Replica {
  readonly overlay = new Overlay();
  readonly memo = new Memo(MEMO_BYTES);
  readonly arena = new Arena();
  readonly events: EventLog;
  readonly #database: Database;
  readonly #tree = new TreeCache();
  readonly #followers = new Set<EventListener>();
  #head: number;
  #folded: number;
  #foldedText: string | undefined;
  #dropped: number;
  #flushed: number;
  #backlogSince = 0;
  #undelivered: Undelivered[] = [];
  /** A commit of this process that may be read back from the log before its promise resolves: spares decoding it. */
  #own: { start: number; batch: EncodedBatch } | undefined;
  #freshAt = -1;

  constructor(database: Database) {
    this.#database = database;
    this.events = new EventLog(database);
    this.#foldedText = database.meta.get('folded');
    this.#folded = Number(this.#foldedText ?? 0);
    this.#head = this.#dropped = this.#flushed = this.#folded;
    this.catchUp();
  }

  /** Position after the last commit that this view holds. Positions grow with every commit, by more than one. */
  get head(): number {
    return this.#head;
  }

  /** Everything up to here is in the tree. */
  get folded(): number {
    return this.#folded;
  }

  /** Everything up to here is known to be on disk. */
  get flushed(): number {
    return this.#flushed;
  }

  /** Bytes of log that are not folded yet. */
  get backlogBytes(): number {
    return bytesBetween(this.#folded, this.#head);
  }

  /** Milliseconds since the oldest commit that is not folded was seen. */
  get backlogAge(): number {
    return this.#head === this.#folded ? 0 : performance.now() - this.#backlogSince;
  }

  /**
   * Brings the view up to date, once per turn of the event loop: what a caller of this turn was told of earlier
   * commits, it was told before the turn began.
   */
  refresh(): void {
    if (this.#freshAt !== localCommits) this.renew();
  }

  /** Brings the view up to date now, whatever this turn has seen already. */
  renew(): void {
    this.#database.root.resetReadTxn();
    this.catchUp();
    this.#freshAt = localCommits;
    setImmediate(() => (this.#freshAt = -1));
  }

  /** Reads the log to its end, in the current read transaction or inside a write transaction. */
  catchUp(): void {
    for (;;) {
      const bytes = readLog(this.#database, this.#head, this.arena);
      if (bytes !== undefined) {
        const own = this.#own?.start === this.#head && this.#own.batch.bytes.equals(bytes) ? this.#own.batch : undefined;
        this.#accept(this.#head, own ?? decodeBatch(bytes));
      } else {
        this.#noticeFold();
        if (this.#folded <= this.#head) return;
        this.#startOver();
      }
    }
  }

  /** Takes the commit that begins at `start` into the view. They come in order; one already held is passed over. */
  #accept(start: number, batch: EncodedBatch): void {
    if (start !== this.#head) return;
    if (this.#head === this.#folded) this.#backlogSince = performance.now();
    const position = endOf(start, batch.bytes.byteLength);
    this.#head = position;
    this.arena.note(position);
    for (const partition of batch.writes) {
      this.overlay.apply(partition, position);
      this.#tree.forget(partition.partition, partition.writes);
      this.memo.invalidate(partition.partition);
    }
    for (const { environmentId, seq, slice } of batch.events) {
      this.events.append(environmentId, seq, slice, position);
      this.#undelivered.push({ environmentId, seq, text: this.#followers.size > 0 ? textOf(slice) : undefined, position });
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
  }

  get(partition: string, key: string): string | undefined {
    const slot = this.overlay.get(partition, key);
    if (slot === undefined) return this.#tree.get(partition, key, () => this.#database.tree.get(treeKey(partition, key)));
    return slot.slice === undefined ? undefined : textOf(slot.slice);
  }

  range(partition: string, options: RangeOptions): Entry[] {
    return mergeRange(this.#treeRange(partition, options), this.overlay.slots(partition), options);
  }

  /** Whether a key may have been written after `position`. */
  changedSince(partition: string, key: string, position: number): boolean {
    if (position < this.#dropped) return true;
    const slot = this.overlay.get(partition, key);
    return slot !== undefined && slot.position > position;
  }

  /** Records were removed from the tree itself, past the log: nothing that was read of them counts any more. */
  forgetTree(): void {
    this.#tree.clear();
    this.memo.clear();
  }

  /** Everything up to `position` is on disk: the events until there go to the followers. */
  markFlushed(position: number): void {
    if (position <= this.#flushed) return;
    this.#flushed = position;
    const ready = this.#undelivered.findIndex((waiting) => waiting.position > position);
    const due = ready < 0 ? this.#undelivered : this.#undelivered.slice(0, ready);
    this.#undelivered = ready < 0 ? [] : this.#undelivered.slice(ready);
    for (const { environmentId, seq, text } of due) {
      if (seq <= this.events.lastFlushed(environmentId)) continue;
      this.events.markFlushed(environmentId, seq);
      if (this.#followers.size === 0) continue;
      const event = text === undefined ? this.events.read(environmentId, seq - 1, 1)[0] : { seq, text };
      if (event !== undefined) this.#tell(environmentId, event);
    }
  }

  follow(listener: EventListener): () => void {
    this.#followers.add(listener);
    return () => this.#followers.delete(listener);
  }

  #tell(environmentId: string, event: StoredEvent): void {
    for (const listener of this.#followers) listener(environmentId, event);
  }

  #noticeFold(): void {
    const text = this.#database.meta.get('folded');
    if (text === this.#foldedText) return;
    this.#foldedText = text;
    // What was folded before stays one fold longer: transactions that began meanwhile are checked against it.
    if (this.#head >= this.#folded) this.#drop(this.#folded);
    this.#folded = Number(text);
    this.#backlogSince = performance.now();
  }

  #drop(position: number): void {
    this.#dropped = position;
    this.overlay.drop(position);
    this.events.drop(position);
    this.arena.release(position);
  }

  /** This process was away so long that the log has moved past it: the tree is the view now. */
  #startOver(): void {
    this.overlay.clear();
    this.#tree.clear();
    this.memo.clear();
    this.#undelivered = [];
    this.#head = this.#dropped = this.#folded;
    const missed = [...this.events.catchUpFromSegments()];
    this.arena.release(this.#folded);
    for (const [environmentId, event] of missed) this.#tell(environmentId, event);
  }

  *#treeRange(partition: string, { prefix = '', after, reverse, limit }: RangeOptions): Iterable<Entry> {
    const low = treeKey(partition, prefix);
    // Keys are below 0x7f, so this is past every key with the prefix.
    const high = `${low}\u007f`;
    const past = after === undefined ? undefined : treeKey(partition, after);
    const skip = partition.length + 1;
    const hidden = this.overlay.slots(partition)?.size ?? 0;
    const bounded = limit === undefined ? {} : { limit: limit + hidden + 1 };
    const range = reverse === true ? { start: past ?? high, end: low, reverse, ...bounded } : { start: past ?? low, end: high, ...bounded };
    for (const { key, value } of this.#database.tree.getRange(range)) {
      if (key !== past) yield { key: key.slice(skip), value };
    }
  }
}
