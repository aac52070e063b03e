import type { Query } from './transport.ts';

/** The filters and order of a list (docs/api.md, "Lists"), and how many items to read at a time. */
export interface PageOptions {
  /** Items per request, 1 to 1 000. Default: 100. */
  readonly limit?: number | undefined;
  readonly sort?: 'createdAt' | 'updatedAt' | undefined;
  readonly order?: 'asc' | 'desc' | undefined;
  /** Any filter of the list, such as `resolved`, `userId` or `'metadata.ticket'`. */
  readonly [filter: string]: unknown;
}

interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor?: string;
}

/** The items of a list, read page after page as they are needed. Each iteration reads the list anew. */
export function pages<T>(read: (query: Query) => Promise<Page<T>>, options: PageOptions): AsyncIterable<T> {
  return { [Symbol.asyncIterator]: () => iterate(read, options) };
}

async function* iterate<T>(
  read: (query: Query) => Promise<Page<T>>,
  options: PageOptions,
): AsyncGenerator<T, void, undefined> {
  const query = { limit: 100, ...options } as Query;
  for (let cursor: string | undefined; ;) {
    const page = await read(cursor === undefined ? query : { ...query, cursor });
    yield* page.items;
    if (page.nextCursor === undefined) return;
    cursor = page.nextCursor;
  }
}
