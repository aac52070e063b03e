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

/** The rectangle of an element in the window of the page, through the frames around it, which may be zoomed or scaled. */
export function boxOf(element: Element, page: Document, rectOf: ReadRect = (each) => each.getBoundingClientRect()): Box {
  let box = rectOf(element);
  for (let { ownerDocument } = element; ownerDocument !== page; ) {
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

/** The innermost element at a point of the window, into open shadow roots and frames of the same origin, without the widget. */
export function elementAt(page: Document, x: number, y: number, apart: Element): Element | null {
  let root: Document | ShadowRoot = page;
  let found: Element | null = null;
  for (let left = 0, top = 0, scaleX = 1, scaleY = 1; ; ) {
    const all: Element[] = root.elementsFromPoint((x - left) / scaleX, (y - top) / scaleY);
    const next = all.find((element) => element !== apart && !apart.contains(element) && element !== found && element.getRootNode() === root);
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

/** The elements that can hide a part of an element by scrolling or cutting it out of their box, the innermost first. */
export function clipsOf(element: Element): Element[] {
  const clips: Element[] = [];
  let position = getComputedStyle(element).position;
  for (let at = outerOf(element); at !== null; at = outerOf(at)) {
    const isFrame = at.localName.endsWith('frame') && at.ownerDocument !== element.ownerDocument;
    const style = getComputedStyle(at);
    const contains = containsFixed(style) || (position === 'absolute' && style.position !== 'static');
    if (isFrame) {
      clips.push(at);
      position = style.position;
      continue;
    }
    if ((position === 'fixed' || position === 'absolute') && !contains) continue;
    const { body, documentElement } = at.ownerDocument;
    if (at === documentElement || (at === body && isShownByWindow(style, documentElement))) continue;
    if (style.overflowX !== 'visible' || style.overflowY !== 'visible') clips.push(at);
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

/** The overflow of `body` is that of the window while that of the root element is visible. */
function isShownByWindow(style: CSSStyleDeclaration, documentElement: Element): boolean {
  const { overflowX, overflowY } = getComputedStyle(documentElement);
  return (overflowX === 'visible' && overflowY === 'visible') || (style.overflowX === 'visible' && style.overflowY === 'visible');
}

/** Whether an element is the containing block of fixed elements in it. */
function containsFixed(style: CSSStyleDeclaration): boolean {
  const { transform, translate, rotate, scale, perspective, filter, willChange, contain, containerType } = style;
  const backdrop = style.getPropertyValue('backdrop-filter');
  return (
    [transform, translate, rotate, scale, perspective, filter, backdrop].some((value) => value !== 'none' && value !== '' && value !== undefined) ||
    /transform|filter|perspective|translate|rotate|scale/.test(willChange) ||
    /paint|layout|strict|content/.test(contain) ||
    (containerType !== undefined && containerType !== 'normal' && containerType !== '')
  );
}
