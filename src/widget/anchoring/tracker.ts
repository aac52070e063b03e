import type { Position } from '../../model/thread.ts';
import { Activity } from './activity.ts';
import { Covers } from './covers.ts';
import { FrameReads } from './frame-reads.ts';
import { boxOf, clipsOf, type Layout } from './geometry.ts';
import { locate, readPosition, type Sought } from './locate.ts';
import { Mutations } from './mutations.ts';
import { PageIndex } from './page-index.ts';
import { hostOf, isInPage } from './roots.ts';
import { ancestorOf } from './row.ts';

/**
 * Where a pin is, relative to the corner of the root element of the page, so that it stays the same while the page
 * scrolls: `hidden` while its element is not shown, `detached` while there is none.
 */
export type Placement =
  | { readonly state: 'shown'; readonly x: number; readonly y: number }
  | { readonly state: 'hidden' | 'detached' };

/**
 * What has changed: pins appear or disappear (`states`), pins have moved on the page, or only the page was scrolled and
 * they with it.
 */
export type Change = 'states' | 'moved' | 'scrolled';

interface Tracked {
  readonly sought: Sought;
  readonly id: string;
  element: Element | null;
  /** Whether the element is in a frame of the page. */
  isFramed: boolean;
  placement: Placement;
  /** The number of the frame in which it was read last, and of the one in which it moved last. */
  readAt: number;
  movedAt: number;
  /** The ancestors that can hide the element by scrolling it out of their box, when it was searched last. */
  clips: readonly Element[];
  /** Whether the element was shown then. */
  isVisible: boolean;
}

const DETACHED: Placement = { state: 'detached' };
const HIDDEN: Placement = { state: 'hidden' };

/** Elements are searched again at most this often, in milliseconds, and for at most a quarter of the time. */
const MAX_INTERVAL_MS = 250;
const SEARCH_PART = 4;
/** What can hide elements is looked for again this often, in milliseconds: after a change, and while there is none. */
const CHANGED_CLIP_INTERVAL_MS = 200;
const CLIP_INTERVAL_MS = 400;
/** A pin that has moved is read in each of so many frames, others in every second one. */
const MOVING_FRAMES = 20;
/** Moves by less, in CSS pixels, are none. */
const LEAST_MOVE = 0.05;

/**
 * Follows the elements of positions while the page changes. While something may move, those that do are measured in
 * each frame, the others in every second one, or at once when one of them has moved. Those around which the page has
 * changed are searched again in the next frame, the others somewhat later.
 */
export class AnchorTracker {
  readonly #page: Document;
  readonly #apart: Element;
  readonly #changed: (change: Change) => void;
  readonly #tracked = new Map<string, Tracked>();
  readonly #activity: Activity;
  readonly #mutations: Mutations;
  readonly #covers: Covers;
  readonly #reads: FrameReads;
  readonly #placements = new Map<string, Placement>();
  #frame = 0;
  #isRestyled = false;
  #search = 0;
  /** Whether a search waits for the page to be seen. */
  #isDue = false;
  #searchedAt = 0;
  #interval = 0;
  #clippedAt = 0;

