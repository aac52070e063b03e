import { withTimeout } from '../../lib/concurrency/deadline.ts';
import { Connection } from './connection.ts';
import { ConnectionLost } from './faults.ts';
import type { Target } from './target.ts';

/** Pauses between attempts to connect, in milliseconds; each is shortened by up to a half, so that processes differ. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;

/** One connection to a server for a kind of statements whose order matters. It is made when it is needed, and again. */
export class Link {
  readonly #target: Target;
  readonly #name: string;
  #connection: Connection | undefined;
  #connecting: Promise<Connection> | undefined;
  #pause = FIRST_PAUSE_MS;
  #retryAt = 0;
  #lastError: unknown;
  #closed = false;

  /** @param name shown by `pg_stat_activity` as `application_name` */
  constructor(target: Target, name: string) {
    this.#target = target;
    this.#name = name;
  }

  get isConnected(): boolean {
    return this.#connection?.isOpen === true;
  }

  /**
   * Returns the connection, or makes it within `ms`. Rejects with the reason; at once if an attempt has just failed.
   * An attempt that takes longer goes on.
   */
  async connect(ms: number): Promise<Connection> {
    if (this.#connection?.isOpen === true) return this.#connection;
    if (this.#closed) throw new ConnectionLost('The connection was closed');
    if (this.#connecting === undefined && performance.now() < this.#retryAt) throw this.#lastError;
    this.#connecting ??= this.#open().finally(() => (this.#connecting = undefined));
    // Somebody may have stopped waiting for it.
    this.#connecting.catch(() => {});
    return withTimeout(ms, this.#connecting, () => {
      throw new ConnectionLost(`no connection within ${ms / 1_000} s`);
    });
  }

  /** Closes the connection. Statements that run fail with `ConnectionLost`. */
  close(): void {
    this.#closed = true;
    this.#connection?.close();
  }

  async #open(): Promise<Connection> {
    try {
      const connection = await Connection.open(this.#target, this.#name);
      if (this.#closed) connection.close();
      this.#pause = FIRST_PAUSE_MS;
      return (this.#connection = connection);
    } catch (error) {
      this.#lastError = error;
      this.#retryAt = performance.now() + this.#pause * (1 - Math.random() / 2);
      this.#pause = Math.min(2 * this.#pause, LONGEST_PAUSE_MS);
      throw error;
    }
  }
}
