import type { Position } from '../../model/thread.ts';
import { type ContextWords, contextWords, isSameContext, mayBeContext } from './context.ts';
import { type Fingerprint, readFingerprint } from './fingerprint.ts';
import { COMPARED_LENGTH, type PageIndex } from './page-index.ts';
import { shownBy } from './roots.ts';
import { shapeOf } from './row.ts';
import { isAnchor, select } from './selector.ts';
import { QUOTE_LENGTH, textOf } from './text.ts';
import { compareWords, isNumber, wordsOf } from './words.ts';

/** A text with so many words and characters is that of one element, wherever it is. */
const LONG_WORDS = 12;
const LONG_TEXT = 60;
/** A text of so many words tells its element where it is in no row. */
const TELLING_WORDS = 3;
/** A text of fewer words with another word is that of another record. */
const EDITABLE_WORDS = 4;
/** This part of the words of a long text may be others after an edit. */
const EDITED_PART = 0.25;
/** From this length on, a text is taken for that of one element, whatever its kind is now. */
const UNIQUE_LENGTH = 20;
/** At most this many elements, those nearest to where the selector leads, are searched for one with another text. */
const MAX_RELABELLED = 200;

/** A position as it is searched for: read once. */
export interface Sought {
  readonly position: Position;
  readonly fingerprint: Fingerprint | null;
  readonly words: readonly string[];
  readonly context: ContextWords;
}

/** Reads a position. Never throws, whatever was stored. */
export function readPosition(position: Position): Sought {
  const { quote = '', quotePrefix = '', quoteSuffix = '' } = position;
  const words = wordsOf(quote);
  // The last word may have been cut.
  if (quote.length >= QUOTE_LENGTH - 2) words.pop();
  return {
    position,
    fingerprint: readFingerprint(position),
    words,
    context: contextWords({ before: quotePrefix, after: quoteSuffix }),
  };
}

/**
 * Finds the element of a position; null if it is gone, or if it could be another one: a wrong place is worse than none.
 * A position without a selector belongs to the page as a whole, which is `documentElement`.
 *
 * An element is the same if its text and attributes are, it is under the same headings, and nothing in the text around
 * it says that it is a part of another row; of several, the one with exactly this text around it. A long text may be
 * edited, and in its row an element may have any other text.
 *
 * @param page shared by the searches for several positions of the same page
 */
export function locate(sought: Sought, page: PageIndex): Element | null {
  const { position, fingerprint } = sought;
  const hasPlace = position.selector !== undefined || position.path !== undefined;
  if (!hasPlace && position.fingerprint === undefined) return page.document.documentElement;
  const named = isAnchor(position.selector) ? select(page.document, position.selector) : null;
  if (position.fingerprint === undefined) return named ?? byQuote(sought, page);
  if (fingerprint === null) return null;
  if (named !== null && fingerprint.inner.length === 0) return named;
  if (fingerprint.tag === 'body' || fingerprint.tag === 'html') return page.document.querySelector(fingerprint.tag);
  return new Search(sought, fingerprint, page).run();
}

/** Where a position that another program stored leads: its selector, unless it has a quote that stands elsewhere. */
function byQuote({ position, words }: Sought, page: PageIndex): Element | null {
  const direct = select(page.document, position.selector) ?? select(page.document, position.path);
  const { quote = '' } = position;
  if (quote === '') return direct;
  if (direct !== null && (page.text(direct) === quote || isEdited(words, direct))) return direct;
  const same = innermost(page.ofKind('*').get(quote) ?? [], null);
  return same.length === 1 ? (same[0] ?? null) : null;
}

/** The search for one element. */
class Search {
  readonly #sought: Sought;
  readonly #fingerprint: Fingerprint;
  readonly #page: PageIndex;
  readonly #quote: string;
  readonly #isLong: boolean;

  constructor(sought: Sought, fingerprint: Fingerprint, page: PageIndex) {
    this.#sought = sought;
    this.#fingerprint = fingerprint;
    this.#page = page;
    this.#quote = sought.position.quote ?? '';
    this.#isLong = sought.words.length >= LONG_WORDS && this.#quote.length >= LONG_TEXT;
  }

