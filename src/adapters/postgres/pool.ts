import { setTimeout as delay } from 'node:timers/promises';
import { Connection, type Rows } from './connection.ts';
import { ConnectionLost, faultOf, openingError } from './faults.ts';
import { parseTarget, type Target } from './target.ts';
import type { EngineOption } from '../../ports/engine-error.ts';

/** How `openPool` connects. */
export interface PoolOptions {
  /** The option that has the URL, which messages name. */
  readonly option: EngineOption;
  readonly url: string;
  /** Maximum number of connections. */
  readonly connections: number;
  /** Shown by `pg_stat_activity` as `application_name`. */
  readonly name: string;
}

/** Milliseconds for which a caller waits for a server that has just become unreachable; twice that for a free connection. */
export const WAIT_MS = 5_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 500;

interface Waiter {
  readonly resolve: (connection: Connection) => void;
  readonly reject: (error: Error) => void;
}

/** Parses the URL and makes the first connection. Throws an `EngineError`. */
export async function openPool(options: PoolOptions): Promise<Pool> {
  const target = parseTarget(options.option, options.url);
  const pool = new Pool(target, options);
  try {
    await pool.connect();
    return pool;
  } catch (error) {
    pool.close();
    throw openingError(target, error);
  }
}

/**
 * Connections to one server, made when they are needed. While the server cannot be reached, a call tries again for
 * `WAIT_MS`, so that a restart or a failover is a delay; once that was in vain, calls are refused at once until a
 * connection succeeds, which is tried in the background.
 */
export class Pool {
  readonly target: Target;
  readonly #options: PoolOptions;
  readonly #idle: Connection[] = [];
  readonly #open = new Set<Connection>();
  readonly #waiters: Waiter[] = [];
  #verify: (connection: Connection) => Promise<void> = () => Promise.resolve();
  #connecting = 0;
  /** Why no connection could be made, once callers have waited for long enough. */
  #down: Error | undefined;
  #closed = false;

  constructor(target: Target, options: PoolOptions) {
    this.target = target;
    this.#options = options;
  }

  /** Whether the last attempts to connect were in vain. */
  get isDown(): boolean {
    return this.#down !== undefined;
  }

  /**
   * Calls `verify` with each new connection before it is used; if it rejects, the connection is closed, and counts as
   * not made.
   */
  verifyWith(verify: (connection: Connection) => Promise<void>): void {
    this.#verify = verify;
  }

  /** Makes one connection, without trying again. Rejects with what the server or the system says. */
  async connect(): Promise<void> {
    this.#connecting++;
    try {
      this.#add(await this.#connect());
    } finally {
      this.#connecting--;
    }
  }

  /** Runs statements, in one round trip, on any connection (`Connection.run`). */
  run(sql: string, timeoutMs?: number): Promise<Rows[]> {
    return this.use((connection) => connection.run(sql, timeoutMs));
  }

  /**
   * Lends a connection to `work`. If `work` rejects, what it has begun is rolled back. Rejects with `ConnectionLost` or
   * the error of the server if there is no connection within twice `WAIT_MS`.
   */
  async use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await this.#acquire();
    try {
      const result = await work(connection);
      this.#release(connection);
      return result;
    } catch (error) {
      if (connection.isOpen)
        connection.run('rollback').then(
          () => this.#release(connection),
          () => {},
        );
      throw error;
    }
  }

  /** Closes all connections. Calls that wait or run fail with `ConnectionLost`. */
  close(): void {
    this.#closed = true;
    const closed = new ConnectionLost('The connections were closed');
    for (const { reject } of this.#waiters.splice(0)) reject(closed);
    for (const connection of this.#open) connection.close();
  }

  async #acquire(): Promise<Connection> {
    if (this.#closed) throw new ConnectionLost('The connections were closed');
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    if (this.#down !== undefined) throw this.#down;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        const at = this.#waiters.indexOf(waiter);
        if (at >= 0) this.#waiters.splice(at, 1);
        reject(
          new ConnectionLost(
            `none of ${this.#options.connections} connections was free within ${(2 * WAIT_MS) / 1_000} s`,
          ),
        );
      }, 2 * WAIT_MS);
      const settled = (): void => clearTimeout(timer);
      const waiter: Waiter = {
        resolve: (connection) => (settled(), resolve(connection)),
        reject: (error) => (settled(), reject(error)),
      };
      this.#waiters.push(waiter);
      this.#grow();
    });
  }

  /** Makes another connection if somebody waits for one and the number allows it. */
  #grow(): void {
    if (this.#closed || this.#connecting >= this.#waiters.length) return;
    if (this.#open.size + this.#connecting >= this.#options.connections) return;
    void this.#connectPatiently();
  }

  async #connectPatiently(): Promise<void> {
    const begun = performance.now();
    this.#connecting++;
    try {
      for (let pause = FIRST_PAUSE_MS; !this.#closed; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
        try {
          const connection = await this.#connect();
          this.#down = undefined;
          this.#add(connection);
          return;
        } catch (error) {
          const cause = error instanceof Error ? error : new ConnectionLost(String(error));
          if (faultOf(error) !== 'lost' || performance.now() - begun > WAIT_MS) this.#fail(cause);
          // Nobody waits any more, and another attempt goes on in the background.
          if (this.#waiters.length === 0 && this.#connecting > 1) return;
          await delay(pause, undefined, { ref: false });
        }
      }
    } finally {
      this.#connecting--;
    }
  }

  async #connect(): Promise<Connection> {
    const connection = await Connection.open(this.target, this.#options.name);
    try {
      await this.#verify(connection);
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  #fail(error: Error): void {
    this.#down = error;
    for (const { reject } of this.#waiters.splice(0)) reject(error);
  }

  #add(connection: Connection): void {
    if (this.#closed) return connection.close();
    this.#open.add(connection);
    connection.onEnd(() => {
      this.#open.delete(connection);
      const at = this.#idle.indexOf(connection);
      if (at >= 0) this.#idle.splice(at, 1);
      this.#grow();
    });
    if (connection.isOpen) this.#release(connection);
  }

  #release(connection: Connection): void {
    if (!connection.isOpen) return;
    const waiter = this.#waiters.shift();
    if (waiter === undefined) this.#idle.push(connection);
    else waiter.resolve(connection);
  }
}
