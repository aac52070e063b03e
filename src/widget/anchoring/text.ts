/** The length of a quote, in characters. */
export const QUOTE_LENGTH = 120;
const SPACES = /\s\s|[^\S ]/;
/** At most this many nodes of an element are read for its text. */
const MAX_NODES = 200;
/** Elements whose text is not shown. */
const UNSEEN = new Set(['script', 'style', 'noscript', 'template']);

/** The beginning of the text of an element, with single spaces: at most `length` characters. Empty if it has none. */
export function textOf(element: Element, length = QUOTE_LENGTH): string {
  if (element.childElementCount === 0)
    return shorten(UNSEEN.has(element.localName) ? '' : (element.textContent ?? '').slice(0, 4 * length), length);
  const walker = element.ownerDocument.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  let text = '';
  for (let nodes = 0; nodes < MAX_NODES && text.length <= 2 * length; nodes += 1) {
    const node = walker.nextNode();
    if (node === null) break;
    if (!isSeen(node)) continue;
    const piece = (node.nodeValue ?? '').slice(0, 4 * length);
    text += piece.trim() === '' ? ' ' : piece;
  }
  return shorten(text, length);
}

/** Whether a node of text is shown, as far as its parent says. */
export function isSeen(node: Node): boolean {
  return !UNSEEN.has(node.parentElement?.localName ?? '');
}

/** A text with single spaces, at most `length` characters, without half a surrogate pair. */
export function shorten(text: string, length: number): string {
  const trimmed = text.trim();
  const single = SPACES.test(trimmed) ? trimmed.replaceAll(/\s+/g, ' ') : trimmed;
  return (single.length <= length ? single : single.slice(0, length).trim()).toWellFormed();
}
