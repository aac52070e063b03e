/** The element of the widget, which is moved in the page. While `isMoving`, it keeps its state. */
export type Movable = HTMLElement & { isMoving: boolean };

/** `moveBefore` keeps the state of what it moves. Not all browsers have it. */
type Movables = Element & { moveBefore?: (node: Node, before: Node | null) => void };

/**
 * Keeps the widget usable while a modal dialog is open, which makes everything outside of it inert and covers it: moves the
 * element into the dialog, in the top layer, and back when the dialog closes. Does not move what the page has moved or removed
 * meanwhile.
 */
export class TopLayer {
  readonly #host: Movable;
  readonly #changed: () => void;
  readonly #dialogs = new MutationObserver(() => this.#update());
  #home: { readonly parent: Movables; readonly next: Node | null; readonly dialog: Element } | null = null;

  /** @param changed called when the widget was moved */
  constructor(host: Movable, changed: () => void) {
    this.#host = host;
    this.#changed = changed;
  }

  /** Begins to look for dialogs. */
  start(): void {
    this.#dialogs.observe(document, { subtree: true, childList: true, attributeFilter: ['open'] });
    this.#update();
  }

  /** Ends what `start` began. The widget stays where it is. */
  stop(): void {
    // A removed dialog takes the widget along: then it goes back.
    const wasTaken = this.#home !== null && this.#host.parentNode === this.#home.dialog && !this.#home.dialog.isConnected;
    if (wasTaken) return queueMicrotask(() => this.#update());
    this.#dialogs.disconnect();
    this.#leave();
  }

  #update(): void {
    const before = this.#home;
    this.#follow();
    if (this.#home !== before) this.#changed();
  }

  #follow(): void {
    const dialog = topmostModal();
    if (this.#home !== null) {
      const { parent, next, dialog: from } = this.#home;
      if (this.#host.parentNode !== from) return this.#leave();
      if (dialog === from) return;
      this.#leave();
      if (!parent.isConnected) return this.#host.isConnected ? undefined : this.#dialogs.disconnect();
      this.#move(parent, next?.parentNode === parent ? next : null);
    }
    const { parentElement } = this.#host;
    if (dialog !== null && parentElement !== null && this.#host.isConnected && !dialog.contains(this.#host)) {
      this.#home = { parent: parentElement, next: this.#host.nextSibling, dialog };
      this.#move(dialog, null);
      this.#host.popover = 'manual';
      this.#host.showPopover();
    }
  }

  #leave(): void {
    this.#home = null;
    this.#host.removeAttribute('popover');
  }

  #move(parent: Movables, before: Node | null): void {
    // One that was taken out of the page begins anew.
    this.#host.isMoving = this.#host.isConnected;
    try {
      if (parent.moveBefore !== undefined && this.#host.isConnected) parent.moveBefore(this.#host, before);
      else parent.insertBefore(this.#host, before);
    } finally {
      this.#host.isMoving = false;
    }
  }
}

/** The modal dialog over all others: those that are opened later are over those before, and mostly further down or within. */
function topmostModal(): Element | null {
  const all = [...document.querySelectorAll('dialog:modal')];
  const focused = document.activeElement?.closest('dialog:modal') ?? null;
  return (focused !== null && !all.some((other) => other !== focused && focused.contains(other)) ? focused : all.at(-1)) ?? null;
}
