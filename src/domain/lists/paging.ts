import { hash } from 'node:crypto';
import { yieldToEventLoop } from '../../lib/concurrency/event-loop.ts';
import { CollabError } from '../../model/errors.ts';
import type { Entry, Reader } from '../../ports/store.ts';
import type { ListQuery, Page } from './list-query.ts';

/** The position of a row in a list: by sort key, then by id. Both are printable ASCII. */
interface RowKey {
  readonly sortKey: string;
  readonly id: string;
}

interface Row<T> extends RowKey {
  readonly item: T;
}

/**
 * A list whose index has the keys `<prefix><time>~<id>` in one partition, where times sort as text. What its entries
 * contain is not read again: a promise per item costs as much as half of all other work for a page of 50 comments.
 */
export type IndexedList<T> = ListRows<T> & ListTexts<T>;

/** The rows of a list: items that the entries of the index contain, or name. */
export type ListRows<T> = ListBounds<T> &
  (
    | {
        /** The item that an entry contains; null if the list does not have it. */
        readonly parse: (entry: Entry) => T | null;
        readonly load?: never;
      }
    | {
        readonly parse?: never;
        /** The item that an entry names; null if it was deleted in the meantime or the list does not have it. */
        readonly load: (entry: Entry) => Promise<T | null>;
      }
  );

/** The JSON texts of items: in hand, or to be read. */
type ListTexts<T> =
  | { readonly text: (item: T) => string; readonly readText?: never }
  | {
      readonly text?: never;
      /**
       * @param remaining how many characters the page may still grow
       * @returns null for an item that is longer, before which the page ends
       */
      readonly readText: (item: T, remaining: number) => Promise<string | null>;
    };

interface ListBounds<T> {
  readonly partition: string;
  readonly prefix: string;
  /** Whether many entries may not pass a filter: more of them are read at once then. */
  readonly isFiltered: boolean;
  updatedAt(item: T): string;
  /** A bound on the text of the items that replaces `MAX_PAGE_CHARS`. */
  readonly bound?: TextBound | undefined;
  /** The text of the page before the array of items; `{"items":` by default. */
  readonly head?: string;
  /** The name of the list in the hash of a cursor; its partition by default. */
  readonly name?: string;
}

/** The maximum length of a text, and the error for a longer one. Reading stops soon after the bound. */
export interface TextBound {
  /** In characters (UTF-16 units). */
  readonly maxChars: number;
  readonly tooLong: () => CollabError;
}

/** A page whose text is a string. */
export type TextPage = Page & { readonly text: string };

/**
 * The maximum number of characters of items in a page. A longer list continues with `nextCursor`, whatever its limit.
 */
export const MAX_PAGE_CHARS = 16 * 1024 * 1024;

const CHUNK = 1_000;
/**
 * Items between checks whether a long page must let other requests go first. A usual page of 50 has no more than one.
 */
const ITEMS_PER_CHECK = 32;

/**
 * Reads one page of an indexed list: by `createdAt` along the index, by `updatedAt` by loading and sorting the whole
 * list. With a `list.bound` a longer page is refused; without one it ends at `MAX_PAGE_CHARS`, but has at least one
 * item. Throws `invalid_cursor`, what `list.text` throws, and the error of `list.bound`.
 *
 * @param cap the maximum number of items if the query has no limit
 */
export async function readPage<T>(
  reader: Reader,
  query: ListQuery,
  cap: number,
  list: IndexedList<T>,
): Promise<TextPage> {
  const cursor = decodePageCursor(query, listNameOf(list));
  const limit = query.limit ?? cap;
  if (query.sort === 'createdAt')
    return renderPage(query, list, limit, await readRows(reader, query, cursor, limit, list));
  const rows = await readRows(reader, { ...query, order: 'asc' }, null, Infinity, list);
  return renderPage(query, list, limit, sortRowsAfter(rows, query.order, cursor));
}

const listNameOf = ({ name, partition }: Pick<IndexedList<unknown>, 'name' | 'partition'>): string => name ?? partition;

