import { setImmediate as nextIteration, setTimeout as delay } from 'node:timers/promises';
import type { Connection } from '../connection.ts';
import { ConnectionLost, faultOf } from '../faults.ts';
import type { Pool } from '../pool.ts';
import { CommitGroup, type CommitOutcome } from './commit-group.ts';
import { newCommitId } from './commit-id.ts';
import { lookUpCommit, type Prepared, prepareCommit, writeCommit } from './commit-sql.ts';
import { commitRefusal } from './refusals.ts';
import type { PostgresTransaction } from './transaction.ts';

interface PendingCommit {
  readonly transaction: PostgresTransaction;
  readonly resolve: (outcome: CommitOutcome) => void;
}

/** What a commit has written. */
export interface Committed {
  readonly id: string;
  readonly group: CommitGroup;
  /** The version of the records that it wrote. */
  readonly xid: string;
}

/** What a commit will write, and the outcomes of the first transactions if it does. */
interface Plan extends Committed {
  readonly outcomes: readonly CommitOutcome[];
}

/** Calls from the committer to the store. */
export interface CommitterHooks {
  /** Throws if the database is not the one that was opened. */
  requireSame(incarnation: string): void;
  /** Called after each commit with the milliseconds that it took. */
  committed(commit: Committed, ms: number): void;
}

/** Event loop iterations that a group waits, at most, for more transactions to join it. */
const MAX_GATHER_ITERATIONS = 5;
/** Milliseconds for which a group that conflicts with others, or loses its connection, is tried again. */
const RETRY_MS = 20_000;
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 250;
/** Milliseconds for a COMMIT, which may wait for a standby. */
const COMMIT_MS = 30_000;

/** What a try to commit has led to: outcomes of the first transactions, or an error. */
type Attempt =
  | { readonly outcomes: readonly CommitOutcome[] }
  | { readonly error: unknown; readonly maybe: boolean; readonly again: boolean };

/**
 * The warning with which a COMMIT succeeds whose wait for a synchronous standby was cancelled: others see it, and a
 * failover may lose it.
 */
const NOT_REPLICATED = '01000';

function unconfirmed(error: unknown): CommitOutcome {
  return { kind: 'failed', error: commitRefusal(error, true) };
}

/** A row to lock was deleted between finding and locking it. */
class IncompleteLocks extends Error {}

/**
 * Group commit: the transactions that arrive while one commit is on its way form the next. A group is one transaction
 * of the database in two round trips: one that locks and reads, and one that writes and commits. Each transaction of the
 * group is validated against what the database has and against those before it in the group.
 */
export class Committer {
  readonly #pool: Pool;
  readonly #hooks: CommitterHooks;
  #queue: PendingCommit[] = [];
  #running: Promise<void> | undefined;

  constructor(pool: Pool, hooks: CommitterHooks) {
    this.#pool = pool;
    this.#hooks = hooks;
  }

  /** Resolves once the transaction is committed or refused. Never rejects. */
  commit(transaction: PostgresTransaction): Promise<CommitOutcome> {
    return new Promise((resolve) => {
      this.#queue.push({ transaction, resolve });
      this.#running ??= this.#run();
    });
  }

  /** Resolves when no commit is pending. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      await this.#gather();
      const group = this.#queue;
      this.#queue = [];
      const outcomes = await this.#commitGroup(group.map(({ transaction }) => transaction));
      for (const [i, outcome] of outcomes.entries()) group[i]?.resolve(outcome);
      if (outcomes.length < group.length) this.#queue.unshift(...group.slice(outcomes.length));
    }
    this.#running = undefined;
  }

  /** Lets more transactions join the next group for as long as they arrive, for a few event loop iterations at most. */
  async #gather(): Promise<void> {
    for (let iterations = 0, length = 0; iterations < MAX_GATHER_ITERATIONS; iterations++) {
      await nextIteration();
      if (this.#queue.length === length) return;
      length = this.#queue.length;
    }
  }

  /** Commits the first transactions of a group, at least one, and returns their outcomes. The others must wait. */
  async #commitGroup(transactions: readonly PostgresTransaction[]): Promise<readonly CommitOutcome[]> {
    const begun = performance.now();
    const deadline = begun + RETRY_MS;
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      const attempt = await this.#attempt(transactions, deadline);
      if ('outcomes' in attempt) return attempt.outcomes;
      const { error, maybe, again } = attempt;
      if (!again || this.#pool.isDown || performance.now() > deadline) {
        // One of them may be what the server refuses.
        if (transactions.length > 1 && faultOf(error) === 'refused') return this.#commitGroup(transactions.slice(0, 1));
        return transactions.map(() => ({ kind: 'failed', error: commitRefusal(error, maybe) }));
      }
      await delay(Math.random() * pause);
    }
  }

  async #attempt(transactions: readonly PostgresTransaction[], deadline: number): Promise<Attempt> {
    const begun = performance.now();
    let sent: Plan | undefined;
    try {
      const outcomes = await this.#pool.use(async (connection) => {
        const { plan, prepared } = await this.#prepare(connection, transactions);
        if (plan.group.isEmpty) {
          await connection.run('rollback');
          return plan.outcomes;
        }
        sent = plan;
        await connection.run(writeCommit(plan.group, prepared.xid, plan.id), COMMIT_MS);
        const outcomes = this.#committed(plan, begun);
        if (connection.warning !== NOT_REPLICATED) return outcomes;
        const error = new ConnectionLost('the wait for a synchronous standby was cancelled');
        return outcomes.map((outcome) => (outcome.kind === 'committed' ? unconfirmed(error) : outcome));
      });
      return { outcomes };
    } catch (error) {
      const fault = faultOf(error);
      if (sent === undefined || fault !== 'lost')
        return {
          error,
          maybe: false,
          again: fault === 'conflict' || fault === 'lost' || error instanceof IncompleteLocks,
        };
      const committed = await this.#lookUp(sent.id, deadline);
      if (committed === true) return { outcomes: this.#committed(sent, begun) };
      return { error, maybe: committed === undefined, again: committed === false };
    }
  }

  /** The first round trip. */
  async #prepare(
    connection: Connection,
    transactions: readonly PostgresTransaction[],
  ): Promise<{ plan: Plan; prepared: Prepared }> {
    const preparation = prepareCommit(transactions);
    const prepared = preparation.parse(await connection.run(preparation.sql));
    this.#hooks.requireSame(prepared.incarnation);
    if (!prepared.isComplete) throw new IncompleteLocks();
    const group = new CommitGroup(prepared);
    const outcomes: CommitOutcome[] = [];
    for (const transaction of transactions) {
      const outcome = group.add(transaction);
      if (outcome === null) break;
      outcomes.push(outcome);
    }
    return { plan: { id: newCommitId(), group, xid: prepared.xid, outcomes }, prepared };
  }

  #committed(plan: Plan, begun: number): readonly CommitOutcome[] {
    this.#hooks.committed(plan, performance.now() - begun);
    return plan.outcomes;
  }

  /**
   * Whether a commit happened whose connection was lost: false if it did not and never will; undefined if the database
   * gives no answer until the deadline.
   */
  async #lookUp(id: string, deadline: number): Promise<boolean | undefined> {
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      try {
        const [, , , claimed] = await this.#pool.run(lookUpCommit(id));
        return claimed?.[0]?.[0] === 'f';
      } catch {
        if (performance.now() > deadline) return undefined;
      }
      await delay(pause);
    }
  }
}
