import { html, nothing, type TemplateResult } from 'lit';
import { live } from 'lit/directives/live.js';
import type { NotificationKind, NotificationSettings } from '../../../model/notification.ts';
import type { StringKey } from '../../strings/en.ts';
import { icon } from '../icons.ts';
import { definePart, Part } from '../part.ts';
import { findPush, type Push, PushDenied, subscribe, unsubscribe } from './push.ts';

const KINDS: readonly (readonly [NotificationKind, StringKey])[] = [
  ['mention', 'filterMentions'],
  ['reply', 'inboxReplies'],
];
/** The names of the channels that every server has; those of plugins have the plugin's. */
const CHANNELS: Readonly<Record<string, StringKey>> = {
  inApp: 'channelInApp',
  email: 'channelEmail',
  'web-push': 'channelPush',
  webhook: 'channelWebhook',
};
const PUSH = 'web-push';

/** Which channels deliver which notifications to the user, and push messages in this browser. */
class Settings extends Part {
  static override properties = {
    ...Part.properties,
    settings: { state: true },
    push: { state: true },
    failed: { state: true },
    busy: { state: true },
  };

  declare settings: NotificationSettings | null;
  /** Null where push messages cannot be had. */
  declare push: Push | null;
  declare failed: boolean;
  /** Whether push messages are being turned on or off. */
  declare busy: boolean;

  constructor() {
    super();
    this.settings = null;
    this.push = null;
    this.failed = false;
    this.busy = false;
  }

  override firstUpdated(): void {
    void this.#load();
  }

  override render(): TemplateResult {
    const text = this.app.language;
    if (this.failed)
      return html`<div class="empty" role="alert">
        ${icon('warn')}
        <p>${text.text('inboxFailed')}</p>
        <button type="button" class="button" @click=${() => this.#load()}>${text.text('retry')}</button>
      </div>`;
    if (this.settings === null)
      return html`<div class="empty">
        <span class="spinner" aria-hidden="true"></span>
        <p role="status">${text.text('inboxLoading')}</p>
      </div>`;
    const { settings } = this;
    const channels = [...new Set([...Object.keys(settings), ...(this.push === null ? [] : [PUSH])])];
    return html`<div class="settings" part="settings" tabindex="-1">
      <p class="quiet">${text.text('inboxSettingsHint')}</p>
      <table aria-label=${text.text('inboxSettings')}>
        <thead>
          <tr>
            <td></td>
            ${KINDS.map(([, label]) => html`<th scope="col">${text.text(label)}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${channels.map((channel) => this.#row(channel, settings))}
        </tbody>
      </table>
      ${this.push === null ? nothing : this.#pushSection(this.push)}
    </div>`;
  }

  #row(channel: string, settings: NotificationSettings): TemplateResult {
    const text = this.app.language;
    const key = CHANNELS[channel];
    const name = key === undefined ? channel : text.text(key);
    return html`<tr>
      <th scope="row">${name}</th>
      ${KINDS.map(
        ([kind, label]) =>
          html`<td>
            <input
              type="checkbox"
              aria-label=${`${name}: ${text.text(label)}`}
              .checked=${live(settings[channel]?.[kind] ?? true)}
              @change=${(event: Event) => this.#set(channel, kind, (event.target as HTMLInputElement).checked)}
            />
          </td>`,
      )}
    </tr>`;
  }

  #pushSection(push: Push): TemplateResult {
    const text = this.app.language;
    const label = text.text(push.endpoint === null ? 'pushOn' : 'pushOff');
    return html`<section class="push">
      <div>
        <h3>${text.text('pushTitle')}</h3>
        <p class="quiet">${text.text(push.isDenied ? 'pushDenied' : 'pushHint')}</p>
      </div>
      <button
        type="button"
        class="button"
        aria-disabled=${String(this.busy)}
        @click=${() => this.busy || this.#togglePush(push)}
      >
        ${this.busy ? html`<span class="spinner" aria-hidden="true"></span>` : nothing}${label}
      </button>
    </section>`;
  }

  get #path(): string {
    return `/users/${encodeURIComponent(this.app.userId ?? '')}/notification-settings`;
  }

  async #load(): Promise<void> {
    this.failed = false;
    try {
      const [settings, push] = await Promise.all([this.app.session.fetch(this.#path), findPush(this.app)]);
      this.settings = (await settings.json()) as NotificationSettings;
      this.push = push;
    } catch {
      this.failed = true;
    }
  }

  /** Shows a change at once, and takes it back if the server refuses it. */
  async #set(channel: string, kind: NotificationKind, isOn: boolean): Promise<void> {
    const before = this.settings ?? {};
    const both = { mention: true, reply: true, ...before[channel], [kind]: isOn };
    this.settings = { ...before, [channel]: both };
    const init = {
      method: 'PUT',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ [channel]: { [kind]: isOn } }),
    };
    const saved = await this.app.attempt(
      async () => (await this.app.session.fetch(this.#path, init)).json() as Promise<NotificationSettings>,
    );
    this.settings = saved ?? before;
  }

  async #togglePush(push: Push): Promise<void> {
    const { app } = this;
    const text = app.language;
    this.busy = true;
    try {
      this.push = push.endpoint === null ? await subscribe(app, push) : await unsubscribe(app, push);
      app.toasts.add({ kind: 'info', text: text.text(push.endpoint === null ? 'pushIsOn' : 'pushIsOff') });
    } catch (thrown) {
      this.push = { ...push, isDenied: thrown instanceof PushDenied };
      app.toasts.add({ kind: 'problem', text: text.text(thrown instanceof PushDenied ? 'pushDenied' : 'pushFailed') });
    } finally {
      this.busy = false;
    }
  }
}

definePart('collab-comments-settings', Settings);
