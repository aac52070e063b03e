import { hostOf, shownBy } from './roots.ts';

/** A rectangle in CSS pixels. */
export interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** Reads the rectangle of an element within its own window. */
export type ReadRect = (element: Element) => Box;

/**
 * The rectangle of an element in the window of the page, through the frames around it, which may be zoomed or scaled.
 */
export function boxOf(
  element: Element,
  page: Document,
  rectOf: ReadRect = (each) => each.getBoundingClientRect(),
): Box {
  let box = rectOf(element);
  for (let { ownerDocument } = element; ownerDocument !== page;) {
    const frame = hostOf(ownerDocument) as HTMLElement | null;
    if (frame === null) break;
    const outer = rectOf(frame);
    const scaleX = outer.width / Math.max(1, frame.offsetWidth);
    const scaleY = outer.height / Math.max(1, frame.offsetHeight);
    box = {
      left: outer.left + (frame.clientLeft + box.left) * scaleX,
      top: outer.top + (frame.clientTop + box.top) * scaleY,
      width: box.width * scaleX,
      height: box.height * scaleY,
    };
    ownerDocument = frame.ownerDocument;
  }
  return box;
}

/**
 * The innermost element at a point of the window, into open shadow roots and frames of the same origin, without the
 * widget.
 */
export function elementAt(page: Document, x: number, y: number, apart: Element): Element | null {
  let root: Document | ShadowRoot = page;
  let found: Element | null = null;
  for (let left = 0, top = 0, scaleX = 1, scaleY = 1; ;) {
    const all: Element[] = root.elementsFromPoint((x - left) / scaleX, (y - top) / scaleY);
    const next = all.find(
      (element) => element !== apart && !apart.contains(element) && element !== found && element.getRootNode() === root,
    );
    if (next === undefined) return found;
    found = next;
    const inner = shownBy(next);
    if (inner === null) return found;
    if (!('host' in inner)) {
      const box = boxOf(next, page);
      const { offsetWidth, offsetHeight, clientLeft, clientTop } = next as HTMLElement;
      scaleX = box.width / Math.max(1, offsetWidth);
      scaleY = box.height / Math.max(1, offsetHeight);
      left = box.left + clientLeft * scaleX;
      top = box.top + clientTop * scaleY;
    }
    root = inner;
  }
}

/**
 * What an element is in the layout: its position, whether it cuts what is in it, and whether it contains fixed
 * elements.
 */
export interface Layout {
  readonly position: string;
  readonly clips: boolean;
  readonly style: CSSStyleDeclaration;
  /** Null while nobody has asked: it takes the most of all. */
  containsFixed: boolean | null;
}

/**
 * The elements that can hide a part of an element by scrolling or cutting it out of their box, the innermost first.
 *
 * @param known what was read of other elements, which are mostly around this one too
 */
export function clipsOf(element: Element, page: Document, known: Map<Element, Layout>): Element[] {
  const clips: Element[] = [];
  // The page may be in a frame itself, which is no concern of its own.
  const end = hostOf(page);
  let { position } = layoutOf(element, known);
  for (let at = outerOf(element); at !== null && at !== end; at = outerOf(at)) {
    const isFrame = at.localName.endsWith('frame') && at.ownerDocument !== element.ownerDocument;
    const style = layoutOf(at, known);
    if (isFrame) {
      clips.push(at);
      position = style.position;
      continue;
    }
    if ((position === 'fixed' || position === 'absolute') && !contains(style, position)) continue;
    const { body, documentElement } = at.ownerDocument;
    if (at === documentElement || (at === body && (!style.clips || !layoutOf(documentElement, known).clips))) continue;
    if (style.clips) clips.push(at);
    position = style.position;
  }
  return clips;
}

/** Whether an element stays in the window or at an edge of what scrolls. */
export function isStuck(element: Element): boolean {
  const { position } = getComputedStyle(element);
  return position === 'sticky' || position === '-webkit-sticky' || position === 'fixed';
}

/** The element around another one as it is laid out: by slots, then hosts and frames. */
export function outerOf(element: Element): Element | null {
  return element.assignedSlot ?? element.parentElement ?? hostOf(element.getRootNode());
}

function layoutOf(element: Element, known: Map<Element, Layout>): Layout {
  const read = known.get(element);
  if (read !== undefined) return read;
  const style = getComputedStyle(element);
  const layout = {
    position: style.position,
    clips: style.overflowX !== 'visible' || style.overflowY !== 'visible',
    style,
    containsFixed: null,
  };
  known.set(element, layout);
  return layout;
}

/** Whether an element is the containing block of the elements in it with this position, `fixed` or `absolute`. */
function contains(layout: Layout, position: string): boolean {
  if (position === 'absolute' && layout.position !== 'static') return true;
  layout.containsFixed ??= containsFixed(layout.style);
  return layout.containsFixed;
}

/** Whether an element is the containing block of fixed elements in it. */
function containsFixed(style: CSSStyleDeclaration): boolean {
  const { transform, translate, rotate, scale, perspective, filter, willChange, contain, containerType } = style;
  const backdrop = style.getPropertyValue('backdrop-filter');
  return (
    [transform, translate, rotate, scale, perspective, filter, backdrop].some(
      (value) => value !== 'none' && value !== '' && value !== undefined,
    ) ||
    /transform|filter|perspective|translate|rotate|scale/.test(willChange) ||
    /paint|layout|strict|content/.test(contain) ||
    (containerType !== undefined && containerType !== 'normal' && containerType !== '')
  );
}
