import { html, nothing, type TemplateResult } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import { type Queue, queueOf } from '../../core/queue.ts';
import { adopt } from '../../styles/adopt.ts';
import queueSheet from '../../styles/queue.css';
import { icon } from '../icons.ts';
import { definePart, Part } from '../part.ts';
import './queue-item.ts';
import { scrollList } from '../wheel.ts';

/** What waits for a moderator on the page, in the place of the panel. */
class QueuePart extends Part {
  static override properties = { ...Part.properties, messages: { attribute: false }, state: { state: true } };

  /** The messages of the widget, if they are to be shown here. */
  declare messages: TemplateResult | typeof nothing;
  /** Which items are listed; null for those that there are. */
  declare state: 'held' | 'reported' | null;

  constructor() {
    super();
    this.messages = nothing;
    this.state = null;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    adopt(this, queueSheet);
  }

  override firstUpdated(): void {
    this.querySelector<HTMLElement>('.panel')?.focus({ preventScroll: true });
  }

  override render(): TemplateResult {
    const text = this.app.language;
    const queue = queueOf(this.app);
    const count = (state: string): number => queue.items.filter((item) => item.state === state).length;
    const shown = this.state ?? (count('held') === 0 && count('reported') > 0 ? 'reported' : 'held');
    const choice = (state: 'held' | 'reported'): TemplateResult =>
      html`<button type="button" aria-pressed=${String(state === shown)} @click=${() => (this.state = state)}>
        ${text.text(state === 'held' ? 'queueHeld' : 'queueReported')} ${count(state) === 0 ? nothing : count(state)}
      </button>`;
    const items = queue.items.filter(({ state }) => state === shown);
    return html`<aside
      class="panel"
      part="queue"
      @wheel=${scrollList}
      role="complementary"
      tabindex="-1"
      aria-label=${text.text('queue')}
      @keydown=${this.#onKey}
    >
      <header class="panel-header">
        <button
          type="button"
          class="icon-button back"
          aria-label=${text.text('queueBack')}
          title=${text.text('queueBack')}
          @click=${this.#back}
        >
          ${icon('back')}
        </button>
        <h2>${text.text('queue')}</h2>
        <span class="grow"></span>
        <button
          type="button"
          class="icon-button"
          aria-label=${text.text('close')}
          title=${text.text('close')}
          @click=${() => this.app.show({ panel: false })}
        >
          ${icon('close')}
        </button>
      </header>
      <div class="panel-tools">
        <div class="tabs" role="group" aria-label=${text.text('queue')}>${choice('held')}${choice('reported')}</div>
      </div>
      <div class="list" part="list" tabindex="-1" aria-busy=${String(queue.status === 'loading')}>
        ${items.length > 0 ? nothing : this.#empty(queue, shown)}
        <ol>
          ${repeat(
            items,
            ({ id }) => id,
            (item) =>
              html`<li>
                <collab-comments-queue-item
                  .app=${this.app}
                  .version=${this.version}
                  .item=${item}
                  .leave=${this.#leave}
                ></collab-comments-queue-item>
              </li>`,
          )}
        </ol>
      </div>
      ${this.messages}
    </aside>`;
  }

  #empty({ status }: Queue, state: 'held' | 'reported'): TemplateResult {
    const text = this.app.language;
    if (status === 'loading')
      return html`<div class="empty">
        <span class="spinner" aria-hidden="true"></span>
        <p role="status">${text.text('queueLoading')}</p>
      </div>`;
    if (status === 'failed')
      return html`<div class="empty" role="alert">
        ${icon('warn')}
        <p>${text.text('queueFailed')}</p>
        <button type="button" class="button" @click=${() => queueOf(this.app).load()}>${text.text('retry')}</button>
      </div>`;
    const [title, hint] =
      state === 'held'
        ? (['emptyHeldTitle', 'emptyHeld'] as const)
        : (['emptyReportedTitle', 'emptyReported'] as const);
    return html`<div class="empty" part="empty">
      ${icon('check')}
      <h3>${text.text(title)}</h3>
      <p>${text.text(hint)}</p>
    </div>`;
  }

  /** Moves the focus from an item that goes to the next one. */
  readonly #leave = (item: Element): void => {
    const entry = item.closest('li');
    const next = entry?.nextElementSibling ?? entry?.previousElementSibling;
    (next?.querySelector<HTMLElement>('article') ?? this.querySelector<HTMLElement>('.list'))?.focus();
  };

  readonly #back = async (): Promise<void> => {
    const root = this.getRootNode() as ShadowRoot;
    this.app.show({ side: null });
    await (root.host as HTMLElement & { readonly updateComplete: Promise<unknown> }).updateComplete;
    root.querySelector<HTMLElement>('.queue-entry')?.focus({ preventScroll: true });
  };

  readonly #onKey = (event: KeyboardEvent): void => {
    if (event.key !== 'Escape') return;
    event.stopPropagation();
    void this.#back();
  };
}

definePart('collab-comments-queue', QueuePart);
