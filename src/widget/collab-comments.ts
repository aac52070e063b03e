import { html, LitElement, nothing, type PropertyValues, type TemplateResult } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import type { CollabSession } from '../client/session/session.ts';
import type { TokenProvider } from '../client/session/options.ts';
import type { Change } from './anchoring/tracker.ts';
import type { CollabCommentsElement } from '../client/widget.ts';
import type { Position } from '../model/thread.ts';
import { App, type WidgetSession } from './core/app.ts';
import type { AppHost } from './core/app-host.ts';
import { loadSharedSocket, openOwnSession, type SharedSocketPart } from './core/own-session.ts';
import { explainSetup } from './core/problems.ts';
import { Focus } from './focus.ts';
import { Anchors } from './pins/anchors.ts';
import { PinLayer } from './pins/pin-layer.ts';
import { PopoverPlace } from './pins/popover-place.ts';
import { unzoom } from './pins/unzoom.ts';
import type { Language } from './strings/language.ts';
import { PageLanguage } from './strings/page-language.ts';
import type { Strings } from './strings/en.ts';
import { styleSheet, styles } from './styles/styles.ts';
import type { LiveCursors } from './views/cursors.ts';
import type * as Opened from './views/opened.ts';
import { toastsView, toastView } from './views/messages.ts';
import { onPinFocus, onPinKey, pinsView } from './views/pins.ts';
import { toolbar } from './views/toolbar.ts';
import { definePart } from './views/part.ts';
import { keepTyping } from './typing.ts';

/**
 * The element `<collab-comments>`: comments pinned to the page that it stands on. docs/widget.md describes its
 * interface.
 */
export class CollabComments extends LitElement implements CollabCommentsElement {
  static override styles = styles;
  static override properties = {
    baseUrl: { attribute: 'base-url' },
    publishableKey: { attribute: 'publishable-key' },
    room: {},
    token: {},
    locale: {},
    // The defaults are not reflected: attributes that the server did not write are an error of hydration to frameworks.
    theme: { reflect: true, useDefault: true },
    placement: { reflect: true, useDefault: true },
    cursors: { type: Boolean },
    shareConnection: { type: Boolean, attribute: 'share-connection' },
    shortcuts: {},
    pushWorker: { attribute: 'push-worker' },
    tokenProvider: { attribute: false },
    session: { attribute: false },
    strings: { attribute: false },
  };

  declare baseUrl: string;
  declare publishableKey: string;
  declare room: string;
  declare token: string;
  declare locale: string;
  declare theme: string;
  declare placement: string;
  declare cursors: boolean;
  declare shareConnection: boolean;
  declare shortcuts: string | null;
  declare pushWorker: string;
  declare tokenProvider: TokenProvider | null;
  declare session: WidgetSession | null;
  declare strings: Partial<Strings>;

