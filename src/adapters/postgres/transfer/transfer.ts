import { MOVE_KEY, MOVES, type MoveState, parseMoveState } from '../../../model/move.ts';
import type { StoredEvent } from '../../../ports/store.ts';
import type {
  RecordChange,
  RecordName,
  StoredRecord,
  StoreTransfer,
  StreamExtent,
} from '../../../ports/store-transfer.ts';
import { quote, quoteArray, type Rows } from '../connection.ts';
import { openingError } from '../faults.ts';
import { openPool, type Pool } from '../pool.ts';
import { INCARNATION, prepareDatabase } from '../store/identity.ts';
import { eventsQuery } from '../store/queries.ts';
import { insertEvents, upsertRecords } from '../store/write-sql.ts';
import { decodeText } from '../stored-text.ts';
import { ALLOW_WRITES, RECREATE_META, REFUSE_WRITES } from './refuse-writes.ts';
import { MaintenancePause } from './maintenance-pause.ts';

/** The most records of one `scan`, and their bytes before the last one. */
const SCANNED = 5_000;
const SCANNED_BYTES = 8_000_000;
const STATEMENT_MS = 120_000;
/** One reads and writes, one pauses the maintenance. */
const CONNECTIONS = 3;

/**
 * Opens a whole store in PostgreSQL, and creates its schema if there is none. Any number of nodes may use a source
 * meanwhile, and none a target. Throws an `EngineError` for `store.url`, also later when it cannot be reached.
 */
export async function openPostgresTransfer({ url }: { readonly url: string }): Promise<StoreTransfer> {
  const pool = await openPool({ option: 'store.url', url, connections: CONNECTIONS, name: 'collab migrate' });
  try {
    return new PostgresTransfer(pool, (await prepareDatabase(pool)).epoch);
  } catch (error) {
    pool.close();
    throw openingError(pool.target, error);
  }
}

/**
 * A whole store in a PostgreSQL database. Each partition has the number of the transaction that wrote to it last, so
 * changes are those of transactions that had not ended when they were asked for before.
 */
class PostgresTransfer implements StoreTransfer {
  readonly label: string;
  readonly #pool: Pool;
  readonly #pause: MaintenancePause;
  /** Every transaction below this number had ended when the changes were last asked for; and of which database. */
  #since: { readonly xid: string; readonly incarnation: string } | undefined;
  #epoch: string;

  constructor(pool: Pool, epoch: string) {
    this.label = `PostgreSQL at ${pool.target.label}`;
    this.#pool = pool;
    this.#pause = new MaintenancePause(pool);
    this.#epoch = epoch;
  }

  get epoch(): string {
    return this.#epoch;
  }

  scan(after: RecordName | null): Promise<StoredRecord[]> {
    return this.#page(after === null ? 'true' : `(partition, key) > (${quote(after.partition)}, ${quote(after.key)})`);
  }

  records(partition: string, after: RecordName | null): Promise<StoredRecord[]> {
    return this.#page(`partition = ${quote(partition)}${after === null ? '' : ` and key > ${quote(after.key)}`}`);
  }

