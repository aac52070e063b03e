import { html, type PropertyValues, type TemplateResult } from 'lit';
import { describePoint } from '../anchoring/describe.ts';
import { boxOf, elementAt } from '../anchoring/geometry.ts';
import type { Position } from '../../model/thread.ts';
import { icon } from './icons.ts';
import { definePart, Part } from './part.ts';
import { place } from './place.ts';

/** A step of the arrow keys, and one with Shift, in pixels. */
const STEP = 10;
const LARGE_STEP = 80;

/** Covers the window while a place for a thread is chosen, by click, touch or keyboard. */
export class Placing extends Part {
  static override properties = { ...Part.properties, at: { state: true } };

  /** Called with the chosen place. */
  declare choose: (position: Position) => void;
  declare at: { readonly x: number; readonly y: number };

  constructor() {
    super();
    this.at = { x: innerWidth / 2, y: innerHeight / 2 };
  }

  override firstUpdated(changed: PropertyValues): void {
    super.firstUpdated(changed);
    this.querySelector<HTMLElement>('.placing')?.focus({ preventScroll: true });
  }

  override render(): TemplateResult {
    const again = this.app.view.placing?.threadId !== null;
    const touch = matchMedia('(pointer: coarse)').matches;
    const hint = this.app.language.text(
      again ? (touch ? 'placingAgainTouch' : 'placingAgainHint') : touch ? 'placingTouch' : 'placingHint',
    );
    return html`<div
        class="placing"
        part="placing"
        role="application"
        tabindex="0"
        aria-label=${hint}
        @click=${this.#onClick}
        @pointermove=${this.#onMove}
        @keydown=${this.#onKey}
      >
        <span class="ghost" ${place(this.at.x, this.at.y)}>${icon('comment')}</span>
      </div>
      <div class="hint" part="hint" @keydown=${(event: KeyboardEvent) => event.key === 'Escape' && this.#onKey(event)}>
        <span>${hint}</span
        ><button type="button" class="button" @click=${() => this.app.show({ placing: null })}>
          ${this.app.language.text('cancel')}
        </button>
      </div>`;
  }

  readonly #onMove = ({ clientX, clientY }: PointerEvent): void => {
    this.at = { x: clientX, y: clientY };
  };

  readonly #onClick = ({ clientX, clientY }: MouseEvent): void => this.#place(clientX, clientY);

  readonly #onKey = (event: KeyboardEvent): void => {
    const step = event.shiftKey ? LARGE_STEP : STEP;
    const moves: Record<string, readonly [number, number]> = {
      ArrowLeft: [-step, 0],
      ArrowRight: [step, 0],
      ArrowUp: [0, -step],
      ArrowDown: [0, step],
    };
    const move = moves[event.key];
    if (event.key === 'Escape') this.app.show({ placing: null });
    else if (event.key === 'Enter' || event.key === ' ') this.#place(this.at.x, this.at.y);
    else if (move === undefined) return;
    else this.#moveBy(...move);
    event.preventDefault();
    event.stopPropagation();
  };

  /** Moves the mark; at the edge of the window the page scrolls instead. */
  #moveBy(x: number, y: number): void {
    const wanted = { x: this.at.x + x, y: this.at.y + y };
    const at = {
      x: Math.max(0, Math.min(innerWidth - 1, wanted.x)),
      y: Math.max(0, Math.min(innerHeight - 1, wanted.y)),
    };
    scrollBy(wanted.x - at.x, wanted.y - at.y);
    this.at = at;
  }

  #place(x: number, y: number): void {
    const host = (this.getRootNode() as ShadowRoot).host;
    const under = elementAt(document, x, y, host) ?? document.documentElement;
    this.choose(describePoint(document, under, { x, y, box: boxOf(under, document) }, host));
  }
}

definePart('collab-comments-placing', Placing);
