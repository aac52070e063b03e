import { hash } from 'node:crypto';
import { CollabError } from '../errors.ts';
import type { Entry, Reader } from '../ports/store.ts';
import type { ListQuery, Page } from './list-query.ts';

/** Where a row stands in a list: by sort key, then id. Both are printable ASCII. */
interface Place {
  readonly sortKey: string;
  readonly id: string;
}

interface Row extends Place {
  readonly text: string;
}

/** A list whose index has the keys `<prefix><time>~<id>` in one partition, times being text in their order. */
export interface IndexedList<T> {
  readonly partition: string;
  readonly prefix: string;
  /** The item of an index entry; null when it is gone meanwhile or not to be shown. */
  load(entry: Entry): T | null | Promise<T | null>;
  /** Null when the query has no filters. */
  readonly matches: ((item: T) => boolean | Promise<boolean>) | null;
  updatedAt(item: T): string;
  /** JSON text of the item. */
  text(item: T): string;
}

/** An item of a list that is held in memory. */
export interface ListedItem {
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly id: string;
  text(): string;
}

const CHUNK = 1_000;

/**
 * One page of an indexed list. By `createdAt` it reads along the index; by `updatedAt` it loads and sorts the list.
 * Throws `invalid_cursor`.
 *
 * @param cap the most items of a page when the query has no limit
 */
export async function readPage<T>(reader: Reader, query: ListQuery, cap: number, list: IndexedList<T>): Promise<Page> {
  const cursor = decodeCursor(query, list.partition);
  const limit = query.limit ?? cap;
  if (query.sort === 'createdAt') return renderPage(query, list.partition, limit, await rowsAlong(reader, query, cursor, limit, list));
  const rows = await rowsAlong(reader, { ...query, order: 'asc' }, null, Infinity, list);
  return renderPage(query, list.partition, limit, sortedAfter(rows, query.order, cursor));
}

/** One page of a list that is held in memory, of items that pass its filters. `parent` names the list. Throws `invalid_cursor`. */
export function pageOf(query: ListQuery, parent: string, cap: number, items: readonly ListedItem[]): Page {
  const cursor = decodeCursor(query, parent);
  const byKey = new Map(items.map((item) => [item.id, item]));
  const places = items.map((item) => ({ sortKey: item[query.sort], id: item.id, text: '' }));
  const limit = query.limit ?? cap;
  const rows = sortedAfter(places, query.order, cursor).slice(0, limit + 1);
  return renderPage(query, parent, limit, rows.map((row) => ({ ...row, text: byKey.get(row.id)?.text() ?? 'null' })));
}

/** Up to `limit + 1` rows in the order of the index. */
async function rowsAlong<T>(reader: Reader, query: ListQuery, cursor: Place | null, limit: number, list: IndexedList<T>): Promise<Row[]> {
  const rows: Row[] = [];
  const reverse = query.order === 'desc';
  let after = cursor === null ? undefined : `${list.prefix}${cursor.sortKey}~${cursor.id}`;
  for (;;) {
    const wanted = list.matches === null && limit !== Infinity ? limit + 1 - rows.length : CHUNK;
    const entries = await reader.range(list.partition, { prefix: list.prefix, after, reverse, limit: wanted });
    for (const entry of entries) {
      const loaded = list.load(entry);
      const item = loaded instanceof Promise ? await loaded : loaded;
      if (item === null) continue;
      if (list.matches !== null && !(await list.matches(item))) continue;
      const tilde = entry.key.indexOf('~');
      const sortKey = query.sort === 'createdAt' ? entry.key.slice(list.prefix.length, tilde) : list.updatedAt(item);
      rows.push({ sortKey, id: entry.key.slice(tilde + 1), text: list.text(item) });
      if (rows.length > limit) return rows;
    }
    if (entries.length < wanted) return rows;
    after = entries.at(-1)?.key;
  }
}

function sortedAfter(rows: readonly Row[], order: 'asc' | 'desc', cursor: Place | null): Row[] {
  const direction = order === 'asc' ? 1 : -1;
  const compare = (a: Place, b: Place): number => direction * (compareText(a.sortKey, b.sortKey) || compareText(a.id, b.id));
  const left = cursor === null ? [...rows] : rows.filter((row) => compare(row, cursor) > 0);
  return left.sort(compare);
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function renderPage(query: ListQuery, parent: string, limit: number, rows: readonly Row[]): Page {
  const shown = rows.length > limit ? rows.slice(0, limit) : rows;
  const items = shown.map((row) => row.text).join(',');
  const last = shown.at(-1);
  if (rows.length <= limit || last === undefined) return { text: `{"items":[${items}]}`, nextCursor: null };
  const nextCursor = encodeCursor(query, parent, last);
  return { text: `{"items":[${items}],"nextCursor":"${nextCursor}"}`, nextCursor };
}

function encodeCursor(query: ListQuery, parent: string, place: Place): string {
  const cursor = { v: 1, k: place.sortKey, id: place.id, f: fingerprint(query, parent) };
  return Buffer.from(JSON.stringify(cursor)).toString('base64url');
}

const LONGEST_CURSOR = 4_096;

function decodeCursor(query: ListQuery, parent: string): Place | null {
  if (query.cursor === null) return null;
  const cursor = query.cursor.length > LONGEST_CURSOR ? null : parseCursor(query.cursor);
  if (cursor === null || cursor.f !== fingerprint(query, parent)) throw new CollabError('invalid_cursor', 'Invalid cursor');
  return { sortKey: cursor.k, id: cursor.id };
}

function parseCursor(text: string): { k: string; id: string; f: string } | null {
  let cursor: { v?: unknown; k?: unknown; id?: unknown; f?: unknown } | null;
  try {
    cursor = JSON.parse(Buffer.from(text, 'base64url').toString()) as typeof cursor;
  } catch {
    return null;
  }
  if (cursor?.v !== 1 || typeof cursor.k !== 'string' || typeof cursor.id !== 'string' || typeof cursor.f !== 'string') return null;
  if (!/^[0-9a-zT:.Z-]{1,32}$/.test(cursor.k) || !/^[\x21-\x7e]{1,1500}$/.test(cursor.id)) return null;
  return { k: cursor.k, id: cursor.id, f: cursor.f };
}

/** What ties a cursor to one list, its filters and its order. */
function fingerprint(query: ListQuery, parent: string): string {
  return hash('sha256', JSON.stringify([query.list, parent, query.sort, query.order, query.filters]), 'base64url').slice(0, 16);
}
