import { setTimeout as delay } from 'node:timers/promises';
import type { Rows } from '../connection.ts';
import { ConnectionLost, faultOf } from '../faults.ts';
import { type Pool, WAIT_MS } from '../pool.ts';
import { readRefusal } from './refusals.ts';

/** One statement that answers any number of questions of a kind. */
export interface Query<K, V> {
  sql(wanted: readonly K[]): string;
  /** The answers, in the order of `wanted`. */
  answers(rows: Rows, wanted: readonly K[]): readonly V[];
}

interface Question {
  readonly wanted: unknown;
  resolve(answer: unknown): void;
  reject(error: Error): void;
}

type Questions = Map<Query<unknown, unknown>, Question[]>;

/** Milliseconds between tries of a batch whose connection was lost. */
const PAUSE_MS = 50;

/**
 * Asks the questions of one event loop iteration in one round trip. While as many batches are on their way as there may
 * be, further questions wait for the next one.
 */
export class QueryBatch {
  readonly #pool: Pool;
  readonly #mostBatches: number;
  #waiting: Questions = new Map();
  #scheduled = false;
  #batches = 0;

  /** @param mostBatches how many connections they may use at the same time */
  constructor(pool: Pool, mostBatches: number) {
    this.#pool = pool;
    this.#mostBatches = mostBatches;
  }

  /** Resolves with the answer as of a moment after the call. Rejects with `storage_unavailable`. */
  ask<K, V>(query: Query<K, V>, wanted: K): Promise<V> {
    return new Promise<V>((resolve, reject) => {
      const key = query as Query<unknown, unknown>;
      const question: Question = { wanted, resolve: resolve as (answer: unknown) => void, reject };
      const others = this.#waiting.get(key);
      if (others === undefined) this.#waiting.set(key, [question]);
      else others.push(question);
      this.#schedule();
    });
  }

  /** Resolves when no question is pending. */
  async idle(): Promise<void> {
    while (this.#batches > 0 || this.#waiting.size > 0) await delay(1);
  }

  #schedule(): void {
    if (this.#scheduled || this.#batches >= this.#mostBatches || this.#waiting.size === 0) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      const questions = this.#waiting;
      this.#waiting = new Map();
      void this.#send(questions);
    });
  }

  async #send(questions: Questions): Promise<void> {
    this.#batches++;
    const queries = [...questions];
    try {
      const sql = queries.map(([query, asked]) => query.sql(asked.map(({ wanted }) => wanted)));
      const results = await this.#run(sql.join(';\n'));
      for (const [i, [query, asked]] of queries.entries()) {
        const answers = query.answers(
          results[i] ?? [],
          asked.map(({ wanted }) => wanted),
        );
        for (const [n, question] of asked.entries()) question.resolve(answers[n]);
      }
    } catch (error) {
      const refusal = readRefusal(error);
      for (const [, asked] of queries) for (const question of asked) question.reject(refusal);
    } finally {
      this.#batches--;
      this.#schedule();
    }
  }

  /** Runs the statements again if the connection was lost, as with a restart of the server, for `WAIT_MS`. */
  async #run(sql: string): Promise<Rows[]> {
    const deadline = performance.now() + WAIT_MS;
    for (;;) {
      try {
        return await this.#pool.run(sql);
      } catch (error) {
        const again = faultOf(error) === 'lost' || faultOf(error) === 'conflict';
        if (!again || this.#pool.isDown || performance.now() > deadline) throw error;
        if (error instanceof ConnectionLost) await delay(PAUSE_MS);
      }
    }
  }
}