  #app: App | null = null;
  #own: CollabSession | null = null;
  #sharedSocket: SharedSocketPart | null = null;
  #cursors: LiveCursors | null = null;
  /** The views of what is opened, once they are loaded. */
  #opened: typeof Opened | null = null;
  #version = 0;
  /** The latest announcements for screen readers, by number. */
  #announcements: readonly { readonly number: number; readonly text: string }[] = [];
  /** Whether the connection was made for an earlier room. */
  #kept = false;
  /** Why the widget cannot start with these attributes; null if nothing is wrong with them. */
  #refusal: unknown = null;
  readonly #language = new PageLanguage(this, () => {
    if (this.#app !== null) this.#app.language = this.#language.current;
    this.requestUpdate();
  });
  readonly #anchors = new Anchors(this, (change) => this.#follow(change));
  readonly #pins = new PinLayer(() => this.renderRoot.querySelector('.layer'));
  readonly #focus = new Focus(this);
  readonly #popover = new PopoverPlace(() => this.#placePopover());

  /** Whether the element is being moved within the page: then it keeps its state. */
  isMoving = false;

  constructor() {
    super();
    this.baseUrl = '';
    this.publishableKey = '';
    this.room = '';
    this.token = '';
    this.locale = '';
    this.theme = 'auto';
    this.placement = 'bottom-right';
    this.cursors = false;
    this.shareConnection = false;
    this.shortcuts = null;
    this.pushWorker = '';
    this.tokenProvider = null;
    this.session = null;
    this.strings = {};
  }

  /**
   * Opens a thread, at a comment of it if one is named. Waits up to 10 s for a thread that the room does not have.
   */
  openThread(threadId: string, commentId: string | null = null): void {
    this.#app?.openThread(threadId, commentId);
  }

  /** Opens or closes the panel. */
  togglePanel(open = !(this.#app?.view.panel ?? false)): void {
    this.#app?.show({ panel: open });
  }

  /** Opens or closes the inbox. Does nothing where the server has none. */
  toggleInbox(open = this.#app?.view.side !== 'inbox'): void {
    this.#app?.showInbox(open);
  }

  /** Lets the user choose a place for a new thread. */
  startComment(): void {
    this.#app?.startComment();
  }

  override connectedCallback(): void {
    super.connectedCallback();
    if (this.isMoving) return;
    this.#anchors.start();
    window.addEventListener('resize', this.#popover.placeAgain);
    window.addEventListener('hashchange', this.#onHash);
    window.addEventListener('pagehide', this.#onLeave);
    document.addEventListener('keydown', this.#onKey);
    // After the page: what it has handled is no shortcut of the widget.
    window.addEventListener('keydown', this.#onShortcut);
    if (this.hasUpdated) this.#connect();
  }

  /** The browser moves the element with its state (`moveBefore`). */
  connectedMoveCallback(): void {}

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    if (this.isMoving) return;
    this.#anchors.stop();
    window.removeEventListener('resize', this.#popover.placeAgain);
    window.removeEventListener('hashchange', this.#onHash);
    window.removeEventListener('pagehide', this.#onLeave);
    document.removeEventListener('keydown', this.#onKey);
    window.removeEventListener('keydown', this.#onShortcut);
    this.#disconnect();
  }

  override willUpdate(changed: PropertyValues): void {
    const identity = ['baseUrl', 'publishableKey', 'session', 'shareConnection'];
    if (changed.has('room')) identity.push('token');
    // A room that the token of the connection is not for may be one that a new token is for.
    const refused = this.#kept && this.#app?.snapshot.error?.code === 'forbidden';
    if (identity.some((name) => changed.has(name)) || this.#app === null || refused) this.#connect();
    else if (changed.has('room')) this.#changeRoom();
    else if ((changed.has('token') && this.#own !== null) || changed.has('tokenProvider')) this.#own?.reconnect();
    void this.#language.load();
    if (this.#app === null) return;
    if (changed.has('locale') || changed.has('strings')) this.#app.language = this.#language.current;
    if (changed.has('cursors')) this.#setCursors(this.cursors);
    this.#version += 1;
    unzoom(this, this.renderRoot);
    this.#anchors.follow(this.#app.threads, this.#app.view.composing);
  }

  override firstUpdated(): void {
    keepTyping(this.renderRoot as ShadowRoot, this.#onKey);
    // The popover can be placed only after the panel's animation has ended.
    this.renderRoot.addEventListener('animationend', () => {
      this.#popover.placeAgain();
      this.#placePopover();
    });
  }

  override updated(changed: PropertyValues): void {
    super.updated(changed);
    if (this.#app === null) return;
    this.#pins.place();
    this.#placePopover();
    this.#anchors.show(this.#app.view.open);
    this.#focus.follow(this.#app.view);
  }

  override render(): TemplateResult {
    const app = this.#app;
    const language = app?.language ?? this.#language.current;
    const rtl = this.#isRtl() ? 'rtl' : 'ltr';
    if (app === null) {
      const problem = this.#setupProblem(language);
      return html`<div class="root" dir=${rtl} lang=${language.tag}>
        ${problem === null ? nothing : html`<div class="toasts" part="toasts">${toastView(language, { kind: 'problem', text: problem })}</div>`}
      </div>`;
    }
    const detached = new Set(
      [...this.#anchors.placements].flatMap(([id, { state }]) => (state === 'detached' ? [id] : [])),
    );
    const messages = toastsView(app);
    const popover =
      this.#opened?.popoverView(app, this.#version, { create: (written) => this.#create(app, written) }, messages) ??
      nothing;
    // What is open holds the messages. While a place is chosen, the panel lies under what covers the page.
    const inPanel = popover === nothing && app.view.panel && app.view.placing === null && this.#opened !== null;
    return html`<div class="root ${app.view.panel ? 'with-panel' : ''}" dir=${rtl} lang=${language.tag}>
      <div class="layer" part="layer" @keydown=${onPinKey} @focusin=${(event: FocusEvent) => onPinFocus(app, event)}>
        ${pinsView(app, this.#anchors.placements, this.#pins, rtl === 'rtl')}${this.#cursors?.render(this.#pins.origin()) ?? nothing}
      </div>
      ${popover}${app.view.panel ? this.#opened?.panelView(app, detached, inPanel ? messages : nothing, this.#version) : nothing}
      <section aria-label=${language.text('comments')}>
        ${app.view.placing === null ? nothing : html`<collab-comments-placing .app=${app} .version=${this.#version} .choose=${(position: Position) => this.#chosen(app, position)}></collab-comments-placing>`}
        ${app.view.viewer === null ? nothing : html`<collab-comments-viewer .app=${app} .version=${this.#version}></collab-comments-viewer>`}
        ${toolbar(app)}
      </section>
      ${popover === nothing && !inPanel ? messages : nothing}
      <div class="visually-hidden" role="log">
        ${repeat(
          this.#announcements,
          ({ number }) => number,
          ({ text }) => html`<p>${text}</p>`,
        )}
      </div>
    </div>`;
  }

  /** The name of a missing attribute; null if the widget can connect. */
  #missing(): string | null {
    if (this.room === '') return 'room';
    if (this.session !== null) return null;
    if (this.publishableKey === '') return 'publishable-key';
    return this.token === '' && this.tokenProvider === null ? 'token' : null;
  }

  /** Why there is nothing to show, in words; null if the widget can connect. */
  #setupProblem(language: Language): string | null {
    const name = this.#missing();
    if (name !== null) return language.text('errorSetup', { name });
    return this.#refusal === null ? null : explainSetup(this.#refusal, language);
  }

  #connect(): void {
    this.#disconnect();
    this.#refusal = null;
    if (this.#missing() !== null || !this.isConnected) return;
    if (this.shareConnection && this.session === null && this.#sharedSocket === null) return void this.#shareSocket();
    try {
      this.#own = this.session === null ? openOwnSession(this, this.shareConnection ? this.#sharedSocket : null) : null;
      this.#enter(this.session ?? (this.#own as CollabSession));
    } catch (thrown) {
      this.#disconnect();
      this.#refusal = thrown;
    }
  }

  async #shareSocket(): Promise<void> {
    this.#sharedSocket = await loadSharedSocket();
    this.requestUpdate();
  }

  /** Shows another room, on the connection that there is. */
  #changeRoom(): void {
    const session = this.session ?? this.#own;
    if (this.#missing() !== null || session === null) return this.#connect();
    this.#leave();
    this.#enter(session);
    this.#kept = this.session === null;
  }

  #enter(session: WidgetSession): void {
    const host: AppHost = {
      changed: () => this.requestUpdate(),
      dispatch: (name, detail) =>
        this.dispatchEvent(
          new CustomEvent(name, {
            detail,
            bubbles: true,
            composed: true,
            cancelable: name === 'collab-notification-open',
          }),
        ),
      pushWorker: () => this.pushWorker,
      announce: (text) => {
        this.#announcements = [
          ...this.#announcements.slice(1 - MAX_ANNOUNCEMENTS),
          { number: (this.#announcements.at(-1)?.number ?? 0) + 1, text },
        ];
        this.requestUpdate();
      },
    };
    this.#app = new App(session, this.room, this.publishableKey, this.#language.current, host);
    this.#app.start();
    this.#followChanges();
    void this.#app.attempt(() => this.#anchors.load());
    void this.#loadOpened();
  }

  async #loadOpened(): Promise<void> {
    const opened = await this.#app?.attempt(() => import('./views/opened.ts'));
    if (opened === null || opened === undefined) return;
    if (this.#opened === null && this.shadowRoot !== null) {
      this.shadowRoot.adoptedStyleSheets = [...this.shadowRoot.adoptedStyleSheets, ...opened.sheets.map(styleSheet)];
      opened.acceptDrops(this.renderRoot, () => this.#app);
      opened.dragPins(this.renderRoot, this, () => this.#app);
      opened.holdFocus(this.renderRoot as ShadowRoot, this, () =>
        this.#app?.toasts.add({ kind: 'problem', text: this.#app.language.text('focusTaken') }),
      );
    }
    this.#opened = opened;
    this.#followChanges();
    this.#setCursors(this.cursors);
    this.requestUpdate();
  }

  #followChanges(): void {
    if (this.#app !== null && this.#opened !== null)
      this.#app.announcements ??= new this.#opened.Announcements(this.#app);
  }

  #leave(): void {
    this.#setCursors(false);
    this.#app?.stop();
    this.#app = null;
  }

  #disconnect(): void {
    this.#leave();
    this.#own?.close();
    this.#own = null;
    this.#kept = false;
  }

  #setCursors(shown: boolean): void {
    this.#cursors?.stop();
    this.#cursors =
      shown && this.#app !== null && this.#opened !== null ? new this.#opened.LiveCursors(this.#app) : null;
  }

  /** Pins have moved: most often nothing else has to be rendered. */
  #follow(change: Change): void {
    if (this.#app === null) return;
    unzoom(this, this.renderRoot);
    if (this.#pins.move(change, this.#anchors.placements)) this.#placePopover();
    else this.requestUpdate();
  }

  #placePopover(): void {
    if (this.#app !== null) this.#popover.update(this.renderRoot, this.#app.view, this.#anchors, this.#isRtl());
  }

  #chosen(app: App, position: Position): void {
    const threadId = app.view.placing?.threadId ?? null;
    if (threadId === null) return app.show({ placing: null, composing: position });
    app.show({ placing: null });
    void this.#opened?.moveThread(app, threadId, position).then((moved) => moved && app.openThread(threadId));
  }

  async #create(
    app: App,
    written: { readonly body: string; readonly mentions: string[]; readonly attachmentIds: string[] },
  ): Promise<boolean> {
    const position = app.view.composing;
    if (position === null) return false;
    const created = await app.createThread(position, written);
    if (!created && app.view.open === null) app.show({ composing: position });
    return created;
  }

  #isRtl(): boolean {
    return this.matches(':dir(rtl)') || this.#app?.language.isRtl === true;
  }

  readonly #onHash = (): void => this.#app?.followLink(location.hash);
  readonly #onLeave = (): void => this.#app?.deletions.flush();
  readonly #onShortcut = (event: KeyboardEvent): void => {
    if (this.shortcuts !== null && this.#app !== null)
      this.#opened?.onShortcut(event, this.shortcuts, this.#app, this.#anchors.placements);
  };
  readonly #onKey = (event: KeyboardEvent): void => {
    if (event.key !== 'Escape' || event.defaultPrevented || this.#app === null) return;
    const { open, composing, cluster } = this.#app.view;
    if (open !== null || composing !== null || cluster !== null) this.#app.close();
  };
}

/** So many announcements stay for those who look for them. Each is read once, when it is added. */
const MAX_ANNOUNCEMENTS = 5;

definePart('collab-comments', CollabComments);
