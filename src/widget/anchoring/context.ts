import type { Position } from '../../model/thread.ts';

/** The text before and after an element, as in a TextQuoteSelector of the W3C. */
export interface Context {
  readonly before: string;
  readonly after: string;
}

/** The length of each side, in characters: of a row that ends with the same words as the others, some of its own are among them. */
const CONTEXT_LENGTH = 64;
/** At most this many pieces of text are read on each side. */
const MAX_PIECES = 100;
/** By at most this many characters an edited text is longer or shorter. */
const MAX_SHIFT = 4;
/** Elements whose text is not shown. */
const UNSEEN = new Set(['script', 'style', 'noscript', 'template']);

/**
 * The text around an element that tells it from others with the same text: that of its row, which is the largest element around
 * it without another of them; null if there is none.
 *
 * @param others the elements with the same text
 */
export function describeContext(element: Element, quote: string, others: readonly Element[]): Context | null {
  const apart = others.filter((other) => !other.contains(element) && !element.contains(other));
  const { body } = element.ownerDocument;
  if (element === body || !body.contains(element)) return null;
  for (let row = element.parentElement; row !== null && !apart.some((other) => row?.contains(other)); row = row.parentElement) {
    const isLast = apart.length === 0 || apart.some((other) => row?.parentElement?.contains(other));
    const context = isLast ? around(element, row) : null;
    if (context !== null && context.before + context.after !== '') return context;
    if (row === body) return null;
  }
  // A list without elements around its rows: what is between two of them belongs to the latter, unless nothing is before the first.
  const { before, after } = around(element, body);
  const own = before.slice(before.lastIndexOf(quote) + (before.includes(quote) ? quote.length : 0)).trim();
  if (own !== '') return { before: own, after: '' };
  return after === '' ? null : { before: '', after: after.split(quote)[0]?.trim() ?? '' };
}

/** The text around an element within the whole page, to compare with a stored context. */
export function contextOf(element: Element): Context {
  return around(element, element.ownerDocument.body);
}

/** The context of a position; null if it was stored without. */
export function storedContext({ quotePrefix = '', quoteSuffix = '' }: Position): Context | null {
  return quotePrefix === '' && quoteSuffix === '' ? null : { before: quotePrefix, after: quoteSuffix };
}

/** Whether a context is the stored one, which may be shorter; what matches `ignored` may differ. */
export function isContext(found: Context, { before, after }: Context, ignored?: RegExp): boolean {
  const plain = (text: string): string => (ignored === undefined ? text : text.replaceAll(ignored, ''));
  return plain(found.before).endsWith(plain(before)) && plain(found.after).startsWith(plain(after));
}

/** How alike a context is to a stored one, from 0 to 1. Takes little time, for it is asked of many elements. */
export function contextLikeness(found: Context, stored: Context): number {
  if (isContext(found, stored)) return 1;
  const kept = commonEnds(found.before, stored.before, true) + commonEnds(found.after, stored.after, false);
  return Math.min(0.99, kept / (stored.before.length + stored.after.length));
}

/** How many characters of a stored text are left at its ends, if one place of it was edited. The near end is that at the element. */
function commonEnds(found: string, stored: string, isBefore: boolean): number {
  const at = (text: string, index: number): string | undefined => (isBefore ? text[text.length - 1 - index] : text[index]);
  let near = 0;
  while (near < stored.length && at(found, near) === at(stored, near)) near += 1;
  let far = 0;
  for (let shift = -MAX_SHIFT; shift <= MAX_SHIFT; shift += 1) {
    let run = 0;
    while (run < stored.length - near && at(found, stored.length - 1 + shift - run) === at(stored, stored.length - 1 - run)) run += 1;
    far = Math.max(far, run);
  }
  return near + far;
}

function around(element: Element, within: Element): Context {
  const walker = element.ownerDocument.createTreeWalker(within, NodeFilter.SHOW_TEXT);
  walker.currentNode = element;
  const before = collect(() => walker.previousNode(), (piece, text) => `${piece} ${text}`).slice(-CONTEXT_LENGTH);
  walker.currentNode = lastWithin(element);
  const after = collect(() => walker.nextNode(), (piece, text) => `${text} ${piece}`).slice(0, CONTEXT_LENGTH);
  return { before: before.toWellFormed().trim(), after: after.toWellFormed().trim() };
}

/** The texts that `next` walks over, with single spaces, until there are enough of them. */
function collect(next: () => Node | null, join: (piece: string, text: string) => string): string {
  let text = '';
  for (let pieces = 0; pieces < MAX_PIECES && text.length <= CONTEXT_LENGTH; pieces += 1) {
    const node = next();
    if (node === null) break;
    if (UNSEEN.has(node.parentElement?.localName ?? '')) continue;
    const piece = (node.nodeValue ?? '').replaceAll(/\s+/g, ' ').trim();
    if (piece !== '') text = join(piece, text).trim();
  }
  return text;
}

function lastWithin(element: Element): Node {
  let last: Node = element;
  while (last.lastChild !== null) last = last.lastChild;
  return last;
}
