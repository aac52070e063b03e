import { CollabError } from '../../model/errors.ts';
import { isDeeperThan } from '../../lib/json-depth.ts';

/** Most levels of arrays and objects in JSON that is taken from outside: far below where recursion over it would fail. */
export const MAX_JSON_DEPTH = 64;

/**
 * The value of JSON text that comes from outside. Everything that a client sends goes through here, so that no value
 * deeper than `MAX_JSON_DEPTH` reaches a function that recurses. Throws `invalid_json`, whose message names the bound.
 *
 * @param what begins the message, e.g. `The body`
 */
export function parseJson(text: string, what: string): unknown {
  if (isDeeperThan(text, MAX_JSON_DEPTH)) throw new CollabError('invalid_json', `${what} must not nest arrays and objects more than ${MAX_JSON_DEPTH} levels deep`);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new CollabError('invalid_json', `${what} is not valid JSON`);
  }
}
