import type { Position } from '../../model/thread.ts';
import { Activity } from './activity.ts';
import { Covers } from './covers.ts';
import { type Box, boxOf, clipsOf, type Layout, type ReadRect } from './geometry.ts';
import { locate, readPosition, type Sought } from './locate.ts';
import { Mutations } from './mutations.ts';
import { PageIndex } from './page-index.ts';
import { hostOf, isInPage } from './roots.ts';
import { ancestorOf } from './row.ts';

/** Where a pin is, relative to the window: `hidden` while its element is not shown, `detached` while there is none. */
export type Placement =
  | { readonly state: 'shown'; readonly x: number; readonly y: number }
  | { readonly state: 'hidden' | 'detached' };

interface Tracked {
  readonly sought: Sought;
  element: Element | null;
  /** The ancestors that can hide the element by scrolling it out of their box, when it was searched last. */
  clips: readonly Element[];
  /** Whether the element was shown then. */
  isVisible: boolean;
}

/** Elements are searched again at most this often, in milliseconds, and for at most a quarter of the time. */
const MAX_INTERVAL_MS = 250;
const SEARCH_PART = 4;
/**
 * What can hide elements is looked for again at most this often while nothing says that it has changed, in
 * milliseconds.
 */
const CLIP_INTERVAL_MS = 250;

/**
 * Follows the elements of positions while the page changes. They are measured once per frame while something may move.
 * Those around which the page has changed are searched again in the next frame, the others somewhat later.
 */
export class AnchorTracker {
  readonly #page: Document;
  readonly #apart: Element;
  readonly #changed: () => void;
  readonly #tracked = new Map<string, Tracked>();
  readonly #activity: Activity;
  readonly #mutations: Mutations;
  readonly #covers: Covers;
  #placements: ReadonlyMap<string, Placement> = new Map();
  #search = 0;
  /** Whether a search waits for the page to be seen. */
  #isDue = false;
  #searchedAt = 0;
  #interval = 0;
  #clippedAt = 0;

