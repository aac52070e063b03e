import { CollabError } from '../../model/errors.ts';
import { formatValue } from '../../lib/format-value.ts';
import { isDeeperThan } from '../../lib/json-depth.ts';

/**
 * The maximum nesting of arrays and objects in JSON from clients: far below the depth at which recursion would fail.
 */
export const MAX_JSON_DEPTH = 64;

/** How much of an invalid text a message shows: enough to recognise a form or a page, and no secret. */
const SHOWN_START = 12;

/**
 * Parses JSON text from a client. All JSON that clients send is parsed here, so that no value deeper than
 * `MAX_JSON_DEPTH` reaches a recursive function. Throws `invalid_json`, whose message names the bound.
 *
 * @param what the subject of the message, e.g. `The body`
 */
export function parseJson(text: string, what: string): unknown {
  if (isDeeperThan(text, MAX_JSON_DEPTH))
    throw new CollabError(
      'invalid_json',
      `${what} must not nest arrays and objects more than ${MAX_JSON_DEPTH} levels deep`,
    );
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new CollabError(
      'invalid_json',
      `${what} is not valid JSON; it begins with ${formatValue(text.slice(0, SHOWN_START))}`,
    );
  }
}

/** The value of JSON text that may be anything, such as that of a damaged record; undefined if it is not valid JSON. */
export function jsonOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
