/** A character of a word: a name beside it is a part of another word. */
const WORD_BEFORE = /[\p{L}\p{N}\p{M}_]$/u;
const WORD_BEHIND = /^[\p{L}\p{N}\p{M}]/u;

/**
 * The longest of the names that the `@` at this index is followed by; null if there is none, or it is a part of a
 * longer word.
 */
export function nameAt(text: string, at: number, names: Iterable<string>): string | null {
  if (WORD_BEFORE.test(text.slice(Math.max(0, at - 2), at))) return null;
  let longest = '';
  for (const name of names) {
    const end = at + 1 + name.length;
    if (name.length > longest.length && text.startsWith(name, at + 1) && !WORD_BEHIND.test(text.slice(end, end + 2)))
      longest = name;
  }
  return longest === '' ? null : longest;
}
