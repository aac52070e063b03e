/**
 * Texts of PostgreSQL cannot have U+0000. JSON never has that character, nor U+0001, which begins an escape here: so
 * values that are JSON are stored as they are.
 */
const ESCAPE = '\u0001';
const NUL = '\u0000';

/** A value or event as it is stored. The inverse is `decodeText`. */
export function encodeText(text: string): string {
  if (!text.includes(NUL) && !text.includes(ESCAPE)) return text;
  return text.replaceAll(ESCAPE, `${ESCAPE}1`).replaceAll(NUL, `${ESCAPE}0`);
}

/** A value or event as it was before `encodeText`. */
export function decodeText(stored: string): string {
  if (!stored.includes(ESCAPE)) return stored;
  return stored.replaceAll(`${ESCAPE}0`, NUL).replaceAll(`${ESCAPE}1`, ESCAPE);
}
