import type { Position } from '../../model/thread.ts';
import { type Context, contextLikeness, isContext, storedContext } from './context.ts';
import type { PageText } from './page-text.ts';
import { similarity } from './similarity.ts';

/** From this similarity on, an element where the selector leads is the same one with an edited text. */
const EDITED = 0.35;
/** From this similarity on, an element that is elsewhere now is the same one. */
const MOVED = 0.75;
/** From this likeness of contexts on, one of several elements with the same text is the same one: rows are alike. */
const IN_CONTEXT = 0.8;
/** How many contexts are compared for one edited text: those around the element of the selector. Limits the work when there are hundreds of pins. */
const MAX_COMPARED = 100;
/** From this length on, a quote is taken for the text of one element alone, whatever its kind is now. */
const UNIQUE_QUOTE_LENGTH = 12;

/**
 * Finds the element of a position: where the selector or the path leads, if the text there is still similar to the quote and no
 * element of the same kind has one that is clearly more similar; else that element; else one of another kind with this very
 * text. Of several with this very text it is the one in the context of the position, if it was stored with one; in that context
 * its text may be any other. Null if it is gone. A position without a selector belongs to the page as a whole, which is
 * `documentElement`.
 *
 * @param text shared by the searches for several positions of the same page
 */
export function locate(root: Document, position: Position, text: PageText): Element | null {
  if (position.selector === undefined && position.path === undefined) return root.documentElement;
  const selected = query(position.selector, (selector) => root.querySelector(selector));
  const direct = selected ?? query(position.path, (path) => root.querySelector(path));
  const { quote } = position;
  if (quote === undefined || quote === '') return direct;
  const context = storedContext(position);
  const named = selected !== null && isNamed(position.selector);
  const likeness = direct === null ? 0 : similarity(text.quote(direct) ?? '', quote);
  if (direct !== null && named && likeness >= MOVED) return direct;
  if (direct !== null && likeness === 1 && (context === null || isContext(text.context(direct), context))) return direct;
  const place = (position.path ?? position.selector ?? '').replaceAll(/:nth-of-type\(\d+\)/g, '');
  const kind = text.ofKind(/[a-z][\w-]*$/i.exec(place)?.[0] ?? '*');
  const same = kind.get(quote);
  if (context !== null && (same?.length !== 1 || quote.length < UNIQUE_QUOTE_LENGTH)) {
    const peers = query(place, (each) => root.querySelectorAll(each)) ?? [];
    const found = relabelled([...peers], direct, quote, context, text);
    if (found !== undefined) return found;
  }
  if (same !== undefined) return oneOf(same, likeness === 1 ? direct : null, context, text, quote);
  // The rows of a table are alike: only a text that is nearer by half says that it has moved and was not edited in its place.
  const moved = mostSimilar(kind, quote, likeness < MOVED ? MOVED : (1 + likeness) / 2);
  if (moved !== undefined) return oneOf(moved, null, context, text, quote);
  // A text that others have too, such as the label of every row, does not tell that this is the row.
  const isShared = context !== null && kind.get(text.quote(direct ?? root.body) ?? '')?.[1] !== undefined;
  if (direct !== null && ((likeness >= EDITED && !isShared) || named)) return direct;
  return quote.length < UNIQUE_QUOTE_LENGTH ? null : oneOf(text.ofKind('*').get(quote) ?? [], null, context, text, quote);
}

/**
 * The element in the context of a position, whatever its text is now: where the selector leads, else the only one at its place
 * within any row, in which numbers may differ if no row has the same.
 *
 * @param peers the elements at this place of all rows
 */
function relabelled(peers: readonly Element[], direct: Element | null, quote: string, context: Context, text: PageText): Element | undefined {
  const among = (elements: readonly Element[], ignored?: RegExp): readonly Element[] =>
    elements.filter((element) => {
      const found = text.context(element);
      // If a neighbour has exactly this text, it is the element, and this one was inserted beside it.
      return isContext(found, context, ignored) && !found.before.endsWith(quote) && !found.after.startsWith(quote);
    });
  if (direct !== null && among([direct]).length > 0) return direct;
  const near = nearby(peers, direct);
  const exact = among(near);
  const [first, second] = exact.length > 0 ? exact : among(near, /\d+/g);
  return second === undefined ? first : undefined;
}

/** Those of the elements that are compared: around where the selector leads. */
function nearby(elements: readonly Element[], direct: Element | null): readonly Element[] {
  const from = direct === null ? 0 : Math.max(0, elements.indexOf(direct) - MAX_COMPARED / 2);
  return elements.slice(from, from + MAX_COMPARED);
}

/**
 * One of the elements with the same text: the one in the context, else the only one, unless its text is short and the selector
 * leads elsewhere, else `direct` if its context is numbers, which change in their place. Null if none is in the context, or more
 * than one of several while there is no `direct`.
 */
function oneOf(same: readonly Element[], direct: Element | null, context: Context | null, text: PageText, quote: string): Element | null {
  if (context === null || (same.length < 2 && (direct !== null || quote.length >= UNIQUE_QUOTE_LENGTH))) return direct ?? same[0] ?? null;
  const exact = same.find((element) => isContext(text.context(element), context));
  if (exact !== undefined) return exact;
  const nearest = nearby(same, direct);
  const likenesses = nearest.map((element) => contextLikeness(text.context(element), context));
  const own = direct === null ? 0 : contextLikeness(text.context(direct), context);
  // As with texts: only a context that is nearer by half says that the element has moved.
  const most = Math.max(...likenesses);
  if (direct === null && likenesses.filter((likeness) => likeness >= IN_CONTEXT).length > 1) return null;
  if (own < IN_CONTEXT ? most >= IN_CONTEXT : most > (1 + own) / 2) return nearest[likenesses.indexOf(most)] ?? null;
  return own >= IN_CONTEXT || !/\p{L}/u.test(context.before + context.after) ? direct : null;
}

/** Whether a selector names its element, so that it stays the same whatever its text becomes. */
function isNamed(selector: string | undefined): boolean {
  return selector !== undefined && /^(?:#[^\s>]+|\[data-collab-anchor=[^>]*\])$/.test(selector);
}

/** The elements with the text that is most similar to a quote, if it is more than `least`. */
function mostSimilar(kind: ReadonlyMap<string, readonly Element[]>, quote: string, least: number): readonly Element[] | undefined {
  let best: readonly Element[] | undefined;
  let bestLikeness = least;
  for (const [text, elements] of kind) {
    const likeness = Math.abs(text.length - quote.length) > quote.length / 2 ? 0 : similarity(text, quote);
    if (likeness > bestLikeness) [best, bestLikeness] = [elements, likeness];
  }
  return best;
}

function query<T>(selector: string | undefined, find: (selector: string) => T): T | null {
  try {
    return find(selector ?? '');
  } catch {
    // The position has no selector, or another client stored one that is not valid.
    return null;
  }
}
