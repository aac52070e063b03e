import type { Change, Placement } from '../anchoring/tracker.ts';
import { setPlace } from '../views/place.ts';
import { type Cluster, clusterPins, type PlacedPin } from './cluster.ts';
import { PIN_SIZE, type Point } from './in-window.ts';

/** Pins closer than this, in pixels, are shown as one. */
const CLUSTER_DISTANCE = 26;
/** Moves by less, in CSS pixels, are none. */
const LEAST_MOVE = 0.05;

/**
 * Arranges the pins, and places them in their layer, which scrolls with the page. Pins that only move are not rendered
 * again: that takes a fraction of the time.
 */
export class PinLayer {
  readonly #layer: () => Element | null;
  #ids: readonly string[] = [];
  #open = '';
  #rtl = false;
  #clusters: readonly Cluster[] = [];
  #offset: Point = { x: 0, y: 0 };
  readonly #placed = new WeakMap<Element, Cluster>();

  /** @param layer finds the element of the layer, whose first children are the pins; null before it is rendered */
  constructor(layer: () => Element | null) {
    this.#layer = layer;
  }

  /**
   * Which pins are to be rendered, in which order. Once they are, `place` moves them where they belong.
   *
   * @param ids of pins that are shown
   * @param open the id of the one that is always shown alone, if there is one
   */
  arrange(
    ids: readonly string[],
    open: string,
    placements: ReadonlyMap<string, Placement>,
    rtl: boolean,
  ): readonly Cluster[] {
    this.#ids = ids;
    this.#open = open;
    this.#rtl = rtl;
    this.#clusters = this.#cluster(placements);
    return this.#clusters;
  }

  /** Places the pins that were rendered. */
  place(): void {
    const pins = this.#layer()?.children;
    for (const [index, cluster] of this.#clusters.entries()) {
      const pin = pins?.[index];
      if (pin === undefined) return;
      const placed = this.#placed.get(pin);
      if (placed?.x === cluster.x && placed.y === cluster.y) continue;
      this.#placed.set(pin, cluster);
      setPlace(pin as HTMLElement, cluster.x, cluster.y);
    }
  }

  /**
   * Places the pins anew after a change. Returns false if they have to be rendered again: pins appear or disappear, or
   * other ones overlap now.
   */
  move(change: Change, placements: ReadonlyMap<string, Placement>): boolean {
    if (change === 'states') return false;
    // The layer is scrolled with the page, except where something else scrolls it.
    if (change === 'scrolled' && isSamePoint(this.#offset, this.#readOffset())) return true;
    const before = this.#clusters;
    const clusters = this.#cluster(placements);
    if (clusters.length !== before.length) return false;
    if (clusters.some(({ ids }, index) => !isSame(ids, before[index]?.ids ?? []))) return false;
    this.#clusters = clusters;
    this.place();
    return true;
  }

  /** Where the corner of the layer is in the window. */
  origin(): Point {
    const { left, top } = this.#layer()?.getBoundingClientRect() ?? { left: 0, top: 0 };
    return { x: left, y: top };
  }

  #cluster(placements: ReadonlyMap<string, Placement>): Cluster[] {
    this.#offset = this.#readOffset();
    const { x: left, y: top } = this.#offset;
    const { width } = document.documentElement.getBoundingClientRect();
    const pins: PlacedPin[] = [];
    for (const id of this.#ids) {
      const placement = placements.get(id);
      if (placement?.state !== 'shown') continue;
      const { x, y } = placement;
      pins.push({ id, x: left + this.#withinPage(x, width), y: top + Math.max(y, PIN_SIZE) });
    }
    return clusterPins(pins, CLUSTER_DISTANCE, new Set([this.#open]));
  }

  /** Where the corner of the page is in the layer. */
  #readOffset(): Point {
    const { x, y } = this.origin();
    const { left, top } = document.documentElement.getBoundingClientRect();
    return { x: left - x, y: top - y };
  }

  /** A pin that would be cut off at the end of the line is moved inside of the page by at most its size. */
  #withinPage(x: number, width: number): number {
    if (this.#rtl) return x >= 0 && x < PIN_SIZE ? PIN_SIZE : x;
    return x <= width && x > width - PIN_SIZE ? width - PIN_SIZE : x;
  }
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((id, index) => id === other[index]);
}

function isSamePoint(one: Point, other: Point): boolean {
  return Math.abs(one.x - other.x) < LEAST_MOVE && Math.abs(one.y - other.y) < LEAST_MOVE;
}
