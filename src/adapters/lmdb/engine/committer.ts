import { setImmediate as nextIteration } from 'node:timers/promises';
import type { Growth } from '../../../ports/store.ts';
import { encodeBatch } from './batch.ts';
import { storeErrorOf } from '../env/commit-failure.ts';
import { appendToLog, endOf, hasSpace, largestBatchBytes, LogRotated } from './commit-log.ts';
import { type CommitOutcome, CommitGroup } from './commit-group.ts';
import type { Database } from '../env/database.ts';
import type { LogFile } from '../env/log-file.ts';
import type { StoreView } from './store-view.ts';
import type { LmdbTransaction } from './transaction.ts';

interface PendingCommit {
  readonly transaction: LmdbTransaction;
  readonly resolve: (outcome: CommitOutcome) => void;
  outcome: CommitOutcome;
}

/** Calls from the committer to the store. */
export interface CommitterHooks {
  /** Called when a commit is on disk, with the streams that it made grow and the milliseconds that it took. */
  flushed(growth: Growth, ms: number): void;
  /** Resolves when the next group may be written; undefined if it may be written now. Never rejects. */
  throttle(): Promise<void> | undefined;
  /** Called when the log is full; resolves after a checkpoint. */
  freeLogSpace(): Promise<void>;
}

/** Event loop iterations that a group waits, at most, for more transactions to join it. */
const MAX_GATHER_ITERATIONS = 5;

/** The group would overwrite what is not in the base table yet. */
class LogFull extends Error {}

/**
 * Group commit: the transactions that arrive while one commit is written and flushed form the next. A group is one
 * batch in the log. Each of its transactions is validated against everything committed before it and against the
 * transactions before it in the group, and is written completely or not at all.
 */
export class Committer {
  readonly #database: Database;
  readonly #view: StoreView;
  readonly #hooks: CommitterHooks;
  #queue: PendingCommit[] = [];
  #running: Promise<void> | undefined;

  constructor(database: Database, view: StoreView, hooks: CommitterHooks) {
    this.#database = database;
    this.#view = view;
    this.#hooks = hooks;
  }

  /** Resolves once the transaction is flushed to disk or refused. Never rejects. */
  commit(transaction: LmdbTransaction): Promise<CommitOutcome> {
    return new Promise((resolve) => {
      this.#queue.push({ transaction, resolve, outcome: { kind: 'committed' } });
      this.#running ??= this.#run();
    });
  }

  /** Whether a commit is pending. */
  get isBusy(): boolean {
    return this.#running !== undefined;
  }

  /** Resolves when no commit is pending. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      await this.#gather();
      await this.#hooks.throttle();
      const group = this.#queue;
      this.#queue = [];
      const settled = await this.#commitOrFail(group);
      for (const { resolve, outcome } of group.slice(0, settled)) resolve(outcome);
      if (settled < group.length) this.#queue.unshift(...group.slice(settled));
    }
    this.#running = undefined;
  }

  /**
   * Lets more transactions join the next group, for as long as they arrive, for a few event loop iterations at most:
   * clients that were just answered send their next request, and one group of 64 costs much less than two alternating
   * groups of 32.
   */
  async #gather(): Promise<void> {
    await nextIteration();
    for (
      let iterations = 1, length = 0;
      iterations < MAX_GATHER_ITERATIONS && this.#queue.length > length;
      iterations++
    ) {
      length = this.#queue.length;
      await nextIteration();
    }
  }

  /**
   * `#commitGroup`, or all of the group has failed: the log could not be read after the commit, or its next file not be
   * opened.
   */
  async #commitOrFail(group: PendingCommit[]): Promise<number> {
    try {
      return await this.#commitGroup(group);
    } catch (error) {
      fail(group, storeErrorOf(error, this.#database.path));
      return group.length;
    }
  }

  /** Commits the first transactions of a group, and returns how many have their outcome now. The others must wait. */
  async #commitGroup(pending: PendingCommit[]): Promise<number> {
    const group = new CommitGroup(this.#view, largestBatchBytes(this.#database.bounds.ringRecords));
    const startedAt = performance.now();
    try {
      const { log } = this.#database;
      const written = await log.transaction(() => this.#write(log, pending, group));
      this.#view.resolveExpected(true);
      if (written) this.#hooks.flushed(group.growth(), performance.now() - startedAt);
      return group.size;
    } catch (error) {
      this.#view.resolveExpected(false);
      return this.#settleUnwritten(pending, group.size, error);
    }
  }

  /**
   * As `#commitGroup`, for a group that was not written: none has an outcome if the group can be written again, as the
   * log was rotated or has space now.
   *
   * @param validated how many of the group were validated before the error
   */
  async #settleUnwritten(pending: readonly PendingCommit[], validated: number, error: unknown): Promise<number> {
    if (error instanceof LogRotated) {
      this.#view.renew();
      return 0;
    }
    if (error instanceof LogFull) return (await this.#freeLogSpace(pending)) ? 0 : validated;
    // If it failed before the first of them was validated, none of them can be committed.
    const failed = validated === 0 ? pending.length : validated;
    fail(pending.slice(0, failed), storeErrorOf(error, this.#database.path));
    return failed;
  }

  /** Returns whether the log has space again; if not, the group has failed. */
  async #freeLogSpace(pending: readonly PendingCommit[]): Promise<boolean> {
    try {
      await this.#hooks.freeLogSpace();
      return true;
    } catch (error) {
      fail(pending, storeErrorOf(error, this.#database.path));
      return false;
    }
  }

  /**
   * Inside the write transaction of `log`: validates the transactions of the group and appends them. Returns whether
   * anything was written.
   */
  #write(log: LogFile, pending: PendingCommit[], group: CommitGroup): boolean {
    // Since this transaction was requested, a read may have moved this process to another generation of the log.
    if (log !== this.#database.log) throw new LogRotated(this.#database.generation);
    this.#view.catchUp();
    for (const commit of pending) {
      if (group.length >= this.#database.bounds.groupLength) break;
      const outcome = group.add(commit.transaction);
      if (outcome === null) break;
      commit.outcome = outcome;
    }
    const batch = group.batch();
    if (batch.writes.size === 0 && batch.events.length === 0) return false;
    const encoded = encodeBatch(batch, this.#view.arena);
    // The group bounds this. If it were written all the same, no process could read the log any more.
    if (encoded.bytes.byteLength > largestBatchBytes(log.ringRecords))
      throw new Error(`a commit of ${encoded.bytes.byteLength} bytes does not fit into the log`);
    const start = this.#view.head;
    const end = endOf(start, encoded.bytes.byteLength);
    if (!hasSpace(log, this.#view.checkpointed, end)) throw new LogFull();
    this.#view.expect(encoded);
    appendToLog(log, start, encoded.bytes);
    return true;
  }
}

/** Sets the outcome of every transaction that would have been committed. */
function fail(pending: readonly PendingCommit[], error: unknown): void {
  const failure: CommitOutcome = { kind: 'failed', error };
  for (const commit of pending) if (commit.outcome.kind === 'committed') commit.outcome = failure;
}
