import type pg from 'pg';
import { importModule } from '../../lib/process/import-module.ts';
import { messageOf } from '../../lib/thrown.ts';
import { EngineError } from '../../ports/engine-error.ts';
import { ConnectionLost, sqlState } from './faults.ts';
import type { Target } from './target.ts';

/** The rows of one statement, as texts in the format of PostgreSQL; null for NULL. */
export type Rows = readonly (readonly (string | null)[])[];

/** Milliseconds until a connection must be made. */
export const CONNECT_MS = 5_000;
/** Milliseconds until the statements of one `run` must have an answer. */
export const STATEMENT_MS = 15_000;
/** Milliseconds without traffic after which the system looks whether the other end is still there. */
const KEEP_ALIVE_MS = 10_000;

/** A text as a literal in SQL, whatever `standard_conforming_strings` is. The text must not contain U+0000. */
export function quote(text: string): string {
  if (!text.includes('\\')) return `'${text.includes("'") ? text.replaceAll("'", "''") : text}'`;
  return `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}

/** Between the texts of an array: JSON has it only as an escape, and names do not have it. */
const SEPARATOR = '\n';

/**
 * Texts as an array in SQL. They are one literal, where none has a line break, because PostgreSQL parses, analyzes and
 * plans each literal: with one for each text, a commit of 60 comments takes it a third longer.
 */
export function quoteArray(texts: readonly string[]): string {
  const joined = texts.join(SEPARATOR);
  // string_to_array makes no text of an empty one.
  if (joined === '' || texts.some((text) => text.includes(SEPARATOR)))
    return `array[${texts.map(quote).join()}]::text[]`;
  return `string_to_array(${quote(joined)}, ${quote(SEPARATOR)})`;
}

/**
 * One connection to a server. It uses the simple protocol, so a call is one round trip whatever the number of
 * statements, and leaves nothing behind on the server that a pooler in transaction mode would give to somebody else.
 */
export class Connection {
  readonly #client: pg.Client;
  #lost: ConnectionLost | undefined;
  #warning: string | undefined;
  #ended: (error: ConnectionLost) => void = () => {};

  private constructor(client: pg.Client) {
    this.#client = client;
    // Without a listener, an error between two queries would end the process.
    client.on('error', (error) => this.#end(error));
    client.on('notice', ({ severity, code }) => {
      if (severity === 'WARNING') this.#warning = code;
    });
    client.on('end', () => this.#end(new Error('The connection was closed')));
  }

  /**
   * Connects within `CONNECT_MS`. Rejects with what the server or the system says, and with an `EngineError` if the
   * package `pg` is not installed.
   */
  static async open(target: Target, name: string): Promise<Connection> {
    const { Client } = await load(target);
    const client = new Client({
      host: target.host,
      port: target.port,
      database: target.database,
      user: target.user,
      // Never from the environment or a file: the URL is the whole configuration.
      password: () => target.password ?? '',
      ssl: target.tls,
      application_name: name,
      connectionTimeoutMillis: CONNECT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    });
    const connection = new Connection(client);
    try {
      await client.connect();
      return connection;
    } catch (error) {
      connection.close();
      throw sqlState(error) === undefined ? new ConnectionLost(messageOf(error), error) : error;
    }
  }

  /** Whether statements can be run. */
  get isOpen(): boolean {
    return this.#lost === undefined;
  }

  /** The SQLSTATE of the last warning during the latest `run`. */
  get warning(): string | undefined {
    return this.#warning;
  }

  /**
   * Runs statements and returns the rows of each. Rejects with the error of the server, whose later statements were not
   * run then, or with `ConnectionLost`, also when there is no answer for `timeoutMs`; the connection is closed then.
   */
  run(sql: string, timeoutMs: number = STATEMENT_MS): Promise<Rows[]> {
    return new Promise((resolve, reject) => {
      if (this.#lost !== undefined) {
        reject(this.#lost);
        return;
      }
      this.#warning = undefined;
      const timer = setTimeout(() => {
        const late = new ConnectionLost(`no answer for ${timeoutMs / 1_000} s`);
        this.#end(late);
        reject(late);
      }, timeoutMs);
      this.#client.query(
        new SimpleQuery(sql, (error, rows) => {
          clearTimeout(timer);
          if (error === undefined) resolve(rows);
          else reject(sqlState(error) === undefined ? this.#end(error) : error);
        }),
      );
    });
  }

  /** Calls `listener` with each notification of a channel that a `listen` of this connection has subscribed to. */
  onNotification(listener: (channel: string, payload: string) => void): void {
    this.#client.on('notification', ({ channel, payload }) => listener(channel, payload ?? ''));
  }

  /** Calls `listener`, instead of one before, when the connection ends, also by `close`. */
  onEnd(listener: (error: ConnectionLost) => void): void {
    this.#ended = listener;
    if (this.#lost !== undefined) listener(this.#lost);
  }

  /** Closes the connection; statements that run fail with `ConnectionLost`, and the server rolls them back. */
  close(): void {
    this.#end(new Error('The connection was closed'));
  }

  #end(error: Error): ConnectionLost {
    if (this.#lost !== undefined) return this.#lost;
    this.#lost = error instanceof ConnectionLost ? error : new ConnectionLost(messageOf(error), error);
    // Says goodbye if the connection is idle, and otherwise destroys the socket.
    void this.#client.end().catch(() => {});
    this.#ended(this.#lost);
    return this.#lost;
  }
}

/** Runs statements by the simple protocol, and keeps rows as they come. */
class SimpleQuery {
  readonly #sql: string;
  readonly #done: (error: Error | undefined, rows: Rows[]) => void;
  readonly #results: Rows[] = [];
  #rows: (readonly (string | null)[])[] = [];

  constructor(sql: string, done: (error: Error | undefined, rows: Rows[]) => void) {
    this.#sql = sql;
    this.#done = done;
  }

  submit(wire: pg.Connection): void {
    wire.query(this.#sql);
  }

  handleRowDescription(): void {}

  handleDataRow({ fields }: { fields: readonly (string | null)[] }): void {
    this.#rows.push(fields);
  }

  handleCommandComplete(): void {
    this.#results.push(this.#rows);
    this.#rows = [];
  }

  handleEmptyQuery(): void {}

  handleError(error: Error): void {
    this.#done(error, []);
  }

  handleReadyForQuery(): void {
    this.#done(undefined, this.#results);
  }
}

async function load({ option }: Target): Promise<typeof pg> {
  try {
    const loaded = (await importModule('pg')) as { readonly default: typeof pg };
    return loaded.default;
  } catch (error) {
    throw new EngineError(option, 'the client for PostgreSQL is not installed: run `npm install pg@8`', {
      retry: false,
      cause: error,
    });
  }
}
