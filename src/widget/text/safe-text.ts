/**
 * Characters that change how the text around them is shown without being visible themselves: C0 and C1 controls but tab
 * and line feed, zero-width spaces, bidirectional embeddings, overrides and isolates, and tags outside of a flag.
 * Zero-width joiner and non-joiner stay: emoji and Persian need them.
 */
const INVISIBLE =
  /(?![\t\n])[\p{Cc}\u{AD}\u{61C}\u{180E}\u{200B}\u{200E}\u{200F}\u{202A}-\u{202E}\u{2060}-\u{2064}\u{2066}-\u{206F}\u{FEFF}\u{FFF9}-\u{FFFB}]/gu;

/** More combining marks than this on one character are dropped: they would paint over the lines around it. */
const STACKED_MARKS = /(\p{M}{4})\p{M}+/gu;

/** User text as it may be shown: without characters that hide or reorder what is around it. Line breaks are `\n`. */
export function safeText(text: string): string {
  return text.replaceAll('\r\n', '\n').replaceAll('\r', '\n').replaceAll(INVISIBLE, '').replaceAll(STACKED_MARKS, '$1');
}

/**
 * Like `safeText`, for a text of one line such as a name: white space becomes single spaces, at most `maxLength`
 * characters.
 */
export function safeLine(text: string, maxLength = 80): string {
  const line = safeText(text).replaceAll(/\s+/g, ' ').trim();
  return shorten(line, maxLength);
}

/** The beginning of a text, with `…` where it was cut; never a part of what is seen as one character. */
export function shorten(text: string, maxLength: number): string {
  return text.length > maxLength
    ? `${text.slice(0, new Intl.Segmenter().segment(text).containing(maxLength - 1)?.index)}…`
    : text;
}