/** Up to `limit + 1` rows in index order; fewer if the index entries alone are longer than a page. */
async function readRows<T>(
  reader: Reader,
  query: ListQuery,
  cursor: RowKey | null,
  limit: number,
  list: IndexedList<T>,
): Promise<Row<T>[]> {
  const rows: Row<T>[] = [];
  const reverse = query.order === 'desc';
  let read = 0;
  let chars = 0;
  let after = cursor === null ? undefined : `${list.prefix}${cursor.sortKey}~${cursor.id}`;
  for (;;) {
    const count = list.isFiltered ? CHUNK : Math.min(CHUNK, limit + 1 - rows.length);
    const entries = await reader.range(list.partition, { prefix: list.prefix, after, reverse, limit: count });
    for (const entry of entries) {
      const item = list.parse === undefined ? await list.load(entry) : list.parse(entry);
      read += 1;
      if (read % ITEMS_PER_CHECK === 0) await yieldToEventLoop();
      if (item === null) continue;
      const tilde = entry.key.indexOf('~');
      const sortKey = query.sort === 'createdAt' ? entry.key.slice(list.prefix.length, tilde) : list.updatedAt(item);
      rows.push({ sortKey, id: entry.key.slice(tilde + 1), item });
      chars += entry.value.length;
      if (rows.length > limit || (limit !== Infinity && chars > MAX_PAGE_CHARS && rows.length > 1)) return rows;
    }
    if (entries.length < count) return rows;
    after = entries.at(-1)?.key;
  }
}

function sortRowsAfter<T>(rows: readonly Row<T>[], order: 'asc' | 'desc', cursor: RowKey | null): Row<T>[] {
  const direction = order === 'asc' ? 1 : -1;
  const compare = (a: RowKey, b: RowKey): number =>
    direction * (compareText(a.sortKey, b.sortKey) || compareText(a.id, b.id));
  const remaining = cursor === null ? [...rows] : rows.filter((row) => compare(row, cursor) > 0);
  return remaining.sort(compare);
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

async function renderPage<T>(
  query: ListQuery,
  list: IndexedList<T>,
  limit: number,
  rows: readonly Row<T>[],
): Promise<TextPage> {
  const texts: string[] = [];
  let remaining = list.bound?.maxChars ?? MAX_PAGE_CHARS;
  for (const { item } of rows) {
    if (texts.length === limit) break;
    const text = list.text === undefined ? await list.readText(item, remaining) : list.text(item);
    if (texts.length % ITEMS_PER_CHECK === ITEMS_PER_CHECK - 1) await yieldToEventLoop();
    if (text === null || text.length > remaining) {
      if (list.bound !== undefined) throw list.bound.tooLong();
      if (text === null || texts.length > 0) break;
    }
    texts.push(text);
    remaining -= text.length;
  }
  const body = `${list.head ?? '{"items":'}[${texts.join(',')}]`;
  const last = rows[texts.length - 1];
  if (texts.length === rows.length || last === undefined) return { text: `${body}}`, nextCursor: null };
  const nextCursor = encodePageCursor(query, listNameOf(list), last);
  return { text: `${body},"nextCursor":"${nextCursor}"}`, nextCursor };
}

function encodePageCursor(query: ListQuery, listName: string, last: RowKey): string {
  const cursor = { v: 1, k: last.sortKey, id: last.id, f: queryHash(query, listName) };
  return Buffer.from(JSON.stringify(cursor)).toString('base64url');
}

const MAX_PAGE_CURSOR_LENGTH = 4_096;

function decodePageCursor(query: ListQuery, listName: string): RowKey | null {
  if (query.cursor === null) return null;
  const cursor = query.cursor.length > MAX_PAGE_CURSOR_LENGTH ? null : parsePageCursor(query.cursor);
  if (cursor === null || cursor.f !== queryHash(query, listName))
    throw new CollabError('invalid_cursor', 'Invalid cursor');
  return { sortKey: cursor.k, id: cursor.id };
}

function parsePageCursor(text: string): { k: string; id: string; f: string } | null {
  let cursor: { v?: unknown; k?: unknown; id?: unknown; f?: unknown } | null;
  try {
    cursor = JSON.parse(Buffer.from(text, 'base64url').toString()) as typeof cursor;
  } catch {
    return null;
  }
  if (cursor?.v !== 1 || typeof cursor.k !== 'string' || typeof cursor.id !== 'string' || typeof cursor.f !== 'string')
    return null;
  if (!/^[0-9a-zT:.Z-]{1,32}$/.test(cursor.k) || !/^[\x21-\x7e]{1,1500}$/.test(cursor.id)) return null;
  return { k: cursor.k, id: cursor.id, f: cursor.f };
}

/** Ties a cursor to one list, its filters and its order. */
function queryHash(query: ListQuery, listName: string): string {
  return hash(
    'sha256',
    JSON.stringify([query.list, listName, query.sort, query.order, query.filters]),
    'base64url',
  ).slice(0, 16);
}
