import type { FrameReads } from './frame-reads.ts';
import { boxOf, isStuck, outerOf } from './geometry.ts';

/** Covers are looked for at most this often, in milliseconds, and over so many frames: each point takes a while. */
const INTERVAL_MS = 300;
const FRAMES = 6;
/** How far from the edges, in pixels, and at which parts of them. */
const INSET = 3;
const PARTS = [0.1, 0.5, 0.9];

/**
 * What stays at the edges of the window, or of what scrolls, while content moves under it: sticky headers, fixed bars.
 */
export class Covers {
  readonly #page: Document;
  readonly #apart: Element;
  /** What was found, and what is found again while it is looked for. */
  #found = new Set<Element>();
  #next = new Set<Element>();
  readonly #seen = new Set<Element>();
  #points: { readonly x: number; readonly y: number }[] = [];
  #perFrame = 0;
  #isDue = false;
  #beganAt = -INTERVAL_MS;
  /** The elements that scroll. */
  scrollers: ReadonlySet<Element> = new Set();

  constructor(page: Document, apart: Element) {
    this.#page = page;
    this.#apart = apart;
  }

  /** Looks for covers, in this frame and the next ones, if `hasChanged` or it was true since they were looked for. */
  probe(hasChanged: boolean): void {
    this.#isDue ||= hasChanged;
    if (this.#points.length === 0) {
      if (!this.#isDue || performance.now() < this.#beganAt + INTERVAL_MS) return;
      this.#begin();
    }
    for (const { x, y } of this.#points.splice(0, this.#perFrame)) this.#at(x, y);
    if (this.#points.length === 0) this.#found = this.#next;
  }

  /** Whether a point of an element is under a cover that the element is no part of. */
  isCovered(element: Element, x: number, y: number, reads: FrameReads): boolean {
    for (const cover of this.#found) {
      const { left, top, width, height } = reads.boxOf(cover);
      if (x < left || x > left + width || y < top || y > top + height || isWithin(element, cover)) continue;
      const upper = this.#hit(x, y);
      if (upper !== null && isWithin(upper, cover)) return true;
    }
    return false;
  }

  #begin(): void {
    this.#beganAt = performance.now();
    this.#isDue = false;
    this.#next = new Set();
    this.#seen.clear();
    const { clientWidth, clientHeight } = this.#page.documentElement;
    const boxes = [
      { left: 0, top: 0, width: clientWidth, height: clientHeight },
      ...[...this.scrollers].slice(0, 8).map((scroller) => boxOf(scroller, this.#page)),
    ];
    for (const { left, top, width, height } of boxes) {
      for (const part of PARTS) {
        this.#points.push(
          { x: left + width * part, y: top + INSET },
          { x: left + width * part, y: top + height - INSET },
        );
        this.#points.push(
          { x: left + INSET, y: top + height * part },
          { x: left + width - INSET, y: top + height * part },
        );
      }
    }
    this.#perFrame = Math.ceil(this.#points.length / FRAMES);
  }

  #at(x: number, y: number): void {
    for (let at = this.#hit(x, y); at !== null && at.ownerDocument === this.#page; at = outerOf(at)) {
      if (this.#seen.has(at)) return;
      this.#seen.add(at);
      if (!isStuck(at)) continue;
      this.#next.add(at);
      this.#found.add(at);
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
