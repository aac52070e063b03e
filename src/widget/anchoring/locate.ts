import type { Position } from '../../model/thread.ts';
import { quoteOf } from './describe.ts';
import { similarity } from './similarity.ts';

/** From this similarity on, an element where the selector leads is the same one with an edited text. */
const EDITED = 0.35;
/** From this similarity on, an element that is elsewhere now is the same one. */
const MOVED = 0.75;
/** At most this many elements are compared with a quote. */
const MAX_CANDIDATES = 2_000;

/**
 * Finds the element of a position: where the selector or the path leads, if the text there is still similar to the quote; else
 * the element of the same kind whose text is most similar to it. Null if it is gone. A position without a selector belongs to
 * the page as a whole, which is `documentElement`.
 */
export function locate(root: Document, position: Position): Element | null {
  if (position.selector === undefined && position.path === undefined) return root.documentElement;
  const direct = query(root, position.selector) ?? query(root, position.path);
  const { quote } = position;
  if (quote === undefined || quote === '') return direct;
  const likeness = direct === null ? 0 : similarity(quoteOf(direct) ?? '', quote);
  if (direct !== null && likeness >= MOVED) return direct;
  const moved = bestMatch(root, position.path ?? position.selector ?? '', quote);
  if (moved !== null) return moved;
  return direct !== null && (likeness >= EDITED || isNamed(position.selector)) ? direct : null;
}

/** Whether a selector names its element, so that it stays the same whatever its text becomes. */
function isNamed(selector: string | undefined): boolean {
  return selector !== undefined && /^(?:#[^\s>]+|\[data-collab-anchor=[^>]*\])$/.test(selector);
}

function bestMatch(root: Document, path: string, quote: string): Element | null {
  const tag = /([a-z][\w-]*)(?::nth-of-type\(\d+\))?$/i.exec(path)?.[1] ?? '*';
  let best: Element | null = null;
  let bestLikeness = MOVED;
  let compared = 0;
  for (const candidate of root.getElementsByTagName(tag)) {
    compared += 1;
    if (compared > MAX_CANDIDATES) break;
    const text = quoteOf(candidate);
    if (text === quote) return candidate;
    const likeness = text === null || Math.abs(text.length - quote.length) > quote.length / 2 ? 0 : similarity(text, quote);
    if (likeness > bestLikeness) [best, bestLikeness] = [candidate, likeness];
  }
  return best;
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