  /**
   * @param apart the widget, which is no part of the page
   * @param changed called at most once per frame, when pins have moved
   */
  constructor(page: Document, apart: Element, changed: () => void) {
    this.#page = page;
    this.#apart = apart;
    this.#changed = changed;
    this.#covers = new Covers(page, apart);
    this.#activity = new Activity(
      page,
      () => this.#look(),
      () => this.#elements(),
      () => this.#searchLater(),
    );
    this.#mutations = new Mutations(apart, (isContent) => {
      this.#activity.wake();
      this.#clippedAt = -CLIP_INTERVAL_MS;
      if (isContent) this.#searchLater();
    });
  }

  /** Begins to observe the page. */
  start(): void {
    this.#observe(new PageIndex(this.#page, this.#apart));
    this.#searchLater();
  }

  /** Ends what `start` began. */
  stop(): void {
    this.#activity.stop();
    this.#mutations.observe([]);
    clearTimeout(this.#search);
    this.#search = 0;
  }

  /** Replaces the positions that are followed, by the id of their thread. */
  track(positions: ReadonlyMap<string, Position>): void {
    for (const id of this.#tracked.keys()) if (!positions.has(id)) this.#tracked.delete(id);
    const added: Tracked[] = [];
    for (const [id, position] of positions) {
      if (this.#tracked.get(id)?.sought.position === position) continue;
      const tracked: Tracked = { sought: readPosition(position), element: null, clips: [], isVisible: false };
      this.#tracked.set(id, tracked);
      added.push(tracked);
    }
    if (added.length === 0) return;
    this.#find(added);
    this.#activity.wake();
  }

  /** The element of a position; null while it is detached. */
  elementOf(id: string): Element | null {
    return this.#tracked.get(id)?.element ?? null;
  }

  /** Where every pin is now. */
  measure(): ReadonlyMap<string, Placement> {
    const rects = new Map<Element, Box>();
    const rectOf: ReadRect = (element) => {
      const rect = rects.get(element) ?? element.getBoundingClientRect();
      rects.set(element, rect);
      return rect;
    };
    this.#placements = new Map([...this.#tracked].map(([id, tracked]) => [id, this.#place(tracked, rectOf)]));
    return this.#placements;
  }

  /** One frame: whether a pin has moved. */
  #look(): boolean {
    const stale = this.#mutations.take();
    if (this.#isDue) this.#searchAll();
    else if (stale !== null) this.#find([...this.#tracked.values()].filter((tracked) => isAmong(tracked, stale)));
    this.#clip();
    this.#covers.probe();
    const before = this.#placements;
    const moved =
      [...this.measure()].some(([id, placement]) => !isEqual(before.get(id), placement)) ||
      before.size !== this.#placements.size;
    if (moved) this.#changed();
    return moved;
  }

  #place({ sought: { position }, element, clips, isVisible }: Tracked, rectOf: ReadRect): Placement {
    if (element === null || !isInPage(element, this.#page)) return { state: 'detached' };
    const page = this.#page.documentElement;
    const whole = element === page;
    const rect = boxOf(element, this.#page, rectOf);
    const width = whole ? page.scrollWidth : rect.width;
    const height = whole ? page.scrollHeight : rect.height;
    if ((width === 0 && height === 0) || !isVisible) return { state: 'hidden' };
    const x = rect.left + width * (whole ? position.x : (position.elementOffsetX ?? 0.5));
    const y = rect.top + height * (whole ? position.y : (position.elementOffsetY ?? 0.5));
    if (!Number.isFinite(x + y)) return { state: 'detached' };
    for (const clip of clips) {
      const { left, top, width: clipWidth, height: clipHeight } = boxOf(clip, this.#page, rectOf);
      if (x < left || x > left + clipWidth || y < top || y > top + clipHeight) return { state: 'hidden' };
    }
    return !whole && this.#covers.isCovered(element, x, y, rectOf) ? { state: 'hidden' } : { state: 'shown', x, y };
  }

  /**
   * Finds out again what can hide elements: at once after a change, and now and then, since style sheets change without
   * any event.
   */
  #clip(): void {
    if (performance.now() < this.#clippedAt + CLIP_INTERVAL_MS) return;
    this.#clippedAt = performance.now();
    const layouts = new Map<Element, Layout>();
    for (const tracked of this.#tracked.values()) this.#read(tracked, layouts);
    this.#covers.scrollers = new Set([...this.#tracked.values()].flatMap(({ clips }) => clips));
  }

  #read(tracked: Tracked, layouts: Map<Element, Layout>): void {
    tracked.clips = tracked.element === null ? [] : clipsOf(tracked.element, this.#page, layouts);
    tracked.isVisible = tracked.element !== null && isVisible(tracked.element, this.#page);
  }

  #find(all: readonly Tracked[]): void {
    if (all.length === 0) return;
    const index = new PageIndex(this.#page, this.#apart);
    const layouts = new Map<Element, Layout>();
    for (const tracked of all) {
      // Whatever a position says, the other pins are shown.
      try {
        tracked.element = locate(tracked.sought, index);
        this.#read(tracked, layouts);
      } catch {
        tracked.element = null;
      }
    }
    this.#observe(index);
  }

  #observe({ roots }: PageIndex): void {
    if (!this.#mutations.observe(roots)) return;
    this.#activity.listen(roots.filter((root): root is Document => !('host' in root)));
  }

  #elements(): Element[] {
    return [...this.#tracked.values()].flatMap(({ element }) => (element === null ? [] : [element]));
  }

  readonly #searchLater = (): void => {
    if (this.#search !== 0) return;
    const wait = Math.max(0, this.#searchedAt + this.#interval - performance.now());
    this.#search = window.setTimeout(() => {
      this.#search = 0;
      // While nobody sees the page there are no frames: the first one after that searches.
      this.#isDue = this.#page.hidden;
      if (!this.#isDue) this.#searchAll();
      this.#activity.wake();
    }, wait);
  };

  #searchAll(): void {
    this.#isDue = false;
    const began = performance.now();
    this.#find([...this.#tracked.values()]);
    this.#searchedAt = performance.now();
    this.#interval = Math.min(MAX_INTERVAL_MS, (this.#searchedAt - began) * SEARCH_PART);
  }
}

/** Whether the page has changed within the row of an element, or the element is gone. */
function isAmong({ element, sought }: Tracked, changed: ReadonlySet<Node>): boolean {
  if (element === null) return false;
  return !element.isConnected || changed.has(ancestorOf(element, Math.max(0, sought.fingerprint?.levels ?? 0)));
}

function isVisible(element: Element, page: Document): boolean {
  for (
    let at: Element | null = element;
    at !== null;
    at = at.ownerDocument === page ? null : hostOf(at.ownerDocument)
  ) {
    if (!at.checkVisibility({ visibilityProperty: true })) return false;
  }
  return true;
}

function isEqual(one: Placement | undefined, other: Placement): boolean {
  if (one === undefined || one.state !== other.state) return false;
  return one.state !== 'shown' || other.state !== 'shown' || (one.x === other.x && one.y === other.y);
}
