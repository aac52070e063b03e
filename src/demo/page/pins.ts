import type { BoardThread } from './board.ts';
import { element } from './dom.ts';
import type { Users } from './page.ts';

/** The position of a pin, as fractions (0 to 1) of the page's width and height. */
export interface Spot {
  readonly x: number;
  readonly y: number;
}

/** The numbered pins on the example page, and a marker for the position of the next thread. */
export class Pins {
  readonly #page: HTMLElement;
  readonly #open: (threadId: string) => void;
  readonly #next = element('span', { className: 'pin next', hidden: true }, '+');
  readonly #pins = new Map<string, HTMLButtonElement>();

  /**
   * @param open called with the id of a thread when its pin is clicked
   * @param chosen called with the position of a click on the page
   */
  constructor(page: HTMLElement, open: (threadId: string) => void, chosen: (spot: Spot) => void) {
    this.#page = page;
    this.#open = open;
    page.append(this.#next);
    page.addEventListener('click', (event) => {
      if (event.target instanceof HTMLButtonElement) return;
      const frame = page.getBoundingClientRect();
      chosen({ x: fraction(event.clientX - frame.left, frame.width), y: fraction(event.clientY - frame.top, frame.height) });
    });
  }

  /** Shows where the next thread will be pinned; null hides the marker. */
  propose(spot: Spot | null): void {
    this.#next.hidden = spot === null;
    if (spot !== null) moveTo(this.#next, spot);
  }

  /** Shows the pins of `threads`. Returns the number of each pinned thread by thread id; the oldest has 1. */
  update(threads: readonly BoardThread[], users: Users): Map<string, number> {
    const numbers = new Map<string, number>();
    const removed = new Set(this.#pins.keys());
    for (const { thread } of [...threads].reverse()) {
      if (thread.position === null) continue;
      const pin = this.#pins.get(thread.id) ?? this.#add(thread.id);
      removed.delete(thread.id);
      numbers.set(thread.id, numbers.size + 1);
      pin.textContent = String(numbers.size);
      pin.setAttribute('aria-label', `Pin ${numbers.size}: ${users.nameOf(thread.userId)}’s thread${thread.resolved ? ', resolved' : ''}`);
      pin.classList.toggle('resolved', thread.resolved);
      moveTo(pin, thread.position);
    }
    for (const id of removed) {
      this.#pins.get(id)?.remove();
      this.#pins.delete(id);
    }
    return numbers;
  }

  #add(threadId: string): HTMLButtonElement {
    const pin = element('button', { type: 'button', className: 'pin', onclick: () => this.#open(threadId) });
    this.#pins.set(threadId, pin);
    this.#page.append(pin);
    return pin;
  }
}

function fraction(offset: number, length: number): number {
  return Math.round(Math.min(1, Math.max(0, offset / length)) * 1000) / 1000;
}

function moveTo(pin: HTMLElement, { x, y }: Spot): void {
  pin.style.left = `${x * 100}%`;
  pin.style.top = `${y * 100}%`;
}
