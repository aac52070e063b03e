import type { Position } from '../../model/thread.ts';
import { describeContext } from './context.ts';

/** The length of a quote, in characters. */
export const QUOTE_LENGTH = 120;
/** Selectors longer than the bound of the server are left out. */
const MAX_SELECTOR = 2_048;
/** Ids with this many digits in a row are made by a program and differ at the next visit. */
const GENERATED_ID = /\d{4}|[:.]/;

/** Describes a point of the page: the element at it and the place within that, with the means to find both again. */
export function describePoint(root: Document, element: Element, clientX: number, clientY: number): Position {
  const page = root.documentElement.getBoundingClientRect();
  const box = element.getBoundingClientRect();
  const selector = selectorOf(element);
  const path = pathOf(element, null);
  const quote = quoteOf(element);
  const context = quote === null ? null : describeContext(element, quote, sameKind(root, element, quote));
  return {
      x: fraction(clientX - page.left, Math.max(root.documentElement.scrollWidth, 1)),
      y: fraction(clientY - page.top, Math.max(root.documentElement.scrollHeight, 1)),
      ...(selector.length <= MAX_SELECTOR ? { selector } : {}),
      ...(path.length <= MAX_SELECTOR ? { path } : {}),
      elementOffsetX: fraction(clientX - box.left, Math.max(box.width, 1)),
      elementOffsetY: fraction(clientY - box.top, Math.max(box.height, 1)),
      scrollX: Math.round(root.defaultView?.scrollX ?? 0),
      scrollY: Math.round(root.defaultView?.scrollY ?? 0),
    ...(quote === null ? {} : { quote }),
    ...(context === null || context.before === '' ? {} : { quotePrefix: context.before }),
    ...(context === null || context.after === '' ? {} : { quoteSuffix: context.after }),
  };
}

/** The beginning of the text of an element, with single spaces; null if it is too short to find it by. */
export function quoteOf(element: Element): string | null {
  const text = (element.textContent ?? '').slice(0, 4 * QUOTE_LENGTH).replaceAll(/\s+/g, ' ').trim();
  return text.length < 3 ? null : text.slice(0, QUOTE_LENGTH).trim();
}

/** The other elements of the same kind with the same quote. */
function sameKind(root: Document, element: Element, quote: string): Element[] {
  return [...root.getElementsByTagName(element.localName)].filter((other) => other !== element && quoteOf(other) === quote);
}

/** A short selector that finds only this element now: by `data-collab-anchor`, else by path from the nearest ancestor with an id. */
function selectorOf(element: Element): string {
  const name = element.getAttribute('data-collab-anchor');
  if (name !== null && name !== '') return `[data-collab-anchor="${CSS.escape(name)}"]`;
  const base = element.closest('[id]');
  for (let ancestor = base; ancestor !== null; ancestor = ancestor.parentElement?.closest('[id]') ?? null) {
    const selector = `#${CSS.escape(ancestor.id)}`;
    if (ancestor.id === '' || GENERATED_ID.test(ancestor.id) || element.ownerDocument.querySelectorAll(selector).length > 1) continue;
    return ancestor === element ? selector : `${selector}>${pathOf(element, ancestor)}`;
  }
  return pathOf(element, null);
}

/** The steps from `ancestor` (exclusive) or `body` (inclusive) down to an element. */
function pathOf(element: Element, ancestor: Element | null): string {
  const steps: string[] = [];
  const { body, documentElement } = element.ownerDocument;
  for (let at: Element | null = element; at !== null && at !== ancestor && at !== documentElement; at = at.parentElement) {
    steps.unshift(at === body ? 'body' : stepOf(at));
  }
  return steps.length === 0 ? 'html' : steps.join('>');
}

function stepOf(element: Element): string {
  const tag = CSS.escape(element.localName);
  const same = [...(element.parentElement?.children ?? [])].filter((sibling) => sibling.localName === element.localName);
  return same.length === 1 ? tag : `${tag}:nth-of-type(${same.indexOf(element) + 1})`;
}

function fraction(offset: number, length: number): number {
  return Math.round(Math.min(1, Math.max(0, offset / length)) * 10_000) / 10_000;
}