  /**
   * @param apart the widget, which is no part of the page
   * @param changed called at most once per frame
   */
  constructor(page: Document, apart: Element, changed: (change: Change) => void) {
    this.#page = page;
    this.#apart = apart;
    this.#changed = changed;
    this.#covers = new Covers(page, apart);
    this.#reads = new FrameReads(page);
    this.#activity = new Activity(
      page,
      (isFirst) => this.#look(isFirst),
      () => this.#elements(),
      () => this.#searchLater(),
    );
    this.#mutations = new Mutations(apart, (isContent) => {
      this.#activity.wake();
      this.#isRestyled = true;
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
    for (const id of this.#tracked.keys()) {
      if (positions.has(id)) continue;
      this.#tracked.delete(id);
      this.#placements.delete(id);
    }
    const added: Tracked[] = [];
    for (const [id, position] of positions) {
      if (this.#tracked.get(id)?.sought.position === position) continue;
      const tracked: Tracked = {
        sought: readPosition(position),
        id,
        element: null,
        isFramed: false,
        placement: DETACHED,
        readAt: 0,
        movedAt: -MOVING_FRAMES,
        clips: [],
        isVisible: false,
      };
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

  /** Where the corner of the root element was in the window when pins were measured last. */
  get corner(): { readonly x: number; readonly y: number } {
    const { left, top } = this.#reads.page;
    return { x: left, y: top };
  }

  /** Where every pin is now. */
  measure(): ReadonlyMap<string, Placement> {
    this.#frame += 1;
    this.#reads.begin();
    for (const tracked of this.#tracked.values()) this.#measure(tracked);
    return this.#placements;
  }

  /** One frame: whether a pin has moved. In the first one after a rest, any may have. */
  #look(isFirst: boolean): boolean {
    const stale = this.#mutations.take();
    let isWhole = isFirst || this.#isDue || stale !== null;
    if (this.#isDue) this.#searchAll();
    else if (stale !== null) this.#find([...this.#tracked.values()].filter((tracked) => isAmong(tracked, stale)));
    this.#frame += 1;
    let change: Change | null = this.#reads.begin() ? 'scrolled' : null;
    this.#covers.probe(this.#clip() || change !== null);
    let index = this.#frame;
    const measure = (tracked: Tracked): void => {
      const { placement } = tracked;
      if (!this.#measure(tracked)) return;
      // A move of one that was still may be one of all.
      isWhole ||= this.#frame > tracked.movedAt + MOVING_FRAMES;
      tracked.movedAt = this.#frame;
      change = change === 'states' || placement.state !== tracked.placement.state ? 'states' : 'moved';
    };
    for (const tracked of this.#tracked.values()) {
      index += 1;
      if (index % 2 === 0 || this.#frame <= tracked.movedAt + MOVING_FRAMES) measure(tracked);
    }
    if (isWhole) for (const tracked of this.#tracked.values()) if (tracked.readAt !== this.#frame) measure(tracked);
    if (change !== null) this.#changed(change);
    return change !== null;
  }

  /** Reads where a pin is; whether that is another place or state. */
  #measure(tracked: Tracked): boolean {
    tracked.readAt = this.#frame;
    tracked.placement = this.#place(tracked);
    if (this.#placements.get(tracked.id) === tracked.placement) return false;
    this.#placements.set(tracked.id, tracked.placement);
    return true;
  }

  #place(tracked: Tracked): Placement {
    const { element, clips, isVisible, placement } = tracked;
    const { position } = tracked.sought;
    const reads = this.#reads;
    if (element === null) return DETACHED;
    const whole = element === this.#page.documentElement;
    const rect = tracked.isFramed
      ? boxOf(element, this.#page, reads.rectOf)
      : whole
        ? reads.page
        : element.getBoundingClientRect();
    const width = whole ? reads.size.width : rect.width;
    const height = whole ? reads.size.height : rect.height;
    // Elements that are not in the page have no size. To ask all whether they are takes longer.
    if (width === 0 && height === 0) return isInPage(element, this.#page) ? HIDDEN : DETACHED;
    if (!isVisible) return HIDDEN;
    const x = rect.left + width * (whole ? position.x : (position.elementOffsetX ?? 0.5));
    const y = rect.top + height * (whole ? position.y : (position.elementOffsetY ?? 0.5));
    if (!Number.isFinite(x + y)) return DETACHED;
    for (const clip of clips) {
      const { left, top, width: clipWidth, height: clipHeight } = reads.boxOf(clip);
      if (x < left || x > left + clipWidth || y < top || y > top + clipHeight) return HIDDEN;
    }
    if (!whole && this.#covers.isCovered(element, x, y, reads)) return HIDDEN;
    const [left, top] = [x - reads.page.left, y - reads.page.top];
    const isSame =
      placement.state === 'shown' &&
      Math.abs(placement.x - left) < LEAST_MOVE &&
      Math.abs(placement.y - top) < LEAST_MOVE;
    return isSame ? placement : { state: 'shown', x: left, y: top };
  }

  /**
   * Finds out again what can hide elements, if it is time: soon after a change, and now and then, since style sheets
   * change without any event. Returns whether it did.
   */
  #clip(): boolean {
    const interval = this.#isRestyled ? CHANGED_CLIP_INTERVAL_MS : CLIP_INTERVAL_MS;
    if (performance.now() < this.#clippedAt + interval) return false;
    this.#clippedAt = performance.now();
    this.#isRestyled = false;
    const layouts = new Map<Element, Layout>();
    for (const tracked of this.#tracked.values()) this.#read(tracked, layouts);
    this.#covers.scrollers = new Set([...this.#tracked.values()].flatMap(({ clips }) => clips));
    return true;
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
        tracked.isFramed = tracked.element !== null && tracked.element.ownerDocument !== this.#page;
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
