import type { Position } from '../../model/thread.ts';
import type { AnchorTracker, Change, Placement } from '../anchoring/tracker.ts';
import type { Movable, TopLayer } from '../anchoring/top-layer.ts';
import type { View } from '../core/view.ts';
import { inWindow, type Point } from './in-window.ts';
import { DRAFT } from './popover-place.ts';

/** Where the pins are. What finds their elements is a file of its own, loaded while the session connects. */
export class Anchors {
  /** Where every pin is, as it was measured last. */
  placements: ReadonlyMap<string, Placement> = new Map();
  readonly #host: Movable;
  readonly #changed: (change: Change) => void;
  #tracker: AnchorTracker | null = null;
  #topLayer: TopLayer | null = null;
  #isLoading = false;
  #shown: View['open'] = null;

  /** @param changed called when pins have moved, at most once per frame */
  constructor(host: Movable, changed: (change: Change) => void) {
    this.#host = host;
    this.#changed = changed;
  }

  /** Where the corner of the page is in the window, as it was measured last. */
  get corner(): Point {
    return this.#tracker?.corner ?? { x: 0, y: 0 };
  }

  /** Loads the code, once. Rejects if that fails; the next call tries again. */
  async load(): Promise<void> {
    if (this.#isLoading) return;
    this.#isLoading = true;
    try {
      const [{ AnchorTracker }, { TopLayer }] = await Promise.all([
        import('../anchoring/tracker.ts'),
        import('../anchoring/top-layer.ts'),
      ]);
      this.#tracker = new AnchorTracker(document, this.#host, this.#changed);
      this.#topLayer = new TopLayer(this.#host, () => this.#changed('states'));
    } catch (thrown) {
      this.#isLoading = false;
      throw thrown;
    }
    if (this.#host.isConnected) this.start();
    this.#changed('states');
  }

  /** Begins to observe the page. */
  start(): void {
    this.#tracker?.start();
    this.#topLayer?.start();
  }

  /** Ends what `start` began. */
  stop(): void {
    this.#tracker?.stop();
    this.#topLayer?.stop();
  }

  /** Measures where these threads and the place of a new one are. */
  follow(
    threads: readonly { readonly id: string; readonly position: Position | null }[],
    composing: Position | null,
  ): void {
    const positions = new Map(threads.flatMap(({ id, position }) => (position === null ? [] : [[id, position]])));
    if (composing !== null) positions.set(DRAFT, composing);
    this.#tracker?.track(positions);
    this.placements = this.#tracker?.measure() ?? new Map();
  }

  /**
   * Scrolls to the pin of a thread that was just opened, or chosen again, if it is outside of the window or of what
   * scrolls it.
   */
  show(open: View['open']): void {
    // Not before pins are found: then nothing would be left to scroll to a thread that was opened at once.
    if (this.#tracker === null || open === this.#shown) return;
    this.#shown = open;
    const threadId = open?.threadId ?? '';
    const placement = this.placements.get(threadId);
    if (placement === undefined || placement.state === 'detached') return;
    // On small windows a sheet covers up to four fifths.
    const small = matchMedia('(max-width: 600px), (max-width: 800px) and (max-height: 480px)').matches;
    const point = placement.state === 'shown' ? inWindow(placement, this.corner) : null;
    const room = small ? innerHeight / 5 : innerHeight;
    if (point !== null && isWithin(point, innerWidth, room)) return;
    const element = this.#tracker?.elementOf(threadId) ?? null;
    const behavior = matchMedia('(prefers-reduced-motion: reduce)').matches ? 'instant' : 'smooth';
    if (element !== null && element !== document.documentElement)
      element.scrollIntoView({ block: small ? 'start' : 'center', behavior });
    else if (point !== null) scrollBy({ top: point.y - (small ? 0.75 : 1 / 3) * room, behavior });
  }
}

/** Whether a pin at this place is fully within a window of this size. */
function isWithin({ x, y }: { readonly x: number; readonly y: number }, width: number, height: number): boolean {
  return x >= 0 && x <= width - 32 && y >= 32 && y <= height;
}
