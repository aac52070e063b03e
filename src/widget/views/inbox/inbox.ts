import { html, nothing, type TemplateResult } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import type { InboxItem } from '../../../client/inbox/inbox.ts';
import { InboxList } from '../../core/inbox-list.ts';
import { adopt } from '../../styles/adopt.ts';
import inboxSheet from '../../styles/inbox.css';
import { icon, type IconName } from '../icons.ts';
import { definePart, Part } from '../part.ts';
import { inboxItem } from './item.ts';
import './settings.ts';
import { scrollList } from '../wheel.ts';

/** The notifications of the user in all rooms, in the place of the panel. */
class Inbox extends Part {
  static override properties = {
    ...Part.properties,
    messages: { attribute: false },
    unreadOnly: { state: true },
    settings: { state: true },
  };

  /** The messages of the widget, if they are to be shown here. */
  declare messages: TemplateResult | typeof nothing;
  declare unreadOnly: boolean;
  /** Whether the settings are shown instead of the list. */
  declare settings: boolean;
  #list: InboxList | null = null;

  constructor() {
    super();
    this.messages = nothing;
    this.unreadOnly = false;
    this.settings = false;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    adopt(this, inboxSheet);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#list?.stop();
    this.#list = null;
  }

  override willUpdate(): void {
    this.#list ??= new InboxList(this.app);
    this.#list.follow();
  }

  override firstUpdated(): void {
    this.querySelector<HTMLElement>('.panel')?.focus({ preventScroll: true });
  }

  override render(): TemplateResult {
    const { app, settings } = this;
    const text = app.language;
    const unread = app.session.inbox.getSnapshot().unreadCount;
    const button = (name: IconName, label: string, run: () => unknown, disabled = false): TemplateResult =>
      html`<button
        type="button"
        class="icon-button"
        data-does=${name}
        aria-label=${label}
        title=${label}
        aria-disabled=${String(disabled)}
        @click=${() => disabled || run()}
      >
        ${icon(name)}
      </button>`;
    return html`<aside
      class="panel"
      part="inbox"
      @wheel=${scrollList}
      role="complementary"
      tabindex="-1"
      aria-label=${text.text(settings ? 'inboxSettings' : 'inbox')}
      @keydown=${this.#onKey}
    >
      <header class="panel-header">
        ${settings ? button('back', text.text('inboxBack'), () => this.#show(false)) : nothing}
        <h2>${text.text(settings ? 'inboxSettings' : 'inbox')}</h2>
        <span class="grow"></span>
        ${settings ? nothing : html`${button('check', text.text('markAllRead'), this.#markAllRead, unread === 0)}${button('settings', text.text('inboxSettings'), () => this.#show(true))}`}
        ${button('close', text.text('close'), this.#close)}
      </header>
      ${settings ? html`<collab-comments-settings .app=${app} .version=${this.version}></collab-comments-settings>` : this.#renderList()}
      ${this.messages}
    </aside>`;
  }

  #renderList(): TemplateResult {
    const list = this.#list as InboxList;
    const text = this.app.language;
    const items = list.items.filter(({ readAt }) => !this.unreadOnly || readAt === null);
    const choice = (isUnread: boolean): TemplateResult =>
      html`<button
        type="button"
        aria-pressed=${String(isUnread === this.unreadOnly)}
        @click=${() => (this.unreadOnly = isUnread)}
      >
        ${text.text(isUnread ? 'unread' : 'inboxAll')}
      </button>`;
    return html`<div class="panel-tools">
        <div class="tabs" role="group" aria-label=${text.text('inbox')}>${choice(false)}${choice(true)}</div>
      </div>
      <div class="list" part="list" tabindex="-1" aria-busy=${String(list.isLoading)}>
        ${items.length > 0 ? nothing : this.#empty(list)}
        <ol>
          ${repeat(
            items,
            ({ id }) => id,
            (item) => inboxItem(this.app, list, item, (event) => this.#markRead(item, event)),
          )}
        </ol>
        ${list.hasMore && !list.isLoading ? html`<button type="button" class="button more" @click=${() => list.more()}>${text.text('inboxMore')}</button>` : nothing}
      </div>`;
  }

  #empty(list: InboxList): TemplateResult {
    const text = this.app.language;
    if (list.isLoading)
      return html`<div class="empty">
        <span class="spinner" aria-hidden="true"></span>
        <p role="status">${text.text('inboxLoading')}</p>
      </div>`;
    if (list.failed && this.app.session.inbox.getSnapshot().status !== 'ready') {
      return html`<div class="empty" role="alert">
        ${icon('warn')}
        <p>${text.text('inboxFailed')}</p>
        <button type="button" class="button" @click=${() => list.load()}>${text.text('retry')}</button>
      </div>`;
    }
    const [title, hint] =
      this.unreadOnly && list.items.length > 0
        ? (['emptyUnreadTitle', 'emptyUnread'] as const)
        : (['emptyInboxTitle', 'emptyInbox'] as const);
    return html`<div class="empty" part="empty">
      ${icon('bell')}
      <h3>${text.text(title)}</h3>
      <p>${text.text(hint)}</p>
    </div>`;
  }

  /** Marks one as read; the focus goes on, as the button disappears, and with it perhaps the item. */
  async #markRead({ id }: InboxItem, { currentTarget }: Event): Promise<void> {
    const entry = (currentTarget as Element).closest('li');
    const next = this.unreadOnly ? (entry?.nextElementSibling ?? entry?.previousElementSibling) : entry;
    const marking = this.app.attempt(() => this.app.session.inbox.markRead([id]));
    await this.updateComplete;
    (next?.querySelector<HTMLElement>('.item-main') ?? this.querySelector<HTMLElement>('.list'))?.focus();
    await marking;
  }

  readonly #markAllRead = async (): Promise<void> => {
    const { app } = this;
    const marked = await app.attempt(async () => {
      await app.session.inbox.markAllRead();
      return true;
    });
    if (marked === true) app.host.announce(app.language.text('allMarkedRead'));
  };

  async #show(settings: boolean): Promise<void> {
    this.settings = settings;
    await this.updateComplete;
    this.querySelector<HTMLElement>(`[data-does=${settings ? 'back' : 'settings'}]`)?.focus();
  }

  readonly #close = async (): Promise<void> => {
    const root = this.getRootNode() as ShadowRoot;
    this.app.show({ panel: false });
    await (root.host as HTMLElement & { readonly updateComplete: Promise<unknown> }).updateComplete;
    root.querySelector<HTMLElement>('[part=bell]')?.focus({ preventScroll: true });
  };

  readonly #onKey = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') {
      event.stopPropagation();
      return void (this.settings ? this.#show(false) : this.#close());
    }
    const items = [...this.querySelectorAll<HTMLElement>('.item-main')];
    const at = items.indexOf((event.target as Element).closest('li')?.querySelector('.item-main') ?? this);
    const next = { ArrowDown: at + 1, ArrowUp: Math.max(0, at - 1), Home: 0, End: items.length - 1 }[event.key];
    if (next === undefined || this.settings) return;
    event.preventDefault();
    items[Math.min(next, items.length - 1)]?.focus();
  };
}

definePart('collab-comments-inbox', Inbox);
