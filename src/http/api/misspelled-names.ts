import type { TSchema } from 'typebox';
import { isRecord } from '../../domain/input/validate.ts';
import { closestMatch } from '../../lib/closest-match.ts';
import { type CollabError, invalidField } from '../../model/errors.ts';
import type { ApiRequest } from './api-request.ts';
import type { Route } from './route.ts';

/** A name that the route does not know, and the known one that it resembles. */
interface Misspelling {
  readonly path: string;
  readonly meant: string;
}

/** What was found so far. */
interface Findings {
  readonly misspellings: Misspelling[];
  compared: number;
}

/** The names that are compared, which also may be in a header. */
const PLAIN_NAME = /^[\w.-]{1,60}$/;
const MAX_MISSPELLINGS = 5;
/** Unknown names of a request that are compared. A body of 256 KiB has room for 18 000. */
const MAX_COMPARED = 100;
/** Filters by metadata are `metadata.<key>`. */
const METADATA_FILTER = 'metadata.';

/**
 * Looks for misspelled names of parameters and fields, which are ignored otherwise (decision 57). Adds `Collab-Hint` to
 * the headers of the response, or throws `invalid_request` if the environment is strict.
 */
export function checkNames(request: ApiRequest, route: Route): void {
  const findings: Findings = { misspellings: [], compared: 0 };
  if (request.head.query !== '' && route.query !== undefined)
    checkQuery(
      request.search,
      route.query.map(({ name }) => name),
      findings,
    );
  if (route.body !== undefined) checkFields(route.body, request.body, '', findings);
  const { misspellings } = findings;
  const [first] = misspellings;
  if (first === undefined) return;
  if (request.caller?.environment.settings.strict === true) throw misspellingError(first);
  request.headers.push([
    'Collab-Hint',
    misspellings
      .slice(0, MAX_MISSPELLINGS)
      .map(({ path, meant }) => `${path} is unknown and was ignored: did you mean ${meant}?`)
      .join(' '),
  ]);
}

function misspellingError({ path, meant }: Misspelling): CollabError {
  return invalidField(path, `is unknown: did you mean ${meant}?`);
}

function checkQuery(search: URLSearchParams, known: readonly string[], findings: Findings): void {
  const candidates = known.filter((candidate) => !search.has(candidate));
  for (const name of search.keys()) {
    if (isDone(findings)) return;
    if (!known.includes(name) && !name.startsWith(METADATA_FILTER)) checkName('', name, candidates, findings);
  }
}

/** Looks into nested objects, not into arrays. */
function checkFields(schema: TSchema, value: unknown, path: string, findings: Findings): void {
  const { properties }: { properties?: unknown } = schema;
  if (!isRecord(properties) || !isRecord(value)) return;
  const candidates = Object.keys(properties).filter((candidate) => !Object.hasOwn(value, candidate));
  for (const name in value) {
    if (isDone(findings)) return;
    if (!Object.hasOwn(properties, name)) checkName(path, name, candidates, findings);
    else if (isRecord(value[name])) checkFields(properties[name] as TSchema, value[name], `${path}${name}.`, findings);
  }
}

/** @param candidates the known names that were not sent: a name that was sent too is not the one that is meant */
function checkName(path: string, name: string, candidates: readonly string[], findings: Findings): void {
  findings.compared++;
  if (!PLAIN_NAME.test(name)) return;
  const meant = closestMatch(name, candidates);
  if (meant !== undefined) findings.misspellings.push({ path: `${path}${name}`, meant: `${path}${meant}` });
}

function isDone({ misspellings, compared }: Findings): boolean {
  return misspellings.length >= MAX_MISSPELLINGS || compared >= MAX_COMPARED;
}
