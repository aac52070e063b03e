import type { StoredRecord } from '../../../ports/store-transfer.ts';
import { quote, quoteArray, type Rows } from '../connection.ts';
import type { CommitGroup, Current } from './commit-group.ts';
import { INCARNATION } from './identity.ts';
import type { PostgresTransaction } from './transaction.ts';
import { decodeText } from '../stored-text.ts';
import { type AppendedEvent, insertEvents, upsertRecords } from './write-sql.ts';

/** Milliseconds that a commit waits for the locks of others. */
const LOCK_MS = 10_000;
/**
 * Milliseconds after which the server ends a transaction whose process has stopped between its two round trips, so that
 * it does not keep the others waiting.
 */
const STOPPED_MS = 10_000;

/** What a transaction of the database needs to know first: `begin`, bounds, and a commit that waits for the disk. */
const BEGIN = `begin; select set_config('lock_timeout', '${LOCK_MS}', true),
  set_config('idle_in_transaction_session_timeout', '${STOPPED_MS}', true),
  set_config('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'on'), true)`;

/** The records and streams that the transactions of a group depend on. */
interface Needs {
  /** Of each partition, whether it is written. */
  readonly partitions: ReadonlyMap<string, boolean>;
  readonly streams: readonly string[];
  /** The guarded and updated keys; `value`: whether the value is needed. */
  readonly keys: readonly NeededKey[];
}

interface NeededKey {
  readonly partition: string;
  readonly key: string;
  readonly name: string;
  readonly value: boolean;
}

function needsOf(transactions: readonly PostgresTransaction[]): Needs {
  const partitions = new Map<string, boolean>();
  const streams = new Set<string>();
  const keys = new Map<string, NeededKey>();
  for (const { reads, assumptions, operations, emissions } of transactions) {
    for (const { partition, key, name, suffices } of assumptions) {
      const value = suffices !== undefined;
      if (value || !keys.has(name)) keys.set(name, { partition, key, name, value });
    }
    for (const { partition, key, name } of reads) {
      if (!partitions.has(partition)) partitions.set(partition, false);
      if (!keys.has(name)) keys.set(name, { partition, key, name, value: false });
    }
    for (const { partition, key, name } of operations) {
      partitions.set(partition, true);
      if (name !== undefined) keys.set(name, { partition, key, name, value: true });
    }
    for (const { stream } of emissions) streams.add(stream);
  }
  return { partitions, streams: [...streams].sort(), keys: [...keys.values()] };
}

/** The statements that begin a commit, and what they answer. */
export interface Preparation {
  readonly sql: string;
  /** What the answer says; `incarnation` and `xid` are those of the database and of the transaction. */
  parse(results: readonly Rows[]): Prepared;
}

/** What the database has under the locks of a commit. */
export interface Prepared extends Current {
  readonly incarnation: string;
  readonly xid: string;
  /** Whether all partitions were locked: one without records may have been pruned in this moment. */
  readonly isComplete: boolean;
}

/**
 * Begins a transaction, takes its locks in one order for all processes, and reads what the group depends on. Rows of
 * partitions come first, by name: exclusive, with the new version, where the group writes, and shared where it has only
 * read; then those of streams. Partitions and streams that are new get a row, so that there is something to lock.
 */
