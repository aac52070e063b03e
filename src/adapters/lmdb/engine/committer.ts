import { setImmediate as turn } from 'node:timers/promises';
import { CollabError } from '../../../model/errors.ts';
import { type Batch, encodeBatch, type LoggedEvent, STREAM_END } from './batch.ts';
import { refusalOf } from '../env/commit-failure.ts';
import { appendToLog, endOf, hasRoom, LARGEST_BATCH_BYTES, LogRotated } from './commit-log.ts';
import type { Database } from '../env/database.ts';
import type { LogEnvironment } from '../env/log-file.ts';
import type { StoreView } from './store-view.ts';
import type { LmdbTransaction } from './transaction.ts';

/** What became of a transaction: on disk, to be run again, or refused by one of its own updates. */
export type CommitOutcome = { readonly kind: 'committed' } | { readonly kind: 'conflict' } | { readonly kind: 'failed'; readonly error: unknown };

interface Waiting {
  readonly transaction: LmdbTransaction;
  readonly settle: (outcome: CommitOutcome) => void;
  outcome: CommitOutcome;
}

/** What the committer needs of the store. */
interface Surroundings {
  /** A commit is on disk up to this position, and took so many milliseconds. */
  flushed(position: number, ms: number): void;
  /** Resolves when the next group may be written: at once, unless the fold can't keep up. */
  pace(): Promise<void> | undefined;
  /** Resolves once the log, which is full, has been folded. */
  makeRoom(): Promise<void>;
}

/** A group takes no more transactions once it has this many characters: large writes go one by one, not all at once. */
const GROUP_LENGTH = 4 * 1024 * 1024;

/** Turns of the event loop that a group waits for others to join it. */
const MOST_TURNS = 5;

/** The log would run into what is not folded yet. */
class LogFull extends Error {}

/**
 * Group commit: the transactions that arrive while one commit is written and flushed form the next. A group is one
 * record in the log; each of its transactions is checked against everything committed before it and against those
 * before it in the group, and none is written by half.
 */
export class Committer {
  readonly #database: Database;
  readonly #view: StoreView;
  readonly #surroundings: Surroundings;
  #queue: Waiting[] = [];
  #running: Promise<void> | undefined;

  constructor(database: Database, view: StoreView, surroundings: Surroundings) {
    this.#database = database;
    this.#view = view;
    this.#surroundings = surroundings;
  }

  /** Resolves once the transaction is flushed to disk, or refused. */
  commit(transaction: LmdbTransaction): Promise<CommitOutcome> {
    return new Promise((settle) => {
      this.#queue.push({ transaction, settle, outcome: { kind: 'committed' } });
      this.#running ??= this.#run();
    });
  }

