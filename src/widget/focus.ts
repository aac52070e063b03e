import type { ReactiveControllerHost } from 'lit';
import type { View } from './core/view.ts';

/** Moves the focus into what opens, and back to where it came from when that closes. */
export class Focus {
  readonly #host: ReactiveControllerHost & { readonly renderRoot: DocumentFragment | HTMLElement };
  #shown = '';
  #panel = false;
  /** The element that had the focus, as a selector within the widget, and whether it was within it at all. */
  #origin: string | null = null;

  constructor(host: ReactiveControllerHost & { readonly renderRoot: DocumentFragment | HTMLElement }) {
    this.#host = host;
  }

  /** Call it after each rendering. */
  follow({ open, composing, cluster, placing, panel }: View): void {
    const shown =
      open !== null
        ? `thread ${open.threadId} ${open.commentId ?? ''}`
        : composing !== null
          ? 'new'
          : cluster !== null
            ? `cluster ${cluster.join()}`
            : placing !== null
              ? 'placing'
              : '';
    // What is loaded later is followed when it is there.
    if (panel !== this.#panel && (!panel || this.#find('.panel') !== null)) {
      this.#panel = panel;
      this.#find(panel ? '.panel input' : '[part=toggle]')?.focus({ preventScroll: true });
    }
    if (shown === this.#shown || (shown !== '' && shown !== 'placing' && this.#find('.popover') === null)) return;
    const before = this.#shown;
    this.#shown = shown;
    if (before === '') this.#origin = this.#currentSelector();
    if (shown === '') return this.#return();
    if (shown !== 'placing') void this.#enter(open?.commentId ?? null);
  }

  async #enter(commentId: string | null): Promise<void> {
    const popover = this.#find('.popover');
    if (popover === null) return;
    const parts = [...popover.querySelectorAll('*')].filter(
      (element): element is HTMLElement & { updateComplete: Promise<boolean> } => 'updateComplete' in element,
    );
    await Promise.all(parts.map(({ updateComplete }) => updateComplete));
    const comment =
      commentId === null ? null : popover.querySelector<HTMLElement>(`[data-comment="${CSS.escape(commentId)}"]`);
    const comments = popover.querySelector('.comments');
    if (comment !== null) {
      comment.scrollIntoView({ block: 'nearest' });
      comment.classList.add('target');
      return comment.focus({ preventScroll: true });
    }
    // A touch keyboard would cover what was opened.
    const touch = matchMedia('(pointer: coarse)').matches && comments !== null;
    (touch ? popover : (popover.querySelector<HTMLElement>('textarea') ?? popover)).focus({ preventScroll: true });
  }

  #return(): void {
    if (this.#origin === null) return;
    const inWidget = (this.#host.renderRoot as ShadowRoot).activeElement;
    if (inWidget !== null && inWidget.closest('.panel, .toolbar') !== null) return;
    const target = this.#find(this.#origin) ?? this.#find('[part=add], [part=toggle]');
    this.#origin = null;
    target?.focus({ preventScroll: true });
  }

  #currentSelector(): string | null {
    const active = (this.#host.renderRoot as ShadowRoot).activeElement as HTMLElement | null;
    const { thread, cluster } = active?.dataset ?? {};
    if (thread !== undefined) return `.${active?.classList[0] ?? ''}[data-thread="${CSS.escape(thread)}"]`;
    if (cluster !== undefined) return `[data-cluster="${CSS.escape(cluster)}"]`;
    return '[part=add], [part=toggle]';
  }

  #find(selector: string): HTMLElement | null {
    return this.#host.renderRoot.querySelector<HTMLElement>(selector);
  }
}