export function prepareCommit(transactions: readonly PostgresTransaction[]): Preparation {
  const { partitions, streams, keys } = needsOf(transactions);
  const statements = [BEGIN];
  /** The numbers of the statements that lock shared, and how many rows each must find. */
  const shared: [statement: number, rows: number][] = [];
  for (const [names, written] of runsOf(partitions)) {
    if (written) {
      statements.push(
        `insert into collab.partitions select name, pg_current_xact_id()
          from unnest(${quoteArray(names)}) with ordinality n (name, i) order by i
          on conflict (partition) do update set version = excluded.version`,
      );
      continue;
    }
    statements.push(
      `insert into collab.partitions select name, '0' from unnest(${quoteArray(names)}) name on conflict do nothing`,
      `select from collab.partitions where partition = any(${quoteArray(names)}) order by partition for share`,
    );
    // `begin` is two statements.
    shared.push([statements.length, names.length]);
  }
  if (streams.length > 0)
    statements.push(
      `insert into collab.streams select name from unnest(${quoteArray(streams)}) name on conflict do nothing`,
    );
  const before = statements.length + 1;
  if (streams.length > 0)
    statements.push(
      `select stream, last_seq, ended from collab.streams where stream = any(${quoteArray(streams)}) order by stream
        for no key update`,
    );
  statements.push(`select ${INCARNATION}, pg_current_xact_id()`);
  if (keys.length > 0)
    statements.push(
      `select k.n, r.version, r.value from unnest(
          ${quoteArray(keys.map(({ partition }) => partition))}, ${quoteArray(keys.map(({ key }) => key))},
          '{${keys.map(({ value }) => value).join()}}'::boolean[]
        ) with ordinality k (partition, key, wanted, n)
        cross join lateral (
          select version, case when k.wanted then value end as value from collab.records
          where partition = k.partition and key = k.key offset 0
        ) r`,
    );
  return {
    sql: statements.join(';\n'),
    parse: (results) => {
      let next = before;
      const lastSeqs = new Map<string, number | null>();
      if (streams.length > 0)
        for (const [stream, seq, ended] of results[next++] ?? [])
          lastSeqs.set(stream ?? '', ended === 't' ? null : Number(seq));
      const [incarnation, xid] = results[next++]?.[0] ?? [];
      const found = new Map<string, { version: string; value: string | undefined }>();
      for (const [n, version, value] of results[next] ?? []) {
        const asked = keys[Number(n) - 1];
        if (asked !== undefined)
          found.set(asked.name, {
            version: version ?? '',
            value: value === null || value === undefined ? undefined : decodeText(value),
          });
      }
      return {
        incarnation: incarnation ?? '',
        xid: xid ?? '',
        isComplete: shared.every(([statement, rows]) => results[statement]?.length === rows),
        version: (name) => found.get(name)?.version ?? null,
        value: (name) => found.get(name)?.value,
        lastSeq: (stream) => lastSeqs.get(stream) ?? (lastSeqs.has(stream) ? null : 0),
      };
    },
  };
}

/** Neighbours, by name, that are locked in the same way: so all locks are taken in the order of the names. */
function runsOf(partitions: ReadonlyMap<string, boolean>): [names: string[], written: boolean][] {
  const runs: [names: string[], written: boolean][] = [];
  for (const [name, written] of [...partitions].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const last = runs.at(-1);
    if (last?.[1] === written) last[0].push(name);
    else runs.push([[name], written]);
  }
  return runs;
}

/**
 * The statements that write a group and commit it.
 *
 * @param xid the transaction, which is the version of what it writes
 * @param id of the commit, by which its outcome can be looked up
 */
export function writeCommit(group: CommitGroup, xid: string, id: string): string {
  const statements: string[] = [];
  const records: StoredRecord[] = [];
  for (const [partition, writes] of group.writes) {
    const deleted: string[] = [];
    for (const [key, value] of writes) {
      if (value === null) deleted.push(key);
      else records.push({ partition, key, value });
    }
    if (deleted.length > 0)
      statements.push(
        `delete from collab.records where partition = ${quote(partition)} and key = any(${quoteArray(deleted)})`,
      );
  }
  if (records.length > 0) statements.push(upsertRecords(records, `'${xid}'`));
  const events = keptEvents(group);
  if (events.length > 0) statements.push(insertEvents(events));
  if (group.growth.size > 0) {
    const rows = [...group.growth].map(([stream, seq]) => `(${quote(stream)},${seq ?? 'null'}::bigint)`);
    statements.push(
      `update collab.streams s set last_seq = coalesce(g.seq, last_seq), ended = g.seq is null, commit = '${xid}'
        from (values ${rows.join()}) g (stream, seq) where s.stream = g.stream`,
    );
  }
  statements.push(`insert into collab.commits (id) values ('${id}')`, 'commit');
  return statements.join(';\n');
}

/** The events of a group, without those of streams that end by it. */
export function keptEvents({ events, growth }: CommitGroup): readonly AppendedEvent[] {
  return events.filter(({ stream }) => growth.get(stream) !== null);
}

/**
 * Looks a commit up whose answer was lost: the row is `f` if it was committed. Otherwise it is claimed (`t`), so that a
 * COMMIT that is still on its way can no longer succeed; one that runs is waited for, for at most `lock_timeout`.
 */
export function lookUpCommit(id: string): string {
  return `begin; set local lock_timeout = '5s';
    insert into collab.commits (id, claimed) values ('${id}', true) on conflict do nothing;
    select claimed from collab.commits where id = '${id}';
    commit`;
}
