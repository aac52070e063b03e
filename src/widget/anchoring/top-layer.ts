/** The element of the widget, which is moved in the page. While `isMoving`, it keeps its state. */
export type Movable = HTMLElement & { isMoving: boolean };

/** `moveBefore` keeps the state of what it moves. Not all browsers have it. */
type Movables = Element & { moveBefore?: (node: Node, before: Node | null) => void };

/** What may open or close a dialog that is not a `<dialog>`. */
const LOOKS: ReadonlySet<string | null> = new Set(['class', 'style', 'hidden']);
/** What a page does to everything outside of such a dialog. */
const SHUT = ['inert', 'aria-hidden'] as const;

/**
 * Keeps the widget usable while a modal dialog is open, which makes everything outside of it inert and covers it: moves
 * the element into the dialog, in the top layer, and back when the dialog closes. A dialog is a modal `<dialog>`, or
 * what a page declares as modal (`aria-modal`), or any `role="dialog"` while the page has made the widget inert or has
 * hidden it from screen readers. Does not move what the page has moved or removed meanwhile.
 */
export class TopLayer {
  readonly #host: Movable;
  readonly #changed: () => void;
  readonly #dialogs = new MutationObserver((records) => this.#onMutations(records));
  /** Whether there is an element that its looks alone may make a modal dialog. */
  #hasHidden = false;
  /** The attributes of `SHUT` that the element had before a dialog was open: those are the author's. */
  #own: readonly string[] = [];
  #home: { readonly parent: Movables; readonly next: Node | null; readonly dialog: Element } | null = null;

  /** @param changed called when the widget was moved */
  constructor(host: Movable, changed: () => void) {
    this.#host = host;
    this.#changed = changed;
  }

  /** Begins to look for dialogs. */
  start(): void {
    this.#dialogs.observe(document, {
      subtree: true,
      childList: true,
      attributeFilter: ['open', 'role', 'aria-modal', ...SHUT, ...LOOKS] as string[],
    });
    document.addEventListener('transitionend', this.#onTransitionEnd);
    this.#update();
  }

  /** Ends what `start` began. The widget stays where it is. */
  stop(): void {
    // A removed dialog takes the widget along, and so does one whose content is replaced: then it goes back.
    if (this.#home !== null && this.#wasTaken(this.#home.dialog)) return queueMicrotask(() => this.#update());
    this.#dialogs.disconnect();
    document.removeEventListener('transitionend', this.#onTransitionEnd);
    this.#leave();
  }

  #wasTaken(dialog: Element): boolean {
    if (this.#host.parentNode === dialog) return !dialog.isConnected;
    const records = this.#dialogs.takeRecords();
    return records.some(
      ({ target, removedNodes }) =>
        target === dialog && removedNodes.length > 1 && [...removedNodes].includes(this.#host),
    );
  }

  #onMutations(records: readonly MutationRecord[]): void {
    // Pages change looks all the time.
    if (this.#hasHidden || records.some(({ attributeName }) => !LOOKS.has(attributeName))) this.#update();
  }

  /** A dialog that fades out is visible until then. */
  readonly #onTransitionEnd = (): void => {
    if (this.#hasHidden) this.#update();
  };

  #update(): void {
    const before = this.#home;
    this.#follow();
    if (this.#home !== before) this.#changed();
  }

  #follow(): void {
    this.#hasHidden = document.querySelector('[aria-modal="true"]') !== null || this.#home !== null;
    const dialog = this.#topmostModal();
    if (dialog === null && this.#home === null) this.#own = SHUT.filter((name) => this.#host.hasAttribute(name));
    if (this.#home !== null) {
      const { parent, next, dialog: from } = this.#home;
      if (this.#host.parentNode !== from && this.#host.isConnected) return this.#leave();
      if (dialog === from && this.#host.isConnected) return;
      this.#leave();
      if (!parent.isConnected) return this.#host.isConnected ? undefined : this.#dialogs.disconnect();
      this.#move(parent, next?.parentNode === parent ? next : null);
    }
    const { parentElement } = this.#host;
    if (dialog !== null && parentElement !== null && this.#host.isConnected && !dialog.contains(this.#host)) {
      this.#home = { parent: parentElement, next: this.#host.nextSibling, dialog };
      this.#move(dialog, null);
      for (const name of SHUT) if (!this.#own.includes(name)) this.#host.removeAttribute(name);
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

  /**
   * The modal dialog over all others: those that are opened later are over those before, and mostly further down or
   * within.
   */
  #topmostModal(): Element | null {
    const isShut =
      !this.#own.some((name) => this.#host.hasAttribute(name)) &&
      this.#host.closest('[inert], [aria-hidden="true"]') !== null;
    const isTaken = this.#home !== null && !this.#home.dialog.matches('dialog, [aria-modal="true"]');
    const declared =
      isShut || isTaken ? ':is([aria-modal="true"], [role="dialog"], [role="alertdialog"])' : '[aria-modal="true"]';
    const all = [...document.querySelectorAll(`dialog:modal, ${declared}`)].filter(
      (element) => element.matches('dialog:modal') || isOpen(element),
    );
    const focused = document.activeElement?.closest(`dialog:modal, ${declared}`) ?? null;
    const isInnermost =
      focused !== null && all.includes(focused) && !all.some((other) => other !== focused && focused.contains(other));
    return (isInnermost ? focused : all.at(-1)) ?? null;
  }
}

/** Whether a dialog that is not a `<dialog>` is there to be used. */
function isOpen(element: Element): boolean {
  return (
    element.closest('[inert], [aria-hidden="true"]') === null && element.checkVisibility({ visibilityProperty: true })
  );
}
