import { html, svg, type TemplateResult } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import type { App } from '../core/app.ts';
import { place } from './place.ts';

/** A pointer that has not moved for this long, in milliseconds, is no longer shown. */
const IDLE_MS = 8_000;

interface Pointer {
  readonly userId: string;
  readonly x: number;
  readonly y: number;
  readonly at: number;
}

/** The pointers of the other users in the room, as fractions of the page's size. */
export class LiveCursors {
  readonly #app: App;
  readonly #pointers = new Map<string, Pointer>();
  readonly #ends: (() => void)[] = [];

  /** Begins to share the own pointer and to receive those of others. */
  constructor(app: App) {
    this.#app = app;
    const send = ({ clientX, clientY, pointerType }: PointerEvent): void => {
      if (pointerType === 'touch') return;
      const page = document.documentElement.getBoundingClientRect();
      app.room.sendCursor({
        x: (clientX - page.left) / Math.max(1, document.documentElement.scrollWidth),
        y: (clientY - page.top) / Math.max(1, document.documentElement.scrollHeight),
      });
    };
    document.addEventListener('pointermove', send, { passive: true });
    const sweep = window.setInterval(() => this.#sweep(), 1_000);
    this.#ends.push(
      app.room.on('cursor', ({ userId, connectionId, position }) => {
        if (userId === app.userId) return;
        this.#pointers.set(connectionId, { userId, x: position.x, y: position.y, at: Date.now() });
        app.host.changed();
      }),
      () => document.removeEventListener('pointermove', send),
      () => window.clearInterval(sweep),
    );
  }

  stop(): void {
    for (const end of this.#ends.splice(0)) end();
  }

  /** @param origin the place of the layer's corner in the window */
  render(origin: { readonly x: number; readonly y: number }): TemplateResult {
    const page = document.documentElement;
    const { left, top } = page.getBoundingClientRect();
    return html`${repeat(
      [...this.#pointers],
      ([id]) => id,
      ([, { userId, x, y }]) => {
        const person = this.#app.person(userId);
        return html`<span
          class="cursor hue-${person.hue}"
          part="cursor"
          aria-hidden="true"
          ${place(left + x * page.scrollWidth - origin.x, top + y * page.scrollHeight - origin.y)}
        >
          <svg viewBox="0 0 16 16">${svg`<path d="m2 1.5 12 5.5-5.5 1.5L7 14 2 1.500Z"></path>`}</svg
          ><bdi>${person.name}</bdi>
        </span>`;
      },
    )}`;
  }

  #sweep(): void {
    const present = new Set(this.#app.snapshot.presence.map(({ userId }) => userId));
    const before = this.#pointers.size;
    for (const [id, { at, userId }] of this.#pointers)
      if (Date.now() - at > IDLE_MS || !present.has(userId)) this.#pointers.delete(id);
    if (this.#pointers.size !== before) this.#app.host.changed();
  }
}
