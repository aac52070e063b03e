import { html, nothing, type PropertyValues, type TemplateResult } from 'lit';
import type { SubscriptionAction, SubscriptionState } from '../../../model/notification.ts';
import type { StringKey } from '../../strings/en.ts';
import { icon } from '../icons.ts';
import { openMenu } from '../open-menu.ts';
import { definePart, Part } from '../part.ts';

/** What a thread can notify a user of, and the state that the server calls it. */
const CHOICES: readonly (readonly [SubscriptionAction, SubscriptionState, StringKey])[] = [
  ['subscribe', 'subscribed', 'notifyAll'],
  ['unsubscribe', 'unsubscribed', 'notifyMentions'],
  ['mute', 'muted', 'notifyNone'],
];

/** The button of a thread for what it notifies the user of, with its menu. */
class Follow extends Part {
  static override properties = {
    ...Part.properties,
    threadId: { attribute: false },
    state: { state: true },
    open: { state: true },
  };

  declare threadId: string;
  /** What the user has chosen; null until it is read. */
  declare state: SubscriptionState | null;
  declare open: boolean;

  constructor() {
    super();
    this.state = null;
    this.open = false;
  }

  override render(): TemplateResult {
    const text = this.app.language;
    const label = text.text('threadNotifications');
    return html`<button
        type="button"
        class="icon-button"
        part="follow"
        aria-label=${label}
        title=${label}
        aria-haspopup="menu"
        aria-expanded=${String(this.open)}
        @click=${this.#toggle}
      >
        ${icon(this.state === 'muted' ? 'muted' : 'bell')}
      </button>
      ${
        this.open && this.state !== null
          ? html`<div
              class="menu"
              role="menu"
              aria-label=${label}
              @keydown=${this.#onKey}
              @focusout=${this.#onFocusOut}
            >
              ${CHOICES.map(([action, state, key]) => html`<button type="button" role="menuitemradio" tabindex="-1" aria-checked=${String(state === this.#effective)} @click=${() => this.#choose(action, state, key)}>${icon('check')}${text.text(key)}</button>`)}
            </div>`
          : nothing
      }`;
  }

  override updated(changed: PropertyValues): void {
    super.updated(changed);
    const menu = this.querySelector<HTMLElement>('.menu');
    const button = this.querySelector<HTMLElement>('.icon-button');
    if (menu === null || button === null || menu.matches(':popover-open')) return;
    openMenu(menu, button);
    menu.querySelector<HTMLElement>('[aria-checked=true]')?.focus({ preventScroll: true });
  }

  /** Without a choice, those who have commented hear of every comment. */
  get #effective(): SubscriptionState | null {
    if (this.state !== 'default') return this.state;
    const isParticipant =
      this.app.thread(this.threadId)?.comments.some(({ userId }) => userId === this.app.userId) === true;
    return isParticipant ? 'subscribed' : 'unsubscribed';
  }

  readonly #toggle = async (): Promise<void> => {
    this.open = !this.open;
    if (!this.open) return;
    const { app, threadId } = this;
    const path = `/users/${encodeURIComponent(app.userId ?? '')}/subscriptions/${encodeURIComponent(threadId)}`;
    const read = await app.attempt(
      async () => (await app.session.fetch(path)).json() as Promise<{ readonly state: SubscriptionState }>,
    );
    if (read === null) this.open = false;
    else this.state = read.state;
  };

  async #choose(action: SubscriptionAction, state: SubscriptionState, key: StringKey): Promise<void> {
    this.#close();
    const { app, threadId } = this;
    const before = this.state;
    this.state = state;
    const init = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ action }) };
    const changed = await app.attempt(() =>
      app.session.fetch(`/threads/${encodeURIComponent(threadId)}/subscription`, init),
    );
    if (changed === null) this.state = before;
    else app.host.announce(`${app.language.text('threadNotifications')}: ${app.language.text(key)}`);
  }

  #close(): void {
    this.open = false;
    this.querySelector<HTMLElement>('.icon-button')?.focus();
  }

  readonly #onKey = (event: KeyboardEvent): void => {
    if (event.key === 'Escape' || event.key === 'Tab') {
      event.stopPropagation();
      if (event.key === 'Escape') event.preventDefault();
      return this.#close();
    }
    const items = [...this.querySelectorAll<HTMLElement>('[role=menuitemradio]')];
    const at = items.indexOf(event.target as HTMLElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    items.at(next % items.length)?.focus();
  };

  readonly #onFocusOut = ({ relatedTarget }: FocusEvent): void => {
    if (relatedTarget !== null && !this.contains(relatedTarget as Node)) this.open = false;
  };
}

definePart('collab-comments-follow', Follow);
