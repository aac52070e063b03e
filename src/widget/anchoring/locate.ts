import type { Position } from '../../model/thread.ts';
import { type Context, contextLikeness, isContext, storedContext } from './context.ts';
import { PageText } from './page-text.ts';
import { similarity } from './similarity.ts';

/** From this similarity on, an element where the selector leads is the same one with an edited text. */
const EDITED = 0.35;
/** From this similarity on, an element that is elsewhere now is the same one. */
const MOVED = 0.75;
/** From this likeness of contexts on, one of several elements with the same text is the same one: rows are alike. */
const IN_CONTEXT = 0.8;
/** At most this many contexts are compared with one that was edited, those around where the selector leads: hundreds of pins may ask. */
const MAX_COMPARED = 100;
/** From this length on, a quote is taken for the text of one element alone, whatever its kind is now. */
const UNIQUE_QUOTE_LENGTH = 12;

/**
 * Finds the element of a position: where the selector or the path leads, if the text there is still similar to the quote and no
 * element of the same kind has one that is clearly more similar; else that element; else one of another kind with this very
 * text. Of several with this very text it is the one in the context of the position, if it was stored with one. Null if it is
 * gone. A position without a selector belongs to the page as a whole, which is `documentElement`.
 *
 * @param text shared by the searches for several positions of the same page
 */
export function locate(root: Document, position: Position, text = new PageText(root)): Element | null {
  if (position.selector === undefined && position.path === undefined) return root.documentElement;
  const selected = query(root, position.selector);
  const direct = selected ?? query(root, position.path);
  const { quote } = position;
  if (quote === undefined || quote === '') return direct;
  const context = storedContext(position);
  const named = selected !== null && isNamed(position.selector);
  const likeness = direct === null ? 0 : similarity(text.quote(direct) ?? '', quote);
  if (direct !== null && named && likeness >= MOVED) return direct;
  if (direct !== null && likeness === 1 && (context === null || isContext(text.context(direct), context))) return direct;
  const kind = text.ofKind(tagOf(position.path ?? position.selector ?? ''));
  const same = kind.get(quote);
  if (same !== undefined) return oneOf(same, likeness === 1 ? direct : null, context, text);
  // The rows of a table are alike: only a text that is nearer by half says that it has moved and was not edited in its place.
  const moved = mostSimilar(kind, quote, likeness < MOVED ? MOVED : (1 + likeness) / 2);
  if (moved !== undefined) return oneOf(moved, null, context, text);
  if (direct !== null && (likeness >= EDITED || named)) return direct;
  return quote.length < UNIQUE_QUOTE_LENGTH ? null : oneOf(text.ofKind('*').get(quote) ?? [], null, context, text);
}

/**
 * One of the elements with the same text: the one in the context, else the only one, else `direct` if its context is numbers,
 * which change in their place. Null if none of several is in the context.
 */
function oneOf(same: readonly Element[], direct: Element | null, context: Context | null, text: PageText): Element | null {
  if (same.length < 2 || context === null) return direct ?? same[0] ?? null;
  const exact = same.find((element) => isContext(text.context(element), context));
  if (exact !== undefined) return exact;
  const from = direct === null ? 0 : Math.max(0, same.indexOf(direct) - MAX_COMPARED / 2);
  const nearest = same.slice(from, from + MAX_COMPARED);
  const likenesses = nearest.map((element) => contextLikeness(text.context(element), context));
  const own = direct === null ? 0 : contextLikeness(text.context(direct), context);
  // As with texts: only a context that is nearer by half says that the element has moved.
  const most = Math.max(...likenesses);
  if (own < IN_CONTEXT ? most >= IN_CONTEXT : most > (1 + own) / 2) return nearest[likenesses.indexOf(most)] ?? null;
  return own >= IN_CONTEXT || !/\p{L}/u.test(context.before + context.after) ? direct : null;
}

/** Whether a selector names its element, so that it stays the same whatever its text becomes. */
function isNamed(selector: string | undefined): boolean {
  return selector !== undefined && /^(?:#[^\s>]+|\[data-collab-anchor=[^>]*\])$/.test(selector);
}

/** The kind of element that a path leads to. */
function tagOf(path: string): string {
  return /([a-z][\w-]*)(?::nth-of-type\(\d+\))?$/i.exec(path)?.[1] ?? '*';
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

function query(root: Document, selector: string | undefined): Element | null {
  if (selector === undefined || selector === '') return null;
  try {
    return root.querySelector(selector);
  } catch {
    // Stored by another client, and no selector.
    return null;
  }
}
