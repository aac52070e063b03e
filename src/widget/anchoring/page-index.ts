import { type ContextWords, contextOf, contextWords, WIDE_CONTEXT } from './context.ts';
import { parentOf, rootsOf } from './roots.ts';
import { ancestorOf } from './row.ts';
import { attributesOf, rowKeyOf } from './signature.ts';
import { QUOTE_LENGTH, shorten, textOf } from './text.ts';

/** At most this many elements of a kind are compared. */
const MAX_CANDIDATES = 5_000;
/** An element with more children is not read when all kinds are searched: its text may be that of half the page. */
const MAX_CHILDREN = 2;
const HEADINGS = 'h1, h2, h3, h4, h5, h6, legend, caption, summary, [role=heading], [role=tab][aria-selected=true]';
const MAX_HEADINGS = 3;
const MAX_HEADING = 60;
const MAX_HOST = 200;

/** What was read of a page, each thing once: valid while the page does not change. */
export class PageIndex {
  readonly document: Document;
  readonly roots: readonly (Document | ShadowRoot)[];
  readonly #texts = new Map<Element, string>();
  readonly #attributes = new Map<Element, Record<string, string>>();
  readonly #contexts = new Map<string, Map<Element, ContextWords>>();
  readonly #kinds = new Map<string, ReadonlyMap<string, readonly Element[]>>();
  readonly #headings = new Map<Element, string[]>();
  readonly #holders = new Map<Node, Map<Element, Element[]>>();
  readonly #pieces = new Map<Node, string>();
  readonly #hosts = new Map<Node, string>();
  readonly #keys = new Map<Element, readonly [string, string] | null>();

  /** @param apart the host whose shadow root is no part of the page: the widget */
  constructor(document: Document, apart: Element | null) {
    this.document = document;
    this.roots = rootsOf(document, apart);
  }

  /** The beginning of the text of an element. */
  text(element: Element): string {
    return remembered(this.#texts, element, textOf);
  }

  attributes(element: Element): Record<string, string> {
    return remembered(this.#attributes, element, attributesOf);
  }

  /** The words around an element within its ancestor so many levels above; within its root if `levels` is -1. */
  context(element: Element, levels: number): ContextWords {
    const contexts = this.#contexts.get(String(levels)) ?? new Map<Element, ContextWords>();
    this.#contexts.set(String(levels), contexts);
    return remembered(contexts, element, () =>
      contextWords(
        contextOf(element, levels < 0 ? widest(element) : ancestorOf(element, levels), {
          pieces: this.#pieces,
          ...(levels < 0 ? { length: WIDE_CONTEXT } : {}),
        }),
      ),
    );
  }

  /**
   * The elements of a kind in all roots by their text, in the order of the page; `*` for those of any kind with few
   * children.
   */
  ofKind(tag: string): ReadonlyMap<string, readonly Element[]> {
    const known = this.#kinds.get(tag);
    if (known !== undefined) return known;
    const found = new Map<string, Element[]>();
    let read = 0;
    for (const root of this.roots) {
      for (const element of root.querySelectorAll(tag === '*' ? '*' : CSS.escape(tag))) {
        if (tag === '*' && element.childElementCount > MAX_CHILDREN) continue;
        read += 1;
        if (read > MAX_CANDIDATES) break;
        const text = this.text(element);
        const same = found.get(text);
        if (same === undefined) found.set(text, [element]);
        else same.push(element);
      }
    }
    this.#kinds.set(tag, found);
    return found;
  }

  /** The headings above an element, the nearest first, and the selected tab above it. */
  headings(element: Element): string[] {
    return remembered(this.#headings, element, () => this.#headingsAbove(element));
  }

  #headingsAbove(element: Element): string[] {
    const found: string[] = [];
    const headings = this.#holdersIn(element.getRootNode());
    for (let at = element.parentElement; at !== null; at = at.parentElement) {
      for (const heading of (headings.get(at) ?? []).toReversed()) {
        if (
          heading.contains(element) ||
          element.contains(heading) ||
          (heading.compareDocumentPosition(element) & 4) === 0
        )
          continue;
        const text = textOf(heading, MAX_HEADING);
        if (text !== '' && !found.includes(text)) found.push(text);
        if (heading.getAttribute('role') !== 'tab') break;
      }
    }
    return found;
  }

  /** The nearest three headings above an element, and the selected tab: what a position stores. */
  storedHeadings(element: Element): string[] {
    return this.headings(element).slice(0, MAX_HEADINGS);
  }

  /** What the hosts and frames around an element say about themselves; empty in the page itself. */
  host(element: Element): string {
    const root = element.getRootNode();
    if (root === this.document) return '';
    const known = this.#hosts.get(root) ?? this.#hostsOf(element);
    this.#hosts.set(root, known);
    return known;
  }

  #hostsOf(element: Element): string {
    const parts: string[] = [];
    let at = element;
    for (;;) {
      const root = at.getRootNode();
      const outer = root === this.document ? null : parentOf(uppermost(at));
      if (outer === null) return shorten(parts.join(' '), MAX_HOST);
      parts.push(
        outer.localName,
        ...Object.values(this.attributes(outer)),
        outer.localName.includes('frame') ? '' : textOf(outer, 40),
      );
      at = outer;
    }
  }

  /** The attribute that names the row of an element; null if it has none. */
  rowKey(element: Element): readonly [string, string] | null {
    return remembered(this.#keys, element, rowKeyOf);
  }

  #holdersIn(root: Node): Map<Element, Element[]> {
    const known = this.#holders.get(root);
    if (known !== undefined) return known;
    const found = new Map<Element, Element[]>();
    for (const heading of (root as Document | ShadowRoot).querySelectorAll(HEADINGS)) {
      const inner = heading.closest('[role=tablist], header, hgroup, thead') ?? heading;
      const holder = inner.parentElement;
      if (holder !== null) found.set(holder, [...(found.get(holder) ?? []), heading]);
    }
    this.#holders.set(root, found);
    return found;
  }
}

/** The length up to which texts are compared. */
export const COMPARED_LENGTH = 2 * QUOTE_LENGTH;

function widest(element: Element): Node {
  const root = element.getRootNode();
  return (root as Partial<Document>).body ?? root;
}

function uppermost(element: Element): Element {
  let at = element;
  while (at.parentElement !== null) at = at.parentElement;
  return at;
}

function remembered<T>(known: Map<Element, T>, element: Element, read: (element: Element) => T): T {
  const found = known.get(element);
  if (found !== undefined) return found;
  const value = read(element);
  known.set(element, value);
  return value;
}