  run(): Element | null {
    const kind = this.#page.ofKind(this.#fingerprint.tag);
    const same = innermost(
      (kind.get(this.#quote) ?? []).filter((element) => this.#hasAttributes(element)),
      this.#fingerprint.shape,
    );
    const found = this.#among(same) ?? (this.#quote === '' ? null : this.#edited(kind)) ?? this.#relabelled(kind);
    return found ?? (same.length === 0 ? this.#ofOtherKind() : null);
  }

  /** One of the elements with the same text and attributes. */
  #among(same: readonly Element[]): Element | null {
    const { count } = this.#fingerprint;
    if (this.#isLong && count === 1 && same.length === 1) return same[0] ?? null;
    const here = same.filter((element) => this.#isInScope(element));
    const exact = here.filter((element) => this.#isInContext(element));
    if (exact.length > 0) return this.#oneAlike(exact);
    const keyed = this.#fingerprint.key === null ? [] : here.filter((element) => this.#hasKey(element) === true);
    if (keyed.length === 1) return keyed[0] ?? null;
    if (!this.#isTelling() || (this.#fingerprint.surroundings !== 'row' && (count > 1 || same.length > 1))) return null;
    const likely = here.filter((element) => this.#mayBeInContext(element));
    return likely.length === 1 && (same.length === 1 || this.#hasOwnRow()) ? (likely[0] ?? null) : null;
  }

  /** One of elements that nothing tells apart but their order: only while there are as many as when it was stored. */
  #oneAlike(alike: readonly Element[]): Element | null {
    const { same, nth, classes } = this.#fingerprint;
    const found = alike.length === same ? alike[nth] : undefined;
    if (found === undefined || this.#isTelling() || classes.length === 0) return found ?? null;
    return classes.some((name) => found.classList.contains(name)) ? found : null;
  }

  /** The only element whose text is the stored one with some words more, fewer or others. */
  #edited(kind: ReadonlyMap<string, readonly Element[]>): Element | null {
    const { shape } = this.#fingerprint;
    const { words } = this.#sought;
    const similar = [...kind.keys()].filter((text) => text !== '' && sharesWords(words, text));
    const edited = innermost(
      similar.flatMap((text) => (kind.get(text) ?? []).filter((element) => isEdited(words, element))),
      shape,
    ).filter((element) => this.#isInScope(element) && (this.#isLong || this.#hasAttributes(element)));
    const exact = edited.filter((element) => this.#isInContext(element));
    const likely = exact.length > 0 ? exact : edited.filter((element) => this.#isLong || this.#mayBeInContext(element));
    return likely.length === 1 && this.#fingerprint.count === 1 ? (likely[0] ?? null) : null;
  }

  /** The only element with exactly the text of the row around it, whatever its own text is now. */
  #relabelled(kind: ReadonlyMap<string, readonly Element[]>): Element | null {
    const { surroundings, shape, key, count } = this.#fingerprint;
    const { before, after } = this.#sought.context;
    if (surroundings !== 'row' || before.length + after.length === 0 || (count === 1 && key === null)) return null;
    const all = [...kind.values()].flat();
    const direct = this.#direct();
    const from =
      direct === null || all.length <= MAX_RELABELLED
        ? 0
        : Math.max(0, inOrder(all).indexOf(direct) - MAX_RELABELLED / 2);
    const near = (all.length <= MAX_RELABELLED ? all : inOrder(all).slice(from, from + MAX_RELABELLED)).filter(
      (element) => this.#isInScope(element),
    );
    // A text that only this row had is what tells the row: with another one it is another row.
    const exact =
      count === 1
        ? []
        : innermost(
            near.filter((element) => this.#isInContext(element, true) && !this.#isBesideOwn(element)),
            shape,
          );
    if (exact.length > 0 || key === null) return exact.length === 1 ? (exact[0] ?? null) : null;
    const keyed = innermost(
      near.filter(
        (element) =>
          this.#hasKey(element) === true && this.#isInContext(element, true, true) && !this.#isBesideOwn(element),
      ),
      shape,
    );
    return keyed.length === 1 ? (keyed[0] ?? null) : null;
  }

  /** An element of another kind with this very text, if it is long enough to be the only one. */
  #ofOtherKind(): Element | null {
    const { count, surroundings } = this.#fingerprint;
    if (
      this.#quote.length < UNIQUE_LENGTH ||
      this.#sought.words.length < EDITABLE_WORDS ||
      count > 1 ||
      surroundings === 'row'
    )
      return null;
    const same = innermost(this.#page.ofKind('*').get(this.#quote) ?? [], null).filter((element) =>
      this.#isInScope(element),
    );
    return same.length === 1 ? (same[0] ?? null) : null;
  }

  /** Whether its text or attributes tell an element at all. */
  #isTelling(): boolean {
    return (
      this.#quote !== '' ||
      Object.keys(this.#fingerprint.attributes).some((name) => name !== 'type' && name !== 'role' && name !== 'shape')
    );
  }

  #hasAttributes(element: Element): boolean {
    const found = this.#page.attributes(element);
    return (
      Object.entries(this.#fingerprint.attributes).every(([name, value]) => found[name] === value) &&
      (this.#quote !== '' || Object.keys(found).length === Object.keys(this.#fingerprint.attributes).length)
    );
  }

  /** Whether an element is where the stored one was: under the same headings, in the same host, in no other row. */
  #isInScope(element: Element): boolean {
    if (this.#page.host(element) !== this.#fingerprint.host || this.#hasKey(element) === false) return false;
    if (this.#isLong) return true;
    const headings = this.#page.headings(element);
    return this.#fingerprint.headings.every((heading) => headings.includes(heading));
  }

  /** Whether the row of an element has the stored key; null if either has none. */
  #hasKey(element: Element): boolean | null {
    const { key } = this.#fingerprint;
    const found = key === null ? null : this.#page.rowKey(element);
    return key === null || found === null || found[0] !== key[0] ? null : found[1] === key[1];
  }

  #mayBeInContext(element: Element): boolean {
    const { surroundings, labels, attributes } = this.#fingerprint;
    const isTold =
      this.#sought.words.length >= TELLING_WORDS || ['src', 'href', 'alt'].some((name) => name in attributes);
    return mayBeContext(this.#contextOf(element), this.#sought.context, { surroundings, labels, isTold });
  }

  /** Whether the text of its row tells the element from those of other rows. */
  #hasOwnRow(): boolean {
    const { before, after } = this.#sought.context;
    return [...before, ...after].some((word) => !this.#fingerprint.labels.includes(word));
  }

  #contextOf(element: Element): ContextWords {
    return this.#page.context(element, this.#fingerprint.levels);
  }

  /** @param whole whether all of the row is compared, so that it has nothing else */
  #isInContext(element: Element, whole = false, numbersDiffer = false): boolean {
    const { context } = this.#sought;
    const found = whole ? this.#contextOf(element) : this.#page.context(element, -1);
    if (whole && (found.before.length !== context.before.length || found.after.length !== context.after.length))
      return false;
    return isSameContext(found, context, numbersDiffer);
  }

  /**
   * Whether a neighbour has the very text that is sought: then that is the element, and this one was inserted beside
   * it.
   */
  #isBesideOwn(element: Element): boolean {
    const { before, after } = this.#page.context(element, -1);
    const { words } = this.#sought;
    return (
      words.length > 0 &&
      (words.every((word, index) => after[index] === word) ||
        words.toReversed().every((word, index) => before[index] === word))
    );
  }

  /** Where the selector or the path leads. */
  #direct(): Element | null {
    const { selector, path } = this.#sought.position;
    let found = select(this.#page.document, selector) ?? select(this.#page.document, path);
    for (const inner of this.#fingerprint.inner) {
      const root: Document | ShadowRoot | null = found === null ? null : shownBy(found);
      found = root === null ? null : select(root, inner);
    }
    return found;
  }
}

/** Whether a text is the stored one after an edit: no other number, and in a short text no other word. */
function isEdited(words: readonly string[], element: Element): boolean {
  const total = words.length;
  if (total < 2) return false;
  const all = wordsOf(textOf(element, COMPARED_LENGTH));
  const { kept, replaced, lost, added } = compareWords(words, all);
  if ([...replaced, ...lost].some(isNumber)) return false;
  const isLong = total >= LONG_WORDS;
  // Behind the last of a long text that was stored in part, all others follow.
  if (!isLong && added.some(isNumber)) return false;
  if (!isLong && added.length > total / 2) return false;
  if (total < EDITABLE_WORDS) return replaced.length + lost.length === 0 && words.some((word) => /\d{3}/.test(word));
  return isLong
    ? replaced.length + lost.length <= total * EDITED_PART
    : replaced.length === 0 && kept.length >= total * (1 - EDITED_PART);
}

/** Whether at least half of the words of a text are in another one, in any order. */
function sharesWords(words: readonly string[], text: string): boolean {
  const found = new Set(wordsOf(text));
  return words.filter((word) => found.has(word)).length * 2 >= words.length;
}

/** Of elements within each other, which have the same text, the one with these children, else the innermost. */
function innermost(elements: readonly Element[], shape: string | null): readonly Element[] {
  if (elements.length < 2) return elements;
  const all = inOrder(elements);
  // In this order what is within an element follows it at once.
  let outer: Element | undefined;
  return all.filter((element, index) => {
    const isOuter = all[index + 1] !== undefined && element.contains(all[index + 1] as Element);
    const isInner = outer?.contains(element) === true;
    if (!isInner) outer = element;
    if (!isOuter && !isInner) return true;
    const chain = all.filter((other) => other.contains(element) || element.contains(other));
    const fitting = chain.filter((other) => shape !== null && shapeOf(other) === shape);
    return element === (fitting.length === 1 ? fitting[0] : chain.at(-1));
  });
}

/** Elements in the order of the page, as far as they are in one root. */
function inOrder(elements: readonly Element[]): Element[] {
  return [...elements].toSorted((one, other) => ((one.compareDocumentPosition(other) & 4) === 0 ? 1 : -1));
}
