import type { Position } from '../../model/thread.ts';
import { type Context, contextOf, contextWords, isSameContext } from './context.ts';
import { type Fingerprint, type Surroundings, writeFingerprint } from './fingerprint.ts';
import { pageAt } from '../pins/page.ts';
import { PageIndex } from './page-index.ts';
import { hostOf } from './roots.ts';
import { ancestorOf, labelsOf, rowsAround, shapeOf } from './row.ts';
import { pathOf, selectorOf } from './selector.ts';
import { textOf } from './text.ts';

/** At most this many elements of a kind are looked at for one with the same text around it. */
const MAX_COMPARED = 400;

/** Elements that name what follows them, so that it does not tell them from others. */
const TITLES = new Set(['h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'legend', 'caption', 'th', 'summary']);

/** Where an element is in the window of the page, and a point of it, in CSS pixels. */
export interface Point {
  readonly x: number;
  readonly y: number;
  readonly box: { readonly left: number; readonly top: number; readonly width: number; readonly height: number };
}

/**
 * Describes a point of the page: the element at it and the place within that, with the means to find both again.
 *
 * @param apart the widget, which is no part of the page
 */
export function describePoint(root: Document, element: Element, { x, y, box }: Point, apart: Element | null): Position {
  const page = root.documentElement.getBoundingClientRect();
  const chain = chainOf(element, root);
  const [outermost = element, ...inner] = chain;
  const selectors = inner.map(selectorOf);
  const index = new PageIndex(root, apart);
  const found = fingerprintOf(
    element,
    index,
    selectors.filter((selector) => selector !== undefined),
  );
  const selector = selectorOf(outermost);
  const path = pathOf(outermost);
  const quote = index.text(element);
  return {
    x: fraction(x - page.left, Math.max(root.documentElement.scrollWidth, 1)),
    y: fraction(y - page.top, Math.max(root.documentElement.scrollHeight, 1)),
    ...(selector === undefined ? {} : { selector }),
    ...(path === undefined ? {} : { path }),
    elementOffsetX: fraction(x - box.left, Math.max(box.width, 1)),
    elementOffsetY: fraction(y - box.top, Math.max(box.height, 1)),
    scrollX: Math.round(root.defaultView?.scrollX ?? 0),
    scrollY: Math.round(root.defaultView?.scrollY ?? 0),
    ...(quote === '' ? {} : { quote }),
    ...(found.context.before === '' ? {} : { quotePrefix: found.context.before }),
    ...(found.context.after === '' ? {} : { quoteSuffix: found.context.after }),
    fingerprint: writeFingerprint(found.fingerprint, pageAt(root.location)),
  };
}

/** An element with the hosts and frames around it, the outermost first. */
function chainOf(element: Element, page: Document): Element[] {
  const chain = [element];
  for (let root = element.getRootNode(); root !== page;) {
    const host = hostOf(root);
    if (host === null) break;
    chain.unshift(host);
    root = host.getRootNode();
  }
  return chain;
}

function fingerprintOf(
  element: Element,
  page: PageIndex,
  inner: readonly string[],
): { readonly fingerprint: Fingerprint; readonly context: Context } {
  const attributes = page.attributes(element);
  const kind = page.ofKind(element.localName);
  const names = Object.keys(attributes);
  const alike = (kind.get(page.text(element)) ?? []).filter((other) => {
    const found = page.attributes(other);
    return (
      names.every((name) => found[name] === attributes[name]) &&
      (page.text(element) !== '' || Object.keys(found).length === names.length)
    );
  });
  const others = alike.filter((other) => other !== element && !other.contains(element) && !element.contains(other));
  const { levels, surroundings, context } = describeContext(element, others, [...kind.values()].flat(), page);
  const words = contextWords(context);
  const same = [element, ...others].filter((other) => isSameContext(page.context(other, -1), words));
  const ordered = same.toSorted((one, other) => ((one.compareDocumentPosition(other) & 4) === 0 ? 1 : -1));
  const key = page.rowKey(element);
  const isListKey =
    key !== null &&
    [...element.ownerDocument.querySelectorAll(`[${CSS.escape(key[0])}]`)].some(
      (other) => other.getAttribute(key[0]) !== key[1],
    );
  return {
    context,
    fingerprint: {
      tag: element.localName,
      shape: shapeOf(element),
      attributes,
      classes: [...element.classList].slice(0, 4).map((name) => name.slice(0, 40)),
      surroundings,
      levels,
      labels: surroundings === 'row' && levels > 0 ? labelsOf(ancestorOf(element, levels)) : [],
      headings: page.storedHeadings(element),
      key: isListKey ? key : null,
      host: page.host(element),
      inner,
      count: 1 + others.length,
      same: ordered.length,
      nth: ordered.indexOf(element),
    },
  };
}

/** The text around an element that tells it from others, and how much it says. */
function describeContext(
  element: Element,
  others: readonly Element[],
  kind: readonly Element[],
  page: PageIndex,
): { readonly levels: number; readonly surroundings: Surroundings; readonly context: Context } {
  const { levels, isItem } = rowsAround(element);
  const isShared = others.length > 0;
  const headings = page.storedHeadings(element);
  const near =
    kind.length <= MAX_COMPARED
      ? kind
      : kind.slice(Math.max(0, kind.indexOf(element) - MAX_COMPARED / 2)).slice(0, MAX_COMPARED);
  let row: { readonly levels: number; readonly context: Context } | null = null;
  for (const level of levels) {
    const context = contextOf(element, ancestorOf(element, level));
    if (context.before + context.after === '') continue;
    row = { levels: level, context };
    const words = JSON.stringify(contextWords(context));
    if (
      !near.some(
        (other) =>
          other !== element &&
          !other.contains(element) &&
          !element.contains(other) &&
          isSame(other, level, words) &&
          // Others are never taken for it.
          headings.every((heading) => page.headings(other).includes(heading)),
      )
    )
      break;
  }
  if (row !== null) return { ...row, surroundings: isItem && !isShared ? 'near' : 'row' };
  const { body } = element.ownerDocument;
  if (element === body) return { levels: -1, surroundings: 'near', context: { before: '', after: '' } };
  if (isShared && !isItem) {
    const around = largestApart(element, others) ?? betweenOthers(element);
    if (around !== null) return { ...around, surroundings: 'row' };
  }
  if (TITLES.has(element.localName) && !isShared)
    return { levels: -1, surroundings: 'list', context: { before: '', after: '' } };
  for (let level = 1, at = element.parentElement; at !== null; level += 1, at = at.parentElement) {
    const context = contextOf(element, at);
    if (context.before + context.after !== '' || at === body || at.localName === 'svg')
      return { levels: level, surroundings: isShared ? 'row' : isItem ? 'list' : 'near', context };
  }
  return {
    levels: -1,
    surroundings: isShared ? 'row' : isItem ? 'list' : 'near',
    context: contextOf(element, element.getRootNode()),
  };
}

/**
 * The text around an element within its largest ancestor without another of its kind; null if there is no text in it.
 */
function largestApart(
  element: Element,
  others: readonly Element[],
): { readonly levels: number; readonly context: Context } | null {
  let level = 0;
  for (
    let at = element.parentElement;
    at !== null && !others.some((other) => at?.contains(other));
    at = at.parentElement
  )
    level += 1;
  if (level === 0) return null;
  const context = contextOf(element, ancestorOf(element, level));
  return context.before + context.after === '' ? null : { levels: level, context };
}

/**
 * In a list without elements around its rows, what is between two of them belongs to the latter, unless nothing is
 * before the first.
 */
function betweenOthers(element: Element): { readonly levels: number; readonly context: Context } | null {
  const quote = textOf(element);
  if (quote === '' || element.parentElement === null) return null;
  const { before, after } = contextOf(element, element.parentElement);
  const last = before.lastIndexOf(quote);
  const own = (last < 0 ? before : before.slice(last + quote.length)).trim();
  if (own !== '') return { levels: -1, context: { before: own, after: '' } };
  const next = (after.split(quote)[0] ?? '').trim();
  return next === '' ? null : { levels: -1, context: { before: '', after: next } };
}

function isSame(element: Element, levels: number, words: string): boolean {
  return (
    JSON.stringify(
      contextWords(contextOf(element, levels < 0 ? element.getRootNode() : ancestorOf(element, levels))),
    ) === words
  );
}

function fraction(offset: number, length: number): number {
  return Math.round(Math.min(1, Math.max(0, offset / length)) * 10_000) / 10_000;
}
