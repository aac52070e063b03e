import type { Position } from '../../model/thread.ts';
import { locate } from './locate.ts';
import { PageText } from './page-text.ts';

/** Where a pin is, relative to the window: `hidden` while its element is not shown, `detached` while there is none. */
export type Placement = { readonly state: 'shown'; readonly x: number; readonly y: number } | { readonly state: 'hidden' | 'detached' };

interface Tracked {
  position: Position;
  element: Element | null;
  /** The ancestors that can hide the element by scrolling it out of their box, when it was searched last. */
  clips: readonly Element[];
}

/** Elements are searched again at most this often, in milliseconds. */
const SEARCH_INTERVAL_MS = 250;

/** Events after which elements may be elsewhere. */
const MOVES = ['scroll', 'transitionend', 'animationend'];

/**
 * Follows the elements of positions while the page changes. Positions are measured at most once per frame, and elements searched
 * again at most every 250 ms, however often the page changes.
 */
export class AnchorTracker {
  readonly #root: Document;
  readonly #changed: () => void;
  readonly #tracked = new Map<string, Tracked>();
  readonly #mutations: MutationObserver;
  readonly #sizes: ResizeObserver;
  #frame = 0;
  #search = 0;
  #searched = 0;

  /** @param changed called at most once per frame, when positions may have changed */
  constructor(root: Document, changed: () => void) {
    this.#root = root;
    this.#changed = changed;
    this.#mutations = new MutationObserver(this.#searchLater);
    this.#sizes = new ResizeObserver(this.#schedule);
  }

  /** Begins to observe the page. */
  start(): void {
    this.#mutations.observe(this.#root.documentElement, { childList: true, subtree: true, characterData: true, attributeFilter: ['class', 'style', 'hidden', 'open', 'id'] });
    this.#sizes.observe(this.#root.documentElement);
    this.#sizes.observe(this.#root.body);
    for (const event of MOVES) this.#root.addEventListener(event, this.#schedule, true);
    // Style sheets that are loaded later and those for other widths can make ancestors scroll.
    this.#root.addEventListener('load', this.#searchLater, true);
    addEventListener('resize', this.#searchLater);
  }

  /** Ends what `start` began. */
  stop(): void {
    this.#mutations.disconnect();
    this.#sizes.disconnect();
    for (const event of MOVES) this.#root.removeEventListener(event, this.#schedule, true);
    this.#root.removeEventListener('load', this.#searchLater, true);
    removeEventListener('resize', this.#searchLater);
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#search);
    this.#frame = 0;
    this.#search = 0;
  }

  /** Replaces the positions that are followed, by the id of their thread. */
  track(positions: ReadonlyMap<string, Position>): void {
    for (const id of [...this.#tracked.keys()]) if (!positions.has(id)) this.#tracked.delete(id);
    const added: Tracked[] = [];
    for (const [id, position] of positions) {
      if (this.#tracked.get(id)?.position === position) continue;
      const tracked: Tracked = { position, element: null, clips: [] };
      this.#tracked.set(id, tracked);
      added.push(tracked);
    }
    this.#find(added);
  }

  /** The element of a position; null while it is detached. */
  elementOf(id: string): Element | null {
    return this.#tracked.get(id)?.element ?? null;
  }

  /** Where every pin is now. */
  measure(): Map<string, Placement> {
    const rects = new Map<Element, DOMRect>();
    const rectOf = (element: Element): DOMRect => {
      const rect = rects.get(element) ?? element.getBoundingClientRect();
      rects.set(element, rect);
      return rect;
    };
    return new Map([...this.#tracked].map(([id, tracked]) => [id, this.#place(tracked, rectOf)]));
  }

  #place({ position, element, clips }: Tracked, rectOf: (element: Element) => DOMRect): Placement {
    if (element === null || !element.isConnected) return { state: 'detached' };
    const page = this.#root.documentElement;
    const whole = element === page;
    const rect = rectOf(element);
    const width = whole ? page.scrollWidth : rect.width;
    const height = whole ? page.scrollHeight : rect.height;
    if ((width === 0 && height === 0) || !element.checkVisibility({ visibilityProperty: true })) return { state: 'hidden' };
    const x = rect.left + width * (whole ? position.x : (position.elementOffsetX ?? 0.5));
    const y = rect.top + height * (whole ? position.y : (position.elementOffsetY ?? 0.5));
    for (const clip of clips) {
      const box = rectOf(clip);
      if (x < box.left || x > box.right || y < box.top || y > box.bottom) return { state: 'hidden' };
    }
    return { state: 'shown', x, y };
  }

  #find(all: Iterable<Tracked>): void {
    const text = new PageText(this.#root);
    const clips = new Map<Element, readonly Element[]>();
    for (const tracked of all) {
      const element = locate(this.#root, tracked.position, text);
      tracked.clips = clippingAncestors(element, clips);
      if (element === tracked.element) continue;
      if (tracked.element !== null) this.#sizes.unobserve(tracked.element);
      if (element !== null) this.#sizes.observe(element);
      tracked.element = element;
    }
  }

  readonly #schedule = (): void => {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#changed();
    });
  };

  readonly #searchLater = (): void => {
    this.#schedule();
    if (this.#search !== 0) return;
    const wait = Math.max(0, this.#searched + SEARCH_INTERVAL_MS - performance.now());
    this.#search = window.setTimeout(() => {
      this.#search = 0;
      this.#find(this.#tracked.values());
      this.#searched = performance.now();
      this.#schedule();
    }, wait);
  };
}

/** @param known those of other elements, which are mostly the same */
function clippingAncestors(element: Element | null, known: Map<Element, readonly Element[]>): readonly Element[] {
  const at = element?.parentElement ?? null;
  if (at === null || at === at.ownerDocument.body || at === at.ownerDocument.documentElement) return [];
  let found = known.get(at);
  if (found === undefined) {
    const { overflowX, overflowY } = getComputedStyle(at);
    found = clippingAncestors(at, known);
    if (overflowX !== 'visible' || overflowY !== 'visible') found = [at, ...found];
    known.set(at, found);
  }
  return found;
}
