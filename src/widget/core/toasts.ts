/** A short message at the edge of the window. */
export interface Toast {
  readonly kind: 'info' | 'problem';
  readonly text: string;
  /** A button beside the text. */
  readonly action?: { readonly label: string; readonly run: () => void } | undefined;
  /** Called when it goes without its action. */
  readonly expired?: (() => void) | undefined;
}

/** How long a message stays, in milliseconds. A problem stays longer, and a repeated one is shown once. */
const STAY_MS = { info: 6_000, problem: 12_000 } as const;
const MAX_TOASTS = 3;

/** The messages that are shown now. */
export class Toasts {
  readonly #changed: () => void;
  readonly #timers = new Map<Toast, number>();

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /** Oldest first. */
  get shown(): readonly Toast[] {
    return [...this.#timers.keys()];
  }

  add(toast: Toast): void {
    for (const other of this.shown)
      if (other.text === toast.text && other.action === undefined) this.#remove(other, true);
    this.#timers.set(
      toast,
      window.setTimeout(() => this.dismiss(toast), STAY_MS[toast.kind]),
    );
    for (const other of this.shown.slice(0, -MAX_TOASTS)) this.#remove(other, true);
    this.#changed();
  }

  /** Removes a message without its action. */
  dismiss(toast: Toast): void {
    this.#remove(toast, true);
    this.#changed();
  }

  /** Removes a message and runs its action. */
  act(toast: Toast): void {
    this.#remove(toast, false);
    toast.action?.run();
    this.#changed();
  }

  clear(): void {
    for (const toast of this.shown) this.#remove(toast, true);
  }

  #remove(toast: Toast, expired: boolean): void {
    if (!this.#timers.has(toast)) return;
    window.clearTimeout(this.#timers.get(toast));
    this.#timers.delete(toast);
    if (expired) toast.expired?.();
  }
}
