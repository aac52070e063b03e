import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { quote } from '../connection.ts';
import { ConnectionLost, faultOf, sqlState } from '../faults.ts';
import type { Link } from '../link.ts';
import { type Call, isRead } from './call.ts';
import { commitRefusal } from '../store/refusals.ts';
import { CREATE_SHARED, MISSING } from './schema.ts';
import { SWEPT_ROWS } from './sweep-function.ts';

/** Calls of one batch, which is one transaction, and the characters of their arguments. */
const MAX_CALLS = 256;
const MAX_CHARACTERS = 1_048_576;
const SWEEP_MS = 15_000;
/** Milliseconds before an attempt after one that has failed. */
const PAUSE_MS = 20;

/** A call, or a sweep, that waits for its answer. */
interface Waiting {
  readonly work: Call | { readonly sweepIdleMs: number };
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface WaitingCall extends Waiting {
  readonly work: Call;
}

/**
 * Sends the calls of this process to the database: those of one event loop iteration, and those that were made while
 * others were under way, as one batch, which is one round trip and one transaction. Batches follow one another, so calls
 * take effect in their order.
 *
 * A batch whose connection is lost is sent again for a while; the database knows its number, so it takes effect
 * once. When that is in vain, its calls reject, and further ones reject at once until there is a connection again.
 */
export class SharedCalls {
  readonly #link: Link;
  readonly #patienceMs: number;
  readonly #given: (() => number) | undefined;
  readonly #sender = randomInt(2 ** 47);
  readonly #waiting: Waiting[] = [];
  #sending: Promise<void> | undefined;
  #batch = 0;
  #memory: number | null = null;
  #seen: number | null = null;
  #isAway = false;

  /**
   * @param patienceMs milliseconds for which a batch is tried again on other connections before its calls reject
   * @param given the time in place of that of the database, for tests
   */
  constructor(link: Link, patienceMs: number, given: (() => number) | undefined) {
    this.#link = link;
    this.#patienceMs = patienceMs;
    this.#given = given;
  }

  /** Makes a call, and returns its answer as the function of the database gives it. */
  call(...[name, ...args]: readonly [Call['name'], ...Call['args']]): Promise<unknown> {
    return this.#add({ name, args });
  }

  /** Deletes what is not shown. */
  async sweep(idleMs: number): Promise<void> {
    // Other calls go in between.
    while (Number(await this.#add({ sweepIdleMs: idleMs })) >= SWEPT_ROWS);
  }

  /** Resolves once the calls that were made before have their answers. */
  async settled(): Promise<void> {
    while (this.#sending !== undefined) await this.#sending;
  }

  #add(work: Waiting['work']): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ work, resolve, reject });
      this.#sending ??= this.#sendAll();
    });
  }

  async #sendAll(): Promise<void> {
    await new Promise(setImmediate);
    while (this.#waiting.length > 0) {
      const calls = this.#takeCalls();
      if (calls.length > 0) {
        await this.#sendBatch(calls);
        continue;
      }
      const sweep = this.#waiting.shift();
      if (sweep !== undefined && 'sweepIdleMs' in sweep.work) await this.#sweepOnce(sweep, sweep.work.sweepIdleMs);
    }
    // In the same step in which the queue was seen to be empty.
    this.#sending = undefined;
  }

  /** Takes the calls of the next batch from the queue; none if a sweep is next. */
  #takeCalls(): WaitingCall[] {
    const calls: WaitingCall[] = [];
    let characters = 0;
    for (const { work, ...settle } of this.#waiting) {
      if ('sweepIdleMs' in work || calls.length === MAX_CALLS || characters > MAX_CHARACTERS) break;
      calls.push({ work, ...settle });
      for (const arg of work.args) characters += typeof arg === 'string' ? arg.length : 0;
    }
    this.#waiting.splice(0, calls.length);
    return calls;
  }

  async #sendBatch(calls: readonly WaitingCall[]): Promise<void> {
    const number = calls.every(({ work }) => isRead(work)) ? null : ++this.#batch;
    const list = calls.map(({ work: { name, args } }) => [name, ...args]);
    const sql = (): string =>
      `select collab.shared_calls_1(${quote(JSON.stringify(list))}, ${this.#sender}, ${number}, ${this.#memory}, ` +
      `${this.#seen}, ${this.#given?.() ?? null})`;
    try {
      const [memory, seen, ...answers] = JSON.parse(await this.#run(sql, this.#patienceMs)) as [
        number,
        number,
        ...unknown[],
      ];
      this.#memory = memory;
      this.#seen = seen;
      for (const [i, { resolve }] of calls.entries()) resolve(answers[i]);
    } catch (error) {
      if (calls.length > 1 && isAboutData(error)) {
        // The transaction had no effect. Of its calls only the one that is wrong is to have none.
        for (const call of calls) await this.#sendBatch([call]);
        return;
      }
      const reason = isAboutData(error) ? error : commitRefusal(error, true);
      for (const { reject } of calls) reject(reason);
    }
  }

  async #sweepOnce({ resolve, reject }: Waiting, idleMs: number): Promise<void> {
    const sql = (): string => `select collab.shared_sweep_1(${idleMs}, ${this.#given?.() ?? null})`;
    try {
      resolve(await this.#run(sql, SWEEP_MS));
    } catch (error) {
      reject(commitRefusal(error, true));
    }
  }

  /** Runs a statement that may run again and gives one value. Rejects with the last error. */
  async #run(sql: () => string, ms: number): Promise<string> {
    const until = performance.now() + ms;
    for (;;) {
      try {
        if (this.#isAway && !this.#link.isConnected) return await this.#refuseAway();
        const connection = await this.#link.connect(until - performance.now());
        const [rows] = await connection.run(sql(), Math.max(1, until - performance.now()));
        this.#isAway = false;
        return rows?.[0]?.[0] ?? '';
      } catch (error) {
        const left = until - performance.now();
        if (this.#isAway || left <= PAUSE_MS || !(await this.#mayRunAgain(error, left))) {
          this.#isAway = faultOf(error) === 'lost';
          throw error;
        }
      }
    }
  }

  /** Begins to connect in the background, unless an attempt has just failed. */
  async #refuseAway(): Promise<never> {
    const attempt = this.#link.connect(this.#patienceMs);
    attempt.catch(() => {});
    throw new ConnectionLost('The database could not be reached a moment ago');
  }

  async #mayRunAgain(error: unknown, leftMs: number): Promise<boolean> {
    const state = sqlState(error) ?? '';
    if (MISSING.has(state)) {
      await (await this.#link.connect(leftMs)).run(CREATE_SHARED);
      return true;
    }
    const fault = faultOf(error);
    // 23505: the first batch of this process is under way on two connections.
    if (fault !== 'lost' && fault !== 'conflict' && state !== '23505') return false;
    await delay(PAUSE_MS);
    return true;
  }
}

/** Whether a value in a call was wrong, rather than the database. */
function isAboutData(error: unknown): boolean {
  return /^(?:22|54)/.test(sqlState(error) ?? '');
}
