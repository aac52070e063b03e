import { textOf } from './text.ts';
import { isNumber, wordsOf } from './words.ts';

/** Elements that are rows of a list by their kind. */
const ROWS = new Set(['tr', 'li']);
/** Elements that are rows themselves where they follow each other, not cells of one. */
const ITEMS = new Set([
  'li',
  'tr',
  'a',
  'option',
  'button',
  'p',
  'article',
  'section',
  'dt',
  'figure',
  'h2',
  'h3',
  'h4',
  'rect',
  'circle',
  'path',
]);
/** Elements that hold lists and are no rows themselves. */
const LISTS = new Set(['ul', 'ol', 'dl', 'table', 'tbody', 'thead', 'nav', 'svg', 'select', 'main']);
/** The text of a row has at most this many characters. */
const MAX_ROW = 400;
/** At most so many labels of a row are stored, each with at most so many characters. */
const MAX_LABELS = 12;
const MAX_LABEL = 24;
/** At most this many neighbours of an element are compared with it. */
const MAX_SIBLINGS = 30;

/** The rows around an element, as numbers of levels above it, the inner first. */
export interface Rows {
  readonly levels: readonly number[];
  /** Whether the element is, or is all of, an item of a list. */
  readonly isItem: boolean;
}

/** The tags of the children of an element, at most eight. */
export function shapeOf(element: Element): string {
  return [...element.children]
    .slice(0, 8)
    .map(({ localName }) => localName)
    .join(' ')
    .slice(0, 120);
}

/**
 * The rows, cards and the like that an element is a part of: ancestors with neighbours of the same kind and the same
 * parts.
 */
export function rowsAround(element: Element): Rows {
  const own = textOf(element);
  const levels: number[] = [];
  let isItem = false;
  let level = 0;
  const { body } = element.ownerDocument;
  for (let at: Element | null = element; at !== null && at !== body; at = at.parentElement) {
    const text = textOf(at, MAX_ROW + 2);
    if (text.length >= MAX_ROW && level > 0) break;
    const hasMore = !LISTS.has(at.localName) && level > 0 && text !== own && text.length > own.length;
    if (hasMore && (ROWS.has(at.localName) || at.getAttribute('role') === 'row' || isRepeated(at))) levels.push(level);
    else if (!hasMore && levels.length === 0 && ITEMS.has(at.localName) && isRepeated(at)) isItem = true;
    level += 1;
  }
  return { levels, isItem };
}

/** The ancestor this many levels above an element, or the uppermost in its root. */
export function ancestorOf(element: Element, levels: number): Element {
  let at = element;
  for (let level = 0; level < levels && at.parentElement !== null && at !== at.ownerDocument.body; level += 1)
    at = at.parentElement;
  return at;
}

/** The words of a row that at least half of its neighbours of the same kind have, numbers apart. */
export function labelsOf(row: Element): string[] {
  const alike = neighbours(row).map((sibling) => new Set(wordsOf(textOf(sibling, MAX_ROW))));
  if (alike.length < 2) return [];
  const words = [...new Set(wordsOf(textOf(row, MAX_ROW)))].filter(
    (word) => word.length <= MAX_LABEL && !isNumber(word),
  );
  return words
    .filter((word) => alike.filter((words) => words.has(word)).length * 2 >= alike.length)
    .slice(0, MAX_LABELS);
}

/** Whether an element has a neighbour of the same kind with the same children. */
function isRepeated(element: Element): boolean {
  return neighbours(element).length > 0;
}

/** The nearest neighbours of an element of the same kind with the same children. */
function neighbours(element: Element): Element[] {
  const siblings = element.parentNode?.children ?? [];
  const shape = shapeOf(element);
  const at = Array.prototype.indexOf.call(siblings, element);
  const found: Element[] = [];
  for (
    let index = Math.max(0, at - MAX_SIBLINGS / 2);
    index < Math.min(siblings.length, at + MAX_SIBLINGS / 2);
    index += 1
  ) {
    const sibling = siblings[index];
    if (sibling !== undefined && index !== at && sibling.localName === element.localName && shapeOf(sibling) === shape)
      found.push(sibling);
  }
  return found;
}
