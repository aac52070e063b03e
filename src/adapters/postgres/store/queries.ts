import type { Entry, RangeOptions, StoredEvent } from '../../../ports/store.ts';
import { quote, quoteArray } from '../connection.ts';
import type { Query } from './query-batch.ts';
import type { VersionedValue } from './versioned-value.ts';
import { decodeText } from '../stored-text.ts';

/** A record by its name. */
export interface RecordName {
  readonly partition: string;
  readonly key: string;
}

/** The position of the last event of a stream and of the oldest that is kept. */
export interface StreamBounds {
  readonly last: number;
  readonly oldest: number;
}

/** Reads records; null for one that does not exist. */
export const recordQuery: Query<RecordName, VersionedValue | null> = {
  sql: (wanted) =>
    `select k.n, r.value, r.version from unnest(
        ${quoteArray(wanted.map(({ partition }) => partition))}, ${quoteArray(wanted.map(({ key }) => key))}
      ) with ordinality k (partition, key, n)
      cross join lateral (
        select value, version from collab.records where partition = k.partition and key = k.key offset 0
      ) r`,
  answers: (rows, wanted) => {
    const answers: (VersionedValue | null)[] = wanted.map(() => null);
    for (const [n, value, version] of rows)
      answers[Number(n) - 1] = { value: decodeText(value ?? ''), version: version ?? '' };
    return answers;
  },
};

/** Reads the versions of records; null for one that does not exist. */
export const recordVersionQuery: Query<RecordName, string | null> = {
  sql: (wanted) =>
    `select k.n, r.version from unnest(
        ${quoteArray(wanted.map(({ partition }) => partition))}, ${quoteArray(wanted.map(({ key }) => key))}
      ) with ordinality k (partition, key, n)
      cross join lateral (
        select version from collab.records where partition = k.partition and key = k.key offset 0
      ) r`,
  answers: (rows, wanted) => {
    const answers: (string | null)[] = wanted.map(() => null);
    for (const [n, version] of rows) answers[Number(n) - 1] = version ?? '';
    return answers;
  },
};

/** Reads the versions of partitions; empty for one without a row. */
export const versionQuery: Query<string, string> = {
  sql: (wanted) =>
    `select partition, version from collab.partitions where partition = any(${quoteArray([...new Set(wanted)])})`,
  answers: (rows, wanted) => {
    const versions = new Map(rows.map(([partition, version]) => [partition, version]));
    return wanted.map((partition) => versions.get(partition) ?? '');
  },
};

/** Reads the bounds of streams. */
export const streamQuery: Query<string, StreamBounds> = {
  sql: (wanted) =>
    `select stream, last_seq, oldest_seq from collab.streams
      where stream = any(${quoteArray([...new Set(wanted)])}) and not ended`,
  answers: (rows, wanted) => {
    const bounds = new Map(
      rows.map(([stream, last, oldest]) => [stream, { last: Number(last), oldest: Number(oldest) }]),
    );
    return wanted.map((stream) => bounds.get(stream) ?? { last: 0, oldest: 1 });
  },
};

/** Reads a range of a partition. */
export function rangeQuery(partition: string, { prefix, after, reverse, limit }: RangeOptions): Query<null, Entry[]> {
  const conditions = [`partition = ${quote(partition)}`, ...prefixConditions('key', prefix)];
  if (after !== undefined) conditions.push(`key ${reverse === true ? '<' : '>'} ${quote(after)}`);
  const sql = `select key, value from collab.records where ${conditions.join(' and ')}
    order by key ${reverse === true ? 'desc' : 'asc'}${limitClause(limit)}`;
  return one(sql, (rows) => rows.map(([key, value]) => ({ key: key ?? '', value: decodeText(value ?? '') })));
}

/** Reads the names of partitions that have records. */
export function partitionsQuery(
  prefix: string,
  { after, limit }: Pick<RangeOptions, 'after' | 'limit'>,
): Query<null, string[]> {
  const conditions = ['true', ...prefixConditions('p.partition', prefix)];
  if (after !== undefined) conditions.push(`p.partition > ${quote(after)}`);
  const sql = `select p.partition from collab.partitions p
    cross join lateral (select from collab.records r where r.partition = p.partition limit 1) r
    where ${conditions.join(' and ')} order by p.partition${limitClause(limit)}`;
  return one(sql, (rows) => rows.map(([partition]) => partition ?? ''));
}

/** Reads the events after a position. */
export function eventsQuery(
  stream: string,
  since: number,
  limit: number,
  maxChars: number,
): Query<null, StoredEvent[]> {
  const page = `select e.seq, e.text from collab.streams s cross join lateral (
      select seq, text from collab.events
      where stream = s.stream and seq > greatest(${Math.trunc(since)}, s.oldest_seq - 1) and seq <= s.last_seq
      order by seq${limitClause(limit)}
    ) e where s.stream = ${quote(stream)} and not s.ended`;
  // Bounds what is sent by the number of bytes, which the server knows; it would have to count the characters. A UTF-16
  // unit has three at most.
  const sql = Number.isFinite(maxChars)
    ? `select seq, text from (
        select seq, text, sum(octet_length(text)) over (order by seq) - octet_length(text) as before from (${page}) e
      ) e where before < ${3 * Math.trunc(maxChars)} order by seq`
    : `${page} order by e.seq`;
  return one(sql, (rows) => {
    const events: StoredEvent[] = [];
    let chars = 0;
    for (const [seq, stored] of rows) {
      const text = decodeText(stored ?? '');
      chars += text.length;
      if (events.length > 0 && chars > maxChars) break;
      events.push({ seq: Number(seq), text });
    }
    return events;
  });
}

function one<V>(sql: string, parse: (rows: Parameters<Query<null, V>['answers']>[0]) => V): Query<null, V> {
  return { sql: () => sql, answers: (rows) => [parse(rows)] };
}

/** Names are printable ASCII, so U+007F is after every name that begins with the prefix. */
function prefixConditions(column: string, prefix = ''): string[] {
  return prefix === '' ? [] : [`${column} >= ${quote(prefix)}`, `${column} < ${quote(`${prefix}\u007f`)}`];
}

function limitClause(limit = Infinity): string {
  return Number.isFinite(limit) ? ` limit ${Math.max(0, Math.trunc(limit))}` : '';
}
