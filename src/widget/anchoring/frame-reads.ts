import { type Box, boxOf, type ReadRect } from './geometry.ts';

/** What is read of a page once in a frame, although many pins need it. */
export class FrameReads {
  /** The rectangle of the root element, in the window. */
  page: Box = { left: 0, top: 0, width: 0, height: 0 };
  readonly #page: Document;
  readonly #rects = new Map<Element, Box>();
  readonly #boxes = new Map<Element, Box>();
  #size: Pick<Box, 'width' | 'height'> | null = null;

  constructor(page: Document) {
    this.#page = page;
  }

  /** Forgets what was read. Returns whether the root element is at another place of the window than before. */
  begin(): boolean {
    this.#rects.clear();
    this.#boxes.clear();
    this.#size = null;
    const { left, top } = this.page;
    this.page = this.#page.documentElement.getBoundingClientRect();
    return left !== this.page.left || top !== this.page.top;
  }

  /** The size of the whole page, with what is outside of the box of its root element. */
  get size(): Pick<Box, 'width' | 'height'> {
    const { scrollWidth, scrollHeight } = this.#page.documentElement;
    return (this.#size ??= { width: scrollWidth, height: scrollHeight });
  }

  /** The rectangle of an element in its own window. */
  readonly rectOf: ReadRect = (element) => read(this.#rects, element, () => element.getBoundingClientRect());

  /** The rectangle of an element in the window of the page. */
  readonly boxOf: ReadRect = (element) => read(this.#boxes, element, () => boxOf(element, this.#page, this.rectOf));
}

function read(known: Map<Element, Box>, element: Element, measure: () => Box): Box {
  const before = known.get(element);
  if (before !== undefined) return before;
  const box = measure();
  known.set(element, box);
  return box;
}
