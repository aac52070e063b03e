/**
 * A 32-bit hash of a text (FNV-1a over UTF-16 code units), the same in every process. Fast, but not cryptographic:
 * anyone can construct collisions.
 *
 * @param start the hash of a preceding text, to hash both
 */
export function fnv1a(text: string, start = 0x811c9dc5): number {
  let value = start;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  // A terminator that is no UTF-16 code unit, so that ('ab', 'c') and ('a', 'bc') hash differently.
  return Math.imul(value ^ 0x10000, 0x01000193);
}
