import { quote } from '../connection.ts';
import type { Pool } from '../pool.ts';
import { oldestCommitId } from './commit-id.ts';

/** Of the lock that only one process maintains: "Collac". */
export const MAINTENANCE_LOCK = 0x43_6f_6c_6c_61_63;
/** Milliseconds between two runs of a process, on average. */
const INTERVAL_MS = 600_000;
const STATEMENT_MS = 60_000;
/** Commits are remembered for longer than any process looks one up. */
const COMMIT_MINUTES = 30;
const EVENTS_AT_ONCE = 5_000;
const PARTITIONS_AT_ONCE = 2_000;
/** What would keep readers waiting waits itself for no longer than this. */
const IMPATIENT = `set local lock_timeout = '500ms'`;

/**
 * SQL that creates the partitions of events for today and the next two days, by UTC. The more there are, as when events
 * are kept for a year, the longer a new one is, because each reader of events looks into all. Events for which there is
 * none are in the default partition.
 */
export const createEventPartitions = `do $$
declare
  day date := (now() at time zone 'UTC')::date;
  today constant date := day;
  known text[] := array(
    select c.relname::text from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'collab.events'::regclass and c.relname ~ '^events_\\d{8}_\\d{8}$'
  );
  days constant int := case when cardinality(known) > 16 then 30 when cardinality(known) > 8 then 7 else 1 end;
  name text;
begin
  day := greatest(day, (select max(right(n, 8)::date) from unnest(known) n));
  while day <= today + 2 loop
    name := format('events_%s_%s', to_char(day, 'YYYYMMDD'), to_char(day + days, 'YYYYMMDD'));
    begin
      execute format('create table collab.%I (like collab.events including all)', name);
      execute format('alter table collab.events attach partition collab.%I for values from (%L) to (%L)',
        name, day || ' 00:00+00', (day + days) || ' 00:00+00');
    exception when check_violation then
      null; -- The default partition has events of these days.
    end;
    day := day + days;
  end loop;
end $$`;

/** SQL that trims a stream, as `Store.trimEvents`: its events are no longer read; their rows go with their partition. */
export function trimStream(stream: string, seq: number): string {
  return `update collab.streams set oldest_seq = greatest(oldest_seq, least(${Math.trunc(seq)} + 1, last_seq))
    where stream = ${quote(stream)} and not ended and last_seq > 0`;
}

/**
 * What has to be done now and then in the database, by any process that has it open. Each step is a transaction of its
 * own that may fail, and is done by the next run then.
 */
export class Maintenance {
  readonly #pool: Pool;
  readonly #onError: (error: unknown) => void;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  /** The partition of records up to which empty ones were looked for. */
  #checked = '';
  #closed = false;

  /** @param onError called with what a run that failed has thrown */
  constructor(pool: Pool, onError: (error: unknown) => void) {
    this.#pool = pool;
    this.#onError = onError;
  }

  /** Runs now and then from now on. */
  start(): void {
    this.#runIn(INTERVAL_MS * Math.random());
  }

  /** Runs soon, as after the end of a stream, whose events are to be deleted. */
  soon(): void {
    this.#runIn(1_000);
  }

  /** Ends, once a step that is being done has ended. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  /** Does what is due, unless another process is at it. */
  async run(): Promise<void> {
    await this.#step(createEventPartitions);
    await this.#dropPartitions();
    await this.#purgeStreams();
    await this.#step(`delete from collab.commits
      where id < ${quote(oldestCommitId(COMMIT_MINUTES))} and committed_at < now() - interval '${COMMIT_MINUTES} min'`);
    await this.#prunePartitions();
  }

  #runIn(ms: number): void {
    if (this.#closed) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#running = this.run()
        .catch(this.#onError)
        .finally(() => this.#runIn(INTERVAL_MS * (0.5 + Math.random())));
    }, ms);
    this.#timer.unref();
  }

  /** Runs statements in a transaction, and returns the rows of the last one; none if another process maintains. */
  async #step(sql: string): Promise<readonly (readonly (string | null)[])[]> {
    if (this.#closed) return [];
    return this.#pool.use(async (connection) => {
      const [, , locked] = await connection.run(
        `begin; ${IMPATIENT}; select pg_try_advisory_xact_lock(${MAINTENANCE_LOCK})`,
      );
      const rows = locked?.[0]?.[0] === 't' ? ((await connection.run(sql, STATEMENT_MS)).at(-1) ?? []) : [];
      await connection.run('commit');
      return rows;
    });
  }

  /**
   * Drops the partitions of which nothing is read any more but the last events of streams, which are kept: those are
   * copied to the newest partition.
   */
  async #dropPartitions(): Promise<void> {
    const partitions = await this.#step(`select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = 'collab.events'::regclass and c.relname ~ '^events_\\d{8}_\\d{8}$'
        and right(c.relname, 8)::date < (now() at time zone 'UTC')::date
      order by c.relname`);
    for (const [name] of partitions) {
      const [kept] = await this.#step(`select exists (
        select from collab.streams s cross join lateral (
          select from collab.${name} e
          where e.stream = s.stream and e.seq >= s.oldest_seq and e.seq < s.last_seq limit 1
        ) e where not s.ended)`);
      if (kept?.[0] !== 'f') continue;
      await this.#step(`insert into collab.events (stream, seq, text)
          select e.stream, e.seq, e.text from collab.streams s cross join lateral (
            select stream, seq, text from collab.${name} e where e.stream = s.stream and e.seq >= s.oldest_seq
          ) e where not s.ended;
        drop table collab.${name}`);
    }
    await this.#step(`delete from collab.events_default e using collab.streams s
      where s.stream = e.stream and e.seq < s.oldest_seq`);
  }

  /** Deletes the events of streams that have ended. */
  async #purgeStreams(): Promise<void> {
    const ended = await this.#step(
      `select stream, oldest_seq, last_seq from collab.streams where ended and not purged limit 1000`,
    );
    for (const [stream, oldest, last] of ended) {
      const name = quote(stream ?? '');
      for (let seq = Number(oldest); seq <= Number(last); seq += EVENTS_AT_ONCE)
        await this.#step(`delete from collab.events where stream = ${name} and seq < ${seq + EVENTS_AT_ONCE}`);
      await this.#step(`update collab.streams set purged = true where stream = ${name}`);
    }
  }

  /**
   * Deletes the rows of partitions that have no record any more, some at each run. A commit that writes to one meanwhile
   * has changed its version, and one that has found its row before it was deleted finds out and begins anew.
   */
  async #prunePartitions(): Promise<void> {
    const rows = await this.#step(`with checked as (
        select partition, version from collab.partitions where partition > ${quote(this.#checked)}
        order by partition limit ${PARTITIONS_AT_ONCE}
      ), pruned as (
        delete from collab.partitions p using checked c
        where p.partition = c.partition and p.version = c.version
          and not exists (select from collab.records r where r.partition = c.partition)
      )
      select max(partition) from checked`);
    this.#checked = rows[0]?.[0] ?? '';
  }
}
