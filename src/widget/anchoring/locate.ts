import type { Position } from '../../model/thread.ts';
import { quoteOf } from './describe.ts';
import { similarity } from './similarity.ts';

/** From this similarity on, an element where the selector leads is the same one with an edited text. */
const EDITED = 0.35;
/** From this similarity on, an element that is elsewhere now is the same one. */
const MOVED = 0.75;
/** At most this many elements are compared with a quote. */
const MAX_CANDIDATES = 2_000;
/** From this length on, a quote is taken for the text of one element alone, whatever its kind is now. */
const UNIQUE_QUOTE_LENGTH = 12;
/** An element with more children is not read: its text may be that of half the page. */
const MAX_CHILDREN = 2;

/** The texts that were read already, by element, while the page does not change. */
export type Texts = Map<Element, string | null>;

/**
 * Finds the element of a position: where the selector or the path leads, if the text there is still similar to the quote and no
 * element of the same kind has one that is clearly more similar; else that element; else one of another kind with this very
 * text. Null if it is gone. A position without a selector belongs to the page as a whole, which is `documentElement`.
 *
 * @param texts shared by the searches for several positions of the same page
 */
export function locate(root: Document, position: Position, texts: Texts = new Map()): Element | null {
  if (position.selector === undefined && position.path === undefined) return root.documentElement;
  const selected = query(root, position.selector);
  const direct = selected ?? query(root, position.path);
  const { quote } = position;
  if (quote === undefined || quote === '') return direct;
  const named = selected !== null && isNamed(position.selector);
  const likeness = direct === null ? 0 : similarity(textOf(direct, texts) ?? '', quote);
  if (direct !== null && (likeness === 1 || (named && likeness >= MOVED))) return direct;
  // The rows of a table are alike: only a text that is nearer by half says that it has moved and was not edited in its place.
  const least = likeness < MOVED ? MOVED : (1 + likeness) / 2;
  const moved = bestMatch(root, position.path ?? position.selector ?? '', quote, least, texts);
  if (moved !== null) return moved;
  return direct !== null && (likeness >= EDITED || named) ? direct : sameText(root, quote, texts);
}

function textOf(element: Element, texts: Texts): string | null {
  const known = texts.get(element);
  if (known !== undefined) return known;
  const text = quoteOf(element);
  texts.set(element, text);
  return text;
}

/** Whether a selector names its element, so that it stays the same whatever its text becomes. */
function isNamed(selector: string | undefined): boolean {
  return selector !== undefined && /^(?:#[^\s>]+|\[data-collab-anchor=[^>]*\])$/.test(selector);
}

function bestMatch(root: Document, path: string, quote: string, least: number, texts: Texts): Element | null {
  const tag = /([a-z][\w-]*)(?::nth-of-type\(\d+\))?$/i.exec(path)?.[1] ?? '*';
  let best: Element | null = null;
  let bestLikeness = least;
  let compared = 0;
  for (const candidate of root.getElementsByTagName(tag)) {
    compared += 1;
    if (compared > MAX_CANDIDATES) break;
    const text = textOf(candidate, texts);
    if (text === quote) return candidate;
    const likeness = text === null || Math.abs(text.length - quote.length) > quote.length / 2 ? 0 : similarity(text, quote);
    if (likeness > bestLikeness) [best, bestLikeness] = [candidate, likeness];
  }
  return best;
}

/** The first element of any kind with exactly this text, which is long enough to be its own. */
function sameText(root: Document, quote: string, texts: Texts): Element | null {
  if (quote.length < UNIQUE_QUOTE_LENGTH) return null;
  let compared = 0;
  for (const candidate of root.body.getElementsByTagName('*')) {
    if (candidate.childElementCount > MAX_CHILDREN) continue;
    compared += 1;
    if (compared > MAX_CANDIDATES) return null;
    if (textOf(candidate, texts) === quote) return candidate;
  }
  return null;
}

function query(root: Document, selector: string | undefined): Element | null {
  if (selector === undefined || selector === '') return null;
  try {
    return root.querySelector(selector);
  } catch {
    // Stored by another client, and no selector.
    return null;
  }
}
