import { type Context, contextOf } from './context.ts';
import { quoteOf } from './describe.ts';

/** At most this many elements are compared with a quote. */
const MAX_CANDIDATES = 2_000;
/** An element with more children is not read: its text may be that of half the page. */
const MAX_CHILDREN = 2;

/** The texts of a page, each read once: valid while the page does not change. */
export class PageText {
  readonly #root: Document;
  readonly #quotes = new Map<Element, string | null>();
  readonly #contexts = new Map<Element, Context>();
  readonly #kinds = new Map<string, ReadonlyMap<string, readonly Element[]>>();

  constructor(root: Document) {
    this.#root = root;
  }

  /** The quote of an element; null if it has none. */
  quote(element: Element): string | null {
    const known = this.#quotes.get(element);
    if (known !== undefined) return known;
    const quote = quoteOf(element);
    this.#quotes.set(element, quote);
    return quote;
  }

  /** The text around an element. */
  context(element: Element): Context {
    const context = this.#contexts.get(element) ?? contextOf(element);
    this.#contexts.set(element, context);
    return context;
  }

  /**
   * The elements of one kind by their quote, in the order of the page, without those within another of the same quote.
   *
   * @param tag the kind; `*` for all, of which those with many children are left out
   */
  ofKind(tag: string): ReadonlyMap<string, readonly Element[]> {
    const known = this.#kinds.get(tag);
    if (known !== undefined) return known;
    const found = new Map<string, Element[]>();
    let read = 0;
    for (const element of this.#root.body.getElementsByTagName(tag)) {
      if (tag === '*' && element.childElementCount > MAX_CHILDREN) continue;
      read += 1;
      if (read > MAX_CANDIDATES) break;
      const quote = this.quote(element);
      if (quote === null) continue;
      const same = found.get(quote);
      if (same === undefined) found.set(quote, [element]);
      else if (same.at(-1)?.contains(element) !== true) same.push(element);
    }
    this.#kinds.set(tag, found);
    return found;
  }
}
