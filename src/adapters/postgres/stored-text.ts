import { jsonOrUndefined } from '../../domain/input/json.ts';

/** Begins a text that is stored as JSON. No JSON has this character, so values that are JSON are stored as they are. */
const ESCAPED = '\u0001';
const NUL = '\u0000';

/** A text as PostgreSQL can store it: it knows neither U+0000 nor half a surrogate pair. The inverse is `decodeText`. */
export function encodeText(text: string): string {
  const isStorable = !text.includes(NUL) && !text.startsWith(ESCAPED) && text.isWellFormed();
  return isStorable ? text : ESCAPED + JSON.stringify(text);
}

/**
 * A text as it was before `encodeText`. What another program has written and `encodeText` would not have is taken as it
 * is, so that one such row fails none of the others that are read together with it.
 */
export function decodeText(stored: string): string {
  if (!stored.startsWith(ESCAPED)) return stored;
  const text = jsonOrUndefined(stored.slice(ESCAPED.length));
  return typeof text === 'string' ? text : stored;
}
