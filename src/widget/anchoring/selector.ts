/** The most steps of a selector, and its most characters, which is the bound of the server. */
const MAX_STEPS = 64;
const MAX_LENGTH = 2_048;
/** Ids that a program made, or that count, such as `row-3`: another element has them after the next change. */
const GENERATED_ID = /\d|[:.]/;

// The space after an escape by number, which `CSS.escape` always writes, is not optional: a digit of a name would have
// two readings, and a selector of many such escapes as many as there are combinations.
const NAME = String.raw`(?:[\w-]|[^\0-\x7f]|\\[\da-f]{1,6} |\\[^\n\da-f])+`;
const ANCHOR = String.raw`\[data-collab-anchor="${NAME}"\]`;
const NTH = String.raw`:nth-of-type\([1-9]\d{0,5}\)`;
const STEP = `(?:#${NAME}|${ANCHOR}|${NAME}(?:#${NAME})?(?:${ANCHOR})?(?:${NTH})?)`;
const SELECTOR = new RegExp(`^${STEP}(?: ?> ?${STEP}){0,${MAX_STEPS - 1}}$`, 'i');

/**
 * The element that a stored selector leads to; null if there is none. Only what this widget writes is evaluated (`#id`,
 * `[data-collab-anchor="…"]`, `tag:nth-of-type(n)`, joined by `>`, at most 64 steps): anybody can store any other
 * selector, and some take minutes.
 */
export function select(root: Document | ShadowRoot, selector: string | undefined): Element | null {
  if (selector === undefined || selector.length > MAX_LENGTH || !SELECTOR.test(selector)) return null;
  try {
    return root.querySelector(selector);
  } catch {
    return null;
  }
}

/** Whether a selector is a name that the page promises to keep: `data-collab-anchor`. */
export function isAnchor(selector: string | undefined): boolean {
  return selector?.startsWith('[data-collab-anchor=') === true && !selector.includes('>');
}

/**
 * A short selector that finds only this element now, within its root: by `data-collab-anchor`, else by path from the
 * nearest ancestor with an id. Undefined if it would be too long.
 */
export function selectorOf(element: Element): string | undefined {
  const name = element.getAttribute('data-collab-anchor');
  if (name !== null && name !== '') return bounded(`[data-collab-anchor="${CSS.escape(name)}"]`);
  const root = element.getRootNode() as Document | ShadowRoot;
  for (
    let ancestor = element.closest('[id]');
    ancestor !== null;
    ancestor = ancestor.parentElement?.closest('[id]') ?? null
  ) {
    const selector = `#${CSS.escape(ancestor.id)}`;
    if (ancestor.id === '' || GENERATED_ID.test(ancestor.id) || root.querySelectorAll(selector).length > 1) continue;
    return bounded(ancestor === element ? selector : `${selector} > ${steps(element, ancestor)}`);
  }
  return pathOf(element);
}

/** The steps from the root of an element down to it. Undefined if they would be too long. */
export function pathOf(element: Element): string | undefined {
  return bounded(steps(element, null));
}

function steps(element: Element, ancestor: Element | null): string {
  const found: string[] = [];
  const { body, documentElement } = element.ownerDocument;
  for (
    let at: Element | null = element;
    at !== null && at !== ancestor && at !== documentElement;
    at = at.parentElement
  ) {
    found.unshift(at === body ? 'body' : step(at));
  }
  return found.length === 0 ? 'html' : found.join(' > ');
}

function step(element: Element): string {
  const tag = CSS.escape(element.localName);
  const same = [...(element.parentNode?.children ?? [])].filter((sibling) => sibling.localName === element.localName);
  return same.length === 1 ? tag : `${tag}:nth-of-type(${same.indexOf(element) + 1})`;
}

function bounded(selector: string): string | undefined {
  return selector.length <= MAX_LENGTH && SELECTOR.test(selector) ? selector : undefined;
}
