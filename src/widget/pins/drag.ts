import { describePoint } from '../anchoring/describe.ts';
import { boxOf, elementAt } from '../anchoring/geometry.ts';
import type { App } from '../core/app.ts';
import { moveThread } from '../core/thread-writes.ts';

/** How far the pointer has to move, in pixels, before it drags a pin: a click may slip. */
const SLIP = 6;

/**
 * Lets the user drag pins to another place, with a mouse or a pen: a finger scrolls the page. Escape lets go of the
 * pin. A pin that is dropped keeps its distance to the pointer.
 */
export function dragPins(root: DocumentFragment | HTMLElement, host: Element, app: () => App | null): void {
  root.addEventListener('pointerdown', (event) => {
    const { button, pointerType, clientX, clientY, pointerId } = event as PointerEvent;
    const pin = (event.target as Element).closest<HTMLElement>('.layer > .pin[data-thread]');
    const shown = app();
    const thread = shown?.thread(pin?.dataset['thread'] ?? null);
    if (
      pin === null ||
      !shown?.mayWrite ||
      !thread ||
      thread.status === 'held' ||
      button !== 0 ||
      pointerType === 'touch'
    )
      return;
    const box = pin.getBoundingClientRect();
    const rtl = getComputedStyle(pin).direction === 'rtl';
    const tip = { x: (rtl ? box.right : box.left) - clientX, y: box.bottom - clientY };
    const ended = new AbortController();
    const { signal } = ended;
    let dragging = false;
    let cancelled = false;
    const letGo = (): void => {
      pin.classList.remove('dragged');
      pin.style.removeProperty('--dx');
      pin.style.removeProperty('--dy');
    };
    const end = (): void => {
      ended.abort();
      letGo();
    };
    const on = <K extends keyof WindowEventMap>(kind: K, act: (event: WindowEventMap[K]) => void): void =>
      addEventListener(kind, act, { signal, capture: true });
    on('pointermove', (move) => {
      const [x, y] = [move.clientX - clientX, move.clientY - clientY];
      dragging ||= Math.hypot(x, y) > SLIP;
      if (!dragging || cancelled) return;
      // Its thread was deleted, or the pin is part of a cluster now.
      if (!pin.isConnected) return end();
      pin.setPointerCapture(pointerId);
      pin.classList.add('dragged');
      pin.style.setProperty('--dx', `${x}px`);
      pin.style.setProperty('--dy', `${y}px`);
    });
    on('pointercancel', end);
    on('keydown', (key) => {
      if (!dragging || cancelled || key.key !== 'Escape') return;
      key.preventDefault();
      key.stopPropagation();
      cancelled = true;
      letGo();
    });
    on('pointerup', (up) => {
      const [x, y] = [up.clientX + tip.x, up.clientY + tip.y];
      end();
      if (!dragging) return;
      // The click that follows would open the thread.
      const stop = (click: Event): void => click.stopPropagation();
      addEventListener('click', stop, true);
      setTimeout(() => removeEventListener('click', stop, true));
      if (cancelled) return;
      const under = elementAt(document, x, y, host) ?? document.documentElement;
      void moveThread(shown, thread.id, describePoint(document, under, { x, y, box: boxOf(under, document) }, host));
    });
  });
}
