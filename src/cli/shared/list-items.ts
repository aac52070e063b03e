import { type ListKind, type ListQuery, type Page, parseListQuery } from '../../domain/lists/list-query.ts';
import { integerOption } from '../option-values.ts';

/** The largest number of items in one list. */
export const MAX_LISTED = 100_000;
/** The largest number of items in one page. */
const PAGE = 1_000;

/** The help of the option --limit, for the things of a list. */
export const limitHelp = (things: string): string => `The most ${things} to list, 1 to ${MAX_LISTED}.`;

/** The items of a list, and whether there are more than those. */
export interface Listed<T> {
  readonly items: readonly T[];
  readonly more: boolean;
}

/**
 * Reads a list page by page, up to the value of --limit.
 *
 * @param filters parameters of the list as in its URL; undefined for those that were not given
 * @param read one page of the list
 * @throws {Failure} for an invalid limit
 */
export async function listItems<T>(
  list: ListKind,
  filters: Readonly<Record<string, string | undefined>>,
  limit: string,
  read: (query: ListQuery) => Promise<Page>,
): Promise<Listed<T>> {
  const most = integerOption('limit', limit, 1, MAX_LISTED);
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(filters)) if (value !== undefined) search.set(name, value);
  const items: T[] = [];
  for (;;) {
    search.set('limit', String(Math.min(PAGE, most - items.length)));
    const { text, nextCursor } = await read(parseListQuery(search, list));
    items.push(...(JSON.parse(typeof text === 'string' ? text : Buffer.from(text).toString()) as { items: T[] }).items);
    if (nextCursor === null || items.length >= most) return { items, more: nextCursor !== null };
    search.set('cursor', nextCursor);
  }
}

/** A line that says that a list is cut off; empty if it is not. */
export function moreText({ items, more }: Listed<unknown>): string {
  return more ? `\n\nThere are more than these ${items.length}: list them with --limit.` : '';
}
