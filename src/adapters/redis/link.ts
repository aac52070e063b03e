import { setTimeout as sleep } from 'node:timers/promises';
import { withTimeout } from '../../lib/concurrency/deadline.ts';
import { ConnectionLost } from './faults.ts';
import type { Connection } from './connection.ts';

/** For so long callers wait for another connection in place of one that was lost, in milliseconds. */
const GRACE_MS = 500;
/** Milliseconds between attempts to connect: at first, and at most. */
const [FIRST_DELAY_MS, MAX_DELAY_MS] = [50, 1_000];

/** A connection that is replaced whenever it is lost, until `close`. */
export class Link {
  readonly #open: () => Promise<Connection>;
  readonly #onChange: (error: Error | null) => void;
  #current: Connection | undefined;
  /** While the first attempt after a loss runs. */
  #grace: Promise<Connection> | undefined;
  #error: Error = new ConnectionLost('not connected');
  readonly #closing = new AbortController();

  /** @param onChange called with null when a connection is there, and with the error when it is not */
  constructor(open: () => Promise<Connection>, onChange: (error: Error | null) => void = () => {}) {
    this.#open = open;
    this.#onChange = onChange;
  }

  /** Makes the first connection. Rejects, and does not try again, if that fails. */
  async start(): Promise<void> {
    this.#use(await this.#open());
  }

  /** The connection, if there is one. */
  get current(): Connection | undefined {
    return this.#current;
  }

  /** The connection. Rejects at once while there is none, and within `GRACE_MS` right after one was lost. */
  async connection(): Promise<Connection> {
    if (this.#current !== undefined) return this.#current;
    if (this.#grace !== undefined) return this.#grace;
    throw this.#error;
  }

  /** Replaces the connection, if there is one. */
  drop(error: unknown): void {
    this.#current?.end(error);
  }

  /** Ends the connection. Rejects calls from then on. */
  close(): void {
    this.#closing.abort();
    this.#error = new ConnectionLost('closed');
    this.#current?.end(this.#error);
  }

  #use(connection: Connection): void {
    if (this.#closing.signal.aborted) return connection.end(this.#error);
    this.#current = connection;
    this.#onChange(null);
    connection.onEnd((error) => {
      this.#current = undefined;
      if (!this.#closing.signal.aborted) void this.#reconnect(error);
    });
  }

  async #reconnect(lost: Error): Promise<void> {
    this.#error = lost;
    let attempt = this.#open();
    this.#grace = withTimeout(GRACE_MS, attempt, () => {
      throw lost;
    });
    // Callers that wait for it handle its rejection; so do we below, for `attempt`.
    this.#grace.catch(() => {}).finally(() => (this.#grace = undefined));
    for (let delayMs = FIRST_DELAY_MS; ; delayMs = Math.min(2 * delayMs, MAX_DELAY_MS)) {
      try {
        return this.#use(await attempt);
      } catch (error) {
        if (this.#closing.signal.aborted) return;
        this.#error = error as Error;
        this.#onChange(this.#error);
      }
      // Not all processes at once.
      await sleep(delayMs * (0.5 + Math.random()), undefined, { signal: this.#closing.signal }).catch(() => {});
      if (this.#closing.signal.aborted) return;
      attempt = this.#open();
    }
  }
}