  async get(partition: string, key: string): Promise<string | undefined> {
    const [rows] = await this.#run(
      `select value from collab.records where partition = ${quote(partition)} and key = ${quote(key)}`,
    );
    const value = rows?.[0]?.[0];
    return typeof value === 'string' ? decodeText(value) : undefined;
  }

  async changes(): Promise<ReadonlySet<string> | null> {
    // Or rows of partitions could disappear that have lost their last record.
    const isPaused = await this.#pause.hold();
    const before = this.#since;
    const [now, changed] = await this.#run(
      `select pg_snapshot_xmin(pg_current_snapshot()), ${INCARNATION};
        select partition from collab.partitions where version >= '${before?.xid ?? '0'}' and ${String(before !== undefined)}`,
    );
    const [xid, incarnation] = now?.[0] ?? [];
    this.#since = { xid: xid ?? '0', incarnation: incarnation ?? '' };
    if (before === undefined || before.incarnation !== incarnation || !isPaused) return null;
    return new Set(changed?.map(([partition]) => partition ?? ''));
  }

  async streams(): Promise<StreamExtent[]> {
    const [rows] = await this.#run(
      `select stream, oldest_seq, last_seq from collab.streams where not ended and last_seq > 0`,
    );
    return (rows ?? []).map(([stream, oldest, last]) => ({
      stream: stream ?? '',
      oldest: Number(oldest),
      last: Number(last),
    }));
  }

  async events(stream: string, since: number, limit: number, maxChars: number): Promise<StoredEvent[]> {
    const query = eventsQuery(stream, since, limit, maxChars);
    const [rows] = await this.#run(query.sql([null]));
    return query.answers(rows ?? [], [null])[0] ?? [];
  }

  async state(): Promise<MoveState | undefined> {
    return parseMoveState(await this.get(MOVES, MOVE_KEY));
  }

  async setState(state: MoveState): Promise<void> {
    await this.#transact(REFUSE_WRITES, upsert([{ partition: MOVES, key: MOVE_KEY, value: JSON.stringify(state) }]));
  }

  async resume(renew: boolean): Promise<void> {
    // In the order in which commits lock these tables; the other way round they would wait for each other.
    await this.#transact(renew ? RECREATE_META : '', ALLOW_WRITES, removal([{ partition: MOVES, key: MOVE_KEY }]));
    // The next process that opens the database gives it a new epoch, as after a restore.
    if (renew) this.#epoch = (await this.#explain(() => prepareDatabase(this.#pool))).epoch;
  }

  async write(changes: readonly RecordChange[]): Promise<void> {
    const written = changes.filter((change) => change.value !== undefined) as StoredRecord[];
    const removed = changes.filter(({ value }) => value === undefined);
    await this.#transact(written.length === 0 ? '' : upsert(written), removed.length === 0 ? '' : removal(removed));
  }

  async append(stream: string, events: readonly StoredEvent[]): Promise<void> {
    const [first, last] = [events[0], events.at(-1)];
    if (first === undefined || last === undefined) return;
    await this.#transact(
      `insert into collab.streams (stream, last_seq, oldest_seq, commit)
        values (${quote(stream)}, ${last.seq}, ${first.seq}, pg_current_xact_id())
        on conflict (stream) do update set last_seq = excluded.last_seq, commit = excluded.commit`,
      insertEvents(events.map(({ seq, text }) => ({ stream, seq, text }))),
    );
  }

  async removeStream(stream: string): Promise<void> {
    await this.#transact(
      `delete from collab.events where stream = ${quote(stream)}`,
      `delete from collab.streams where stream = ${quote(stream)}`,
    );
  }

  async finish(epoch: string): Promise<void> {
    await this.#transact(
      ALLOW_WRITES,
      removal([{ partition: MOVES, key: MOVE_KEY }]),
      `update collab.meta set value = ${quote(epoch)} where name = 'epoch'`,
      'analyze collab.records, collab.streams, collab.partitions',
    );
    this.#epoch = epoch;
  }

  async close(): Promise<void> {
    await this.#pause.end();
    this.#pool.close();
  }

  async #page(condition: string): Promise<StoredRecord[]> {
    const [rows] = await this.#run(`select partition, key, value from (
        select *, sum(octet_length(value)) over (order by partition, key rows unbounded preceding) - octet_length(value) as before
        from (
          select partition, key, value from collab.records
          where ${condition} and partition <> ${quote(MOVES)} order by partition, key limit ${SCANNED}
        ) page
      ) page where before < ${SCANNED_BYTES} order by partition, key`);
    return (rows ?? []).map(([partition, key, value]) => ({
      partition: partition ?? '',
      key: key ?? '',
      value: decodeText(value ?? ''),
    }));
  }

  /** Runs statements in one transaction, which waits for the disk. */
  async #transact(...statements: readonly string[]): Promise<void> {
    await this.#run(
      ['begin', `set local synchronous_commit = on`, `set local lock_timeout = '30s'`, ...statements, 'commit']
        .filter((statement) => statement !== '')
        .join(';\n'),
    );
  }

  #run(sql: string): Promise<Rows[]> {
    return this.#explain(() => this.#pool.run(sql, STATEMENT_MS));
  }

  async #explain<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw openingError(this.#pool.target, error);
    }
  }
}

function upsert(records: readonly StoredRecord[]): string {
  const partitions = [...new Set(records.map(({ partition }) => partition))].sort();
  return `insert into collab.partitions select name, pg_current_xact_id() from unnest(${quoteArray(partitions)}) name
      on conflict (partition) do update set version = excluded.version;
    ${upsertRecords(records, 'pg_current_xact_id()')}`;
}

function removal(names: readonly RecordName[]): string {
  return `delete from collab.records r using unnest(
      ${quoteArray(names.map(({ partition }) => partition))}, ${quoteArray(names.map(({ key }) => key))}
    ) n (partition, key) where r.partition = n.partition and r.key = n.key`;
}
