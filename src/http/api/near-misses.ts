import type { TSchema } from 'typebox';
import { isRecord } from '../../domain/input/validate.ts';
import { closestMatch } from '../../lib/closest-match.ts';
import { type CollabError, invalidField } from '../../model/errors.ts';
import type { ApiRequest } from './api-request.ts';
import type { Route } from './route.ts';

/** A name that the route does not know, and the known one that it resembles. */
interface NearMiss {
  readonly path: string;
  readonly meant: string;
}

/** The names that are compared, which also may be in a header. */
const PLAIN_NAME = /^[\w.-]{1,60}$/;
const MAX_MISSES = 5;
/** Filters by metadata are `metadata.<key>`. */
const METADATA_FILTER = 'metadata.';

/**
 * Looks for misspelled names of parameters and fields, which are ignored otherwise (decision 57). Adds `Collab-Hint` to the
 * headers of the response, or throws `invalid_request` if the environment is strict.
 */
export function checkNames(request: ApiRequest, route: Route): void {
  const misses: NearMiss[] = [];
  if (request.head.query !== '' && route.query !== undefined) checkQuery(request.search, route.query.map(({ name }) => name), misses);
  if (route.body !== undefined) checkFields(route.body, request.body, '', misses);
  const [first] = misses;
  if (first === undefined) return;
  if (request.caller?.environment.settings.strict === true) throw nearMissError(first);
  request.headers.push(['Collab-Hint', misses.slice(0, MAX_MISSES).map(({ path, meant }) => `${path} is unknown and was ignored: did you mean ${meant}?`).join(' ')]);
}

function nearMissError({ path, meant }: NearMiss): CollabError {
  return invalidField(path, `is unknown: did you mean ${meant}?`);
}

function checkQuery(search: URLSearchParams, known: readonly string[], misses: NearMiss[]): void {
  for (const name of search.keys()) if (!known.includes(name) && !name.startsWith(METADATA_FILTER)) checkName('', name, known.filter((candidate) => !search.has(candidate)), misses);
}

/** Looks into nested objects, not into arrays. */
function checkFields(schema: TSchema, value: unknown, path: string, misses: NearMiss[]): void {
  const { properties }: { properties?: unknown } = schema;
  if (!isRecord(properties) || !isRecord(value)) return;
  for (const name in value) {
    if (!Object.hasOwn(properties, name)) checkName(path, name, Object.keys(properties).filter((candidate) => !Object.hasOwn(value, candidate)), misses);
    else if (isRecord(value[name])) checkFields(properties[name] as TSchema, value[name], `${path}${name}.`, misses);
  }
}

/** @param candidates the known names that were not sent: a name that was sent too is not the one that is meant */
function checkName(path: string, name: string, candidates: readonly string[], misses: NearMiss[]): void {
  if (misses.length >= MAX_MISSES || !PLAIN_NAME.test(name)) return;
  const meant = closestMatch(name, candidates);
  if (meant !== undefined) misses.push({ path: `${path}${name}`, meant: `${path}${meant}` });
}
