import { boxOf, isStuck, outerOf, type ReadRect } from './geometry.ts';

/** Covers are looked for at most this often, in milliseconds. */
const INTERVAL_MS = 100;
/** How far from the edges, in pixels, and at which parts of them. */
const INSET = 3;
const PARTS = [0.1, 0.5, 0.9];

/**
 * What stays at the edges of the window, or of what scrolls, while content moves under it: sticky headers, fixed bars.
 */
export class Covers {
  readonly #page: Document;
  readonly #apart: Element;
  #found = new Set<Element>();
  #probedAt = -INTERVAL_MS;
  /** The elements that scroll. */
  scrollers: ReadonlySet<Element> = new Set();

  constructor(page: Document, apart: Element) {
    this.#page = page;
    this.#apart = apart;
  }

  /** Looks for covers, if it was not done just now. */
  probe(): void {
    if (performance.now() < this.#probedAt + INTERVAL_MS) return;
    this.#probedAt = performance.now();
    const { clientWidth, clientHeight } = this.#page.documentElement;
    const boxes = [
      { left: 0, top: 0, width: clientWidth, height: clientHeight },
      ...[...this.scrollers].slice(0, 8).map((scroller) => boxOf(scroller, this.#page)),
    ];
    this.#found = new Set();
    for (const { left, top, width, height } of boxes) {
      for (const part of PARTS) {
        this.#at(left + width * part, top + INSET);
        this.#at(left + width * part, top + height - INSET);
        this.#at(left + INSET, top + height * part);
        this.#at(left + width - INSET, top + height * part);
      }
    }
  }

  /** Whether a point of an element is under a cover that the element is no part of. */
  isCovered(element: Element, x: number, y: number, rectOf: ReadRect): boolean {
    for (const cover of this.#found) {
      if (isWithin(element, cover)) continue;
      const { left, top, width, height } = boxOf(cover, this.#page, rectOf);
      if (x < left || x > left + width || y < top || y > top + height) continue;
      const upper = this.#hit(x, y);
      if (upper !== null && isWithin(upper, cover)) return true;
    }
    return false;
  }

  #at(x: number, y: number): void {
    for (let at = this.#hit(x, y); at !== null && at.ownerDocument === this.#page; at = outerOf(at)) {
      if (this.#found.has(at)) return;
      if (isStuck(at)) this.#found.add(at);
    }
  }

  #hit(x: number, y: number): Element | null {
    // The topmost element is mostly none of the widget, and then enough.
    const topmost = this.#page.elementFromPoint(x, y);
    if (topmost === null || !this.#apart.contains(topmost)) return topmost;
    return this.#page.elementsFromPoint(x, y).find((element) => !this.#apart.contains(element)) ?? null;
  }
}

function isWithin(element: Element, cover: Element): boolean {
  for (let at: Element | null = element; at !== null; at = outerOf(at)) if (at === cover) return true;
  return false;
}
