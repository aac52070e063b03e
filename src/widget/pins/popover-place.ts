import type { Placement } from '../anchoring/tracker.ts';
import type { View } from '../core/view.ts';
import { inWindow, PIN_SIZE, type Point } from './in-window.ts';
import { type Box, placePopover } from './place-popover.ts';

/** The id under which the place of a new thread is among the placements. No thread has it. */
export const DRAFT = '';

/** Where pins are on the page, and the corner of the page in the window. */
interface Places {
  readonly placements: ReadonlyMap<string, Placement>;
  readonly corner: Point;
}

/** Keeps the popover beside its pin. */
export class PopoverPlace {
  readonly #sizes: ResizeObserver;
  #observed: Element | null = null;
  /** What the popover was last placed by; null to place it in any case. */
  #placedBy: string | null = null;

  /** @param resized called when the size of the popover has changed, and it has to be placed again with `update` */
  constructor(resized: () => void) {
    this.#sizes = new ResizeObserver(() => {
      this.placeAgain();
      resized();
    });
  }

  /** Makes the next `update` place the popover even if its pin has not moved. */
  readonly placeAgain = (): void => {
    this.#placedBy = null;
  };

  /** Moves the popover, if one is open. A thread without a visible pin has its popover at the edge of the window. */
  update(root: DocumentFragment | HTMLElement, view: View, { placements, corner }: Places, rtl: boolean): void {
    const popover = root.querySelector<HTMLElement>('.popover');
    this.#observe(popover);
    if (popover === null) return;
    const point = this.#point(view, placements, corner);
    const placedBy = JSON.stringify([point, view.panel, rtl]);
    if (placedBy === this.#placedBy) return;
    this.#placedBy = placedBy;
    popover.classList.toggle('unpinned', point === null);
    if (point === null) return;
    const free = this.#free(root, popover.ownerDocument.documentElement);
    const pin = {
      left: rtl ? point.x - PIN_SIZE : point.x,
      top: point.y - PIN_SIZE,
      width: PIN_SIZE,
      height: PIN_SIZE,
    };
    const { left, top } = placePopover(pin, { width: popover.offsetWidth, height: popover.offsetHeight }, free, rtl);
    move(popover, left, top);
    const draft = root.querySelector<HTMLElement>('.pin.draft');
    if (draft !== null) move(draft, point.x, point.y);
  }

  /** The part of the window that the panel leaves. */
  #free(root: DocumentFragment | HTMLElement, window: Element): Box {
    const panel = root.querySelector('.panel')?.getBoundingClientRect();
    const whole = { left: 0, top: 0, width: window.clientWidth, height: window.clientHeight };
    if (panel === undefined || panel.width > whole.width / 2) return whole;
    const onLeft = panel.left < whole.width / 2;
    return { ...whole, left: onLeft ? panel.right : 0, width: onLeft ? whole.width - panel.right : panel.left };
  }

  #observe(popover: Element | null): void {
    if (popover === this.#observed) return;
    this.#sizes.disconnect();
    this.#placedBy = null;
    this.#observed = popover;
    if (popover !== null) this.#sizes.observe(popover);
  }

  #point({ open, composing, cluster }: View, placements: ReadonlyMap<string, Placement>, corner: Point): Point | null {
    const placement = placements.get(composing !== null ? DRAFT : (open?.threadId ?? cluster?.[0] ?? DRAFT));
    if (placement?.state === 'shown') return inWindow(placement, corner);
    return composing !== null && placement?.state !== 'hidden' ? pointOf(composing, corner) : null;
  }
}

function pointOf({ x, y }: Point, corner: Point): Point {
  const { scrollWidth, scrollHeight } = document.documentElement;
  return inWindow({ x: x * scrollWidth, y: y * scrollHeight }, corner);
}

function move({ style }: HTMLElement, x: number, y: number): void {
  style.setProperty('--x', `${Math.round(x)}px`);
  style.setProperty('--y', `${Math.round(y)}px`);
}
