import { invalidField } from '../../model/errors.ts';
import type { UserKind } from '../../model/user.ts';

/** The list that a query is for, which determines the filters and the default order. */
export type ListKind = 'threads' | 'comments' | 'rooms' | 'users' | 'moderation' | 'notifications';

/**
 * Filters, all of which must match. Only those of the kind of list are set. Times are ISO 8601 UTC with milliseconds,
 * inclusive.
 */
export interface Filters {
  resolved?: boolean;
  unread?: boolean;
  userId?: string;
  roomId?: string;
  participantId?: string;
  mentions?: string;
  createdSince?: string;
  updatedSince?: string;
  seenSince?: string;
  prefix?: string;
  q?: string;
  kind?: UserKind;
  /** `decided` are those that were approved or rejected. */
  state?: 'held' | 'reported' | 'decided';
  /** `metadata.<key>=<value>` pairs, sorted by key. */
  metadata?: readonly (readonly [key: string, value: string])[];
}

/** A parsed query of a list. */
export interface ListQuery {
  readonly list: ListKind;
  /** 1 to 1 000; null if none was given, which means the whole list up to `listHardCap`. */
  readonly limit: number | null;
  /** As sent; it is validated when the list is read. */
  readonly cursor: string | null;
  readonly sort: 'createdAt' | 'updatedAt';
  readonly order: 'asc' | 'desc';
  readonly filters: Readonly<Filters>;
}

/** One page of a list: `{"items":[…]}`, with `nextCursor` in it if there are more items. */
export interface Page {
  readonly text: string | Uint8Array;
  readonly nextCursor: string | null;
}

const MAX_LIMIT = 1_000;
const MAX_TEXT_LENGTH = 256;
const MAX_ROOM_ID_LENGTH = 512;

const filterNames: Readonly<Record<ListKind, readonly (keyof Filters)[]>> = {
  threads: ['resolved', 'userId', 'participantId', 'mentions', 'createdSince', 'updatedSince', 'metadata'],
  comments: ['userId', 'mentions', 'createdSince', 'updatedSince', 'metadata'],
  rooms: ['updatedSince', 'prefix', 'metadata'],
  users: ['q', 'seenSince', 'kind', 'metadata'],
  moderation: ['state', 'userId', 'roomId'],
  notifications: ['unread'],
};

/**
 * Parses the query of a list. Unknown parameters are ignored, a `limit` over 1 000 counts as 1 000, and the first of
 * repeated parameters counts. Throws `invalid_request`, which names the parameter with an invalid value.
 */
export function parseListQuery(search: URLSearchParams, list: ListKind): ListQuery {
  return {
    list,
    limit: parseLimit(search.get('limit')),
    cursor: search.get('cursor'),
    sort: oneOf('sort', search.get('sort'), ['createdAt', 'updatedAt']) ?? 'createdAt',
    order:
      oneOf('order', search.get('order'), ['asc', 'desc']) ??
      (list === 'comments' || list === 'moderation' ? 'asc' : 'desc'),
    filters: parseFilters(search, list),
  };
}

/** Whether a query filters its list. */
export function hasFilters({ filters }: ListQuery): boolean {
  for (const name in filters) if (Object.hasOwn(filters, name)) return true;
  return false;
}

/** Whether a query is for the first page of an unfiltered list, which is cached. */
export function isUnfilteredFirstPage(query: ListQuery): boolean {
  return query.cursor === null && !hasFilters(query);
}

function parseFilters(search: URLSearchParams, list: ListKind): Filters {
  const filters: Filters = {};
  if (search.size === 0) return filters;
  for (const name of filterNames[list]) {
    if (name === 'metadata') {
      const pairs = parseMetadataFilters(search);
      if (pairs.length > 0) filters.metadata = pairs;
      continue;
    }
    const value = search.get(name);
    if (value !== null) setFilter(filters, name, value);
  }
  return filters;
}

function setFilter(filters: Filters, name: Exclude<keyof Filters, 'metadata'>, value: string): void {
  switch (name) {
    case 'resolved':
      filters.resolved = oneOf(name, value, ['true', 'false']) === 'true';
      break;
    case 'unread':
      filters.unread = oneOf(name, value, ['true', 'false']) === 'true';
      break;
    case 'kind':
      filters.kind = oneOf(name, value, ['user', 'bot']);
      break;
    case 'state':
      filters.state = oneOf(name, value, ['held', 'reported', 'decided']);
      break;
    case 'createdSince':
    case 'updatedSince':
    case 'seenSince':
      filters[name] = parseTime(name, value);
      break;
    case 'roomId':
      filters.roomId = parseText(name, value, MAX_ROOM_ID_LENGTH);
      break;
    default:
      filters[name] = parseText(name, value, MAX_TEXT_LENGTH);
  }
}

function parseMetadataFilters(search: URLSearchParams): [string, string][] {
  const pairs: [string, string][] = [];
  for (const [name, value] of search) {
    if (name === 'metadata.') throw invalidField('metadata.<key>', 'must name a key of at least 1 character');
    if (name.startsWith('metadata.')) pairs.push([name.slice('metadata.'.length), value]);
  }
  return pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
}

function parseLimit(text: string | null): number | null {
  if (text === null) return null;
  const limit = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  if (limit < 1) throw invalidField('limit', `must be an integer between 1 and ${MAX_LIMIT}`, text);
  return Math.min(limit, MAX_LIMIT);
}

function parseText(name: string, value: string, most: number): string {
  if (value.length < 1 || value.length > most)
    throw invalidField(name, `must be 1 to ${most} characters`, value.length);
  return value;
}

function oneOf<const T extends string>(name: string, value: string | null, choices: readonly T[]): T | undefined {
  if (value === null) return undefined;
  const choice = choices.find((candidate) => candidate === value);
  if (choice === undefined) throw invalidField(name, `must be one of ${choices.join(', ')}`, value);
  return choice;
}

const ISO_TIME = /^(\d{4})-(\d\d)-(\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d))?$/;

/** An ISO 8601 time or day as UTC with milliseconds. Throws `invalid_request`, which names the field. */
export function parseTime(name: string, value: string): string {
  const match = ISO_TIME.exec(value);
  const ms = match === null ? Number.NaN : Date.parse(value);
  if (match === null || Number.isNaN(ms) || Number(match[3]) > daysIn(Number(match[1]), Number(match[2]))) {
    throw invalidField(name, 'must be an ISO 8601 time such as 2025-01-31T12:00:00.000Z', value);
  }
  return new Date(ms).toISOString();
}

function daysIn(year: number, month: number): number {
  return new Date(Date.UTC(year, month, 0)).getUTCDate();
}