  /** Resolves when nothing is left to commit. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      await this.#gather();
      await this.#surroundings.pace();
      const group = this.#queue;
      this.#queue = [];
      const left = await this.#commitGroup(group);
      for (const { settle, outcome } of group.slice(0, group.length - left)) settle(outcome);
      if (left > 0) this.#queue.unshift(...group.slice(group.length - left));
    }
    this.#running = undefined;
  }

  /**
   * Lets others join the next group, for as long as they come, a few turns of the event loop at most: those that were just
   * answered ask for more, and one group of 64 costs a good deal less than two of 32 that take turns.
   */
  async #gather(): Promise<void> {
    await turn();
    for (let turns = 1, length = 0; turns < MOST_TURNS && this.#queue.length > length; turns++) {
      length = this.#queue.length;
      await turn();
    }
  }

  /** Commits a group and gives each of it its outcome, but for the last ones, which must wait; returns how many those are. */
  async #commitGroup(group: Waiting[]): Promise<number> {
    const staged = new Staged(this.#view);
    const begun = performance.now();
    try {
      const { log } = this.#database;
      const position = await log.transaction(() => this.#write(log, group, staged));
      this.#view.settleOwn(true);
      if (position === undefined) return group.length - staged.taken;
      this.#surroundings.flushed(position, performance.now() - begun);
    } catch (error) {
      this.#view.settleOwn(false);
      if (error instanceof LogRotated) {
        this.#view.renew();
        return group.length;
      }
      if (error instanceof LogFull && (await this.#makeRoom(group))) return group.length;
      if (!(error instanceof LogFull)) fail(group.slice(0, staged.taken), refusalOf(error, this.#database.path));
    }
    return group.length - staged.taken;
  }

  /** Returns whether there is room now; if not, the group has failed. */
  async #makeRoom(group: readonly Waiting[]): Promise<boolean> {
    try {
      await this.#surroundings.makeRoom();
      return true;
    } catch (error) {
      fail(group, refusalOf(error, this.#database.path));
      return false;
    }
  }

  /** Inside the write transaction of `log`: decides, and appends the group. Returns the position after it; undefined when nothing was written. */
  #write(log: LogEnvironment, group: Waiting[], staged: Staged): number | undefined {
    // Reads have led on to another log since this transaction was asked for.
    if (log !== this.#database.log) throw new LogRotated(this.#database.generation);
    this.#view.catchUp();
    for (const waiting of group) {
      if (staged.length >= GROUP_LENGTH) break;
      waiting.outcome = staged.take(waiting.transaction);
    }
    const batch = staged.batch();
    if (batch.writes.size === 0 && batch.events.length === 0) return undefined;
    const encoded = encodeBatch(batch, this.#view.arena);
    if (encoded.bytes.byteLength > LARGEST_BATCH_BYTES) throw new Error(`a commit of ${encoded.bytes.byteLength} bytes does not fit into the log`);
    const start = this.#view.head;
    const end = endOf(start, encoded.bytes.byteLength);
    if (!hasRoom(this.#view.checkpointed, end)) throw new LogFull();
    this.#view.expectOwn(encoded);
    appendToLog(log, start, encoded.bytes);
    return end;
  }
}

type Writes = Map<string, Map<string, string | undefined>>;

/** What one operation of a transaction comes to. */
interface Decided {
  readonly partition: string;
  readonly key: string;
  readonly value: string | undefined;
}

/** What a group has decided to write so far, on top of the committed view. */
class Staged {
  /** Transactions decided so far. */
  taken = 0;
  /** Characters to write so far, about. */
  length = 0;
  readonly #view: StoreView;
  readonly #writes: Writes = new Map();
  readonly #events: LoggedEvent[] = [];
  readonly #lastSeq = new Map<string, number>();

  constructor(view: StoreView) {
    this.#view = view;
  }

  /** Applies a transaction whole, or not at all. */
  take(transaction: LmdbTransaction): CommitOutcome {
    this.taken++;
    for (const { partition, key, position } of transaction.reads) {
      if (this.#writes.get(partition)?.has(key) === true || this.#view.changedSince(partition, key, position)) return { kind: 'conflict' };
    }
    try {
      const writes = this.#evaluate(transaction);
      const events = this.#stamp(transaction);
      for (const write of writes) this.#place(write);
      for (const event of events) {
        this.#events.push(event);
        this.#lastSeq.set(event.stream, event.seq);
      }
      return { kind: 'committed' };
    } catch (error) {
      return { kind: 'failed', error };
    }
  }

  batch(): Batch {
    return { writes: this.#writes, events: this.#events };
  }

  #evaluate(transaction: LmdbTransaction): Decided[] {
    const decided: Decided[] = [];
    for (const { partition, key, value, change } of transaction.operations) {
      decided.push({ partition, key, value: change === undefined ? value : change(this.#current(decided, partition, key)) });
    }
    return decided;
  }

  /** A value as the transaction's own earlier operations, those before it in the group, or the committed view have it. */
  #current(decided: readonly Decided[], partition: string, key: string): string | undefined {
    const own = decided.findLast((other) => other.key === key && other.partition === partition);
    if (own !== undefined) return own.value;
    const staged = this.#writes.get(partition);
    return staged?.has(key) === true ? staged.get(key) : this.#view.get(partition, key);
  }

  #place({ partition, key, value }: Decided): void {
    const values = this.#writes.get(partition);
    if (values === undefined) this.#writes.set(partition, new Map<string, string | undefined>().set(key, value));
    else values.set(key, value);
    this.length += value?.length ?? 0;
  }

  #stamp(transaction: LmdbTransaction): LoggedEvent[] {
    const stamped: LoggedEvent[] = [];
    for (const { stream, render } of transaction.events) {
      const last = stamped.findLast((other) => other.stream === stream)?.seq ?? this.#lastSeq.get(stream) ?? this.#committedLast(stream);
      const seq = render === null ? STREAM_END : last + 1;
      if (last !== STREAM_END) stamped.push({ stream, seq, text: render?.(seq) ?? '' });
      else if (render !== null) throw new CollabError('environment_not_found', 'The environment has been deleted');
    }
    return stamped;
  }

  #committedLast(stream: string): number {
    const { events } = this.#view;
    return events.hasEnded(stream) ? STREAM_END : events.last(stream);
  }
}

/** Whoever would have been committed has not been. */
function fail(group: readonly Waiting[], error: unknown): void {
  const failure: CommitOutcome = { kind: 'failed', error };
  for (const waiting of group) if (waiting.outcome.kind === 'committed') waiting.outcome = failure;
}
