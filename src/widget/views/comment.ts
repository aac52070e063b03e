import { html, nothing, type PropertyValues, type TemplateResult } from 'lit';
import type { Comment } from '../../model/comment.ts';
import type { Reaction } from '../../model/reaction.ts';
import type { RoomComment } from '../../client/room/snapshot.ts';
import { emptyDraft } from '../core/drafts.ts';
import { linkTo } from '../core/link.ts';
import type { StringKey } from '../strings/en.ts';
import { attachmentList } from './attachments.ts';
import { avatar } from './avatar.ts';
import { commentBody } from './body.ts';
import type { Written } from './composer.ts';
import { emojiPicker } from '../emoji/emoji-picker.ts';
import { icon, type IconName } from './icons.ts';
import { openMenu } from './open-menu.ts';
import { definePart, Part } from './part.ts';
import './composer.ts';

/** Distance from the end of the list, in pixels, within which a new comment is scrolled into view. */
const NEAR_END = 40;

/** One comment of the open thread, with what can be done to it. */
class CommentPart extends Part {
  static override properties = {
    ...Part.properties,
    comment: { attribute: false },
    menu: { state: true },
    editing: { state: true },
    reporting: { state: true },
  };

  declare comment: RoomComment;
  declare menu: 'emoji' | 'emojis' | 'more' | null;
  declare editing: boolean;
  declare reporting: boolean;

  constructor() {
    super();
    this.menu = null;
    this.editing = false;
    this.reporting = false;
  }

  /**
   * Whether the app changed in a way that this comment shows: with many comments, rendering all at each event takes
   * long.
   */
  override shouldUpdate(changed: PropertyValues): boolean {
    const { language, userId, snapshot, state } = this.app;
    const shown = [language, userId, state.role, snapshot.users, Math.floor(Date.now() / 60_000)];
    const isSame = shown.every((value, index) => value === this.#shown[index]);
    this.#shown = shown;
    const onlyVersion = changed.size === 1 && changed.has('version');
    return !(onlyVersion && isSame) || this.editing || this.reporting || this.menu !== null;
  }
  #shown: readonly unknown[] = [];

  override render(): TemplateResult {
    const { app, comment } = this;
    const text = app.language;
    const person = app.person(comment.userId);
    const edited =
      comment.editedAt === null
        ? nothing
        : html`<span class="quiet" title=${text.text('editedAt', { time: text.exactly(comment.editedAt) })}
            >${text.text('edited')}</span
          >`;
    return html`<article
      class="comment ${comment.pending === null ? '' : 'pending'}"
      part="comment"
      data-comment=${comment.id}
      tabindex="-1"
      @keydown=${this.#onKey}
      @focusout=${this.#onFocusOut}
    >
      ${avatar(person)}
      <div class="comment-main">
        <header>
          <bdi class="name" part="comment-author" title=${person.name}>${person.name}</bdi
          >${person.isBot ? html`<span class="tag">${text.text('bot')}</span>` : nothing}
          <time class="quiet" datetime=${comment.createdAt} title=${text.exactly(comment.createdAt)}
            >${comment.pending === null ? text.ago(comment.createdAt, Date.now()) : text.text('sending')}</time
          >${edited}${comment.status === 'held' ? html`<span class="tag waiting">${text.text('pending')}</span>` : nothing}
        </header>
        ${this.editing ? this.#editor() : html`${commentBody(app, comment)}${attachmentList(app, comment.attachments)}${this.#heldNote()}${this.#reactions()}`}
        ${this.reporting ? html`<collab-comments-report .app=${app} .version=${this.version} .commentId=${comment.id} .done=${() => this.#endReport()}></collab-comments-report>` : nothing}
      </div>
      ${this.editing ? nothing : this.#actions()}
    </article>`;
  }

  /**
   * Scrolls a new comment into view if it is the user's own, or if the end of the list was nearly in view. Otherwise
   * the scroll position is kept, which browsers with scroll anchoring do themselves. Only the last comment is checked:
   * measuring lays the page out.
   */
  override firstUpdated(): void {
    if (this.nextElementSibling?.localName === this.localName) return;
    const list = this.closest('.comments') as HTMLElement;
    const height = this.offsetHeight;
    const top = list.scrollTop - (CSS.supports('overflow-anchor', 'auto') ? 0 : height);
    list.scrollTop = this.comment.pending === 'create' || top + height > -NEAR_END ? 0 : top;
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    const { app, comment } = this;
    if (this.editing && app.snapshot.status === 'ready' && app.comment(comment.id) === null)
      app.showGone(app.drafts.read(this.#field)?.text);
  }

  override updated(changed: PropertyValues): void {
    super.updated(changed);
    const menu = this.querySelector<HTMLElement>('.menu');
    const actions = this.querySelector<HTMLElement>('.actions');
    if (!changed.has('menu') || menu === null || actions === null) return;
    openMenu(menu, actions);
    menu.querySelector<HTMLElement>('input, button')?.focus({ preventScroll: true });
  }

  #actions(): TemplateResult {
    const text = this.app.language;
    const { app, comment } = this;
    const mayChange = app.mayChange(comment);
    const isHeld = comment.status === 'held';
    // Nobody else sees it, so there is nothing to react or link to.
    const isNew = isHeld && comment.published === undefined;
    const mayReport = app.mayWrite && comment.userId !== app.userId && comment.pending === null;
    const item = (name: IconName, label: StringKey, act: () => void | Promise<void>, kind = ''): TemplateResult =>
      html`<button type="button" role="menuitem" class=${kind} @click=${act}>${icon(name)}${text.text(label)}</button>`;
    const button = (menu: 'emoji' | 'more', label: string, popup: 'dialog' | 'menu'): TemplateResult =>
      html`<button
        type="button"
        class="icon-button"
        data-menu=${menu}
        aria-label=${label}
        title=${label}
        aria-haspopup=${popup}
        aria-expanded=${String(this.menu?.startsWith(menu) ?? false)}
        @click=${() => this.#toggle(menu)}
      >
        ${icon(menu === 'more' ? menu : 'smile')}
      </button>`;
    return html`<div class="actions" part="comment-actions">
      ${this.app.mayWrite && !isNew ? button('emoji', text.text('react'), 'dialog') : nothing}
      ${button('more', text.text('moreActions'), 'menu')}
      ${
        this.menu === 'emoji'
          ? emojiPicker(
              this.app,
              (emoji) => this.#react(emoji),
              () => void this.#showAllEmojis(),
              () => this.#closeMenu(),
            )
          : nothing
      }
      ${this.menu === 'emojis' ? html`<div class="menu all-emojis" role="dialog" aria-label=${text.text('react')}><collab-comments-emojis .app=${app} .version=${this.version} .choose=${(emoji: string) => this.#react(emoji)}></collab-comments-emojis></div>` : nothing}
      ${
        this.menu === 'more'
          ? html`<div class="menu" role="menu" aria-label=${text.text('moreActions')} @keydown=${this.#onMenuKey}>
              ${isNew ? nothing : item('link', 'copyLink', this.#copyLink)}
              ${mayReport ? item('flag', 'report', this.#report) : nothing}
              ${mayChange ? item('edit', 'edit', this.#edit) : nothing}
              ${app.mayWrite && !isHeld && app.thread(comment.threadId)?.comments[0] === comment ? item('pin', 'movePin', this.#movePin) : nothing}
              ${isHeld && !isNew ? item('reopen', 'withdrawEdit', this.#withdrawEdit) : nothing}
              ${mayChange ? item('trash', isNew ? 'withdraw' : 'delete', this.#delete, 'danger') : nothing}
            </div>`
          : nothing
      }
    </div>`;
  }

  /** Who sees a comment that waits for a moderator. */
  #heldNote(): TemplateResult | typeof nothing {
    const { status, published } = this.comment;
    return status === 'held'
      ? html`<p class="held-note">
          ${icon('eye')}<span
            >${this.app.language.text(published === undefined ? 'pendingHint' : 'pendingEditHint')}</span
          >
        </p>`
      : nothing;
  }

  #reactions(): TemplateResult | typeof nothing {
    const { app, comment } = this;
    const groups = new Map<string, Reaction[]>();
    for (const reaction of comment.reactions)
      groups.set(reaction.emoji, [...(groups.get(reaction.emoji) ?? []), reaction]);
    if (groups.size === 0) return nothing;
    return html`<div class="reactions" part="reactions">
      ${[...groups].map(([emoji, reactions]) => {
        const own = reactions.find(({ userId }) => userId === app.userId);
        const names = app.language.names(
          reactions.map(({ userId }) => (userId === app.userId ? app.language.text('you') : app.person(userId).name)),
        );
        const label = app.language.text('reactedBy', { emoji, count: reactions.length, names });
        if (!app.mayWrite)
          return html`<span class="reaction" part="reaction" role="img" aria-label=${label} title=${label}
            >${emoji} <span>${reactions.length}</span></span
          >`;
        return html`<button
          type="button"
          class="reaction"
          part="reaction"
          aria-pressed=${String(own !== undefined)}
          aria-label=${label}
          title=${label}
          @click=${() => this.#toggleReaction(emoji, own)}
        >
          ${emoji} <span>${reactions.length}</span>
        </button>`;
      })}
    </div>`;
  }

  #editor(): TemplateResult {
    const { comment } = this;
    const mentions = Object.fromEntries(comment.mentions.map((userId) => [userId, this.app.person(userId).name]));
    const isNewer = comment.body !== this.#base && comment.pending === null;
    return html`${isNewer ? this.#newerText() : nothing}<collab-comments-composer
        .app=${this.app}
        .version=${this.version}
        .field=${this.#field}
        .initial=${{ text: comment.body, mentions, attachments: comment.attachments, base: comment.body }}
        .label=${'editLabel'}
        .submitLabel=${isNewer ? 'saveMine' : 'save'}
        .submit=${(written: Written) => this.#save(written)}
        .cancel=${() => this.#endEdit()}
      ></collab-comments-composer>`;
  }

  /** The draft of an edit. */
  get #field(): string {
    return `edit-${this.comment.id}`;
  }
  /** The text that the edit began with. */
  #base = '';

  /** What the comment says now, while an earlier text of it is being edited. */
  #newerText(): TemplateResult {
    const { app, comment } = this;
    const take = async (): Promise<void> => {
      this.#endEdit();
      await this.updateComplete;
      await this.#edit();
    };
    return html`<div class="newer" role="alert">
      <p>${app.language.text('editNewer')}</p>
      <div class="newer-text">${commentBody(app, comment)}</div>
      <button type="button" class="button" @click=${take}>${app.language.text('editTakeNewer')}</button>
    </div>`;
  }

  async #save(written: Written): Promise<boolean> {
    const { app, comment } = this;
    const others: Comment[] = [];
    const end = app.session.on('event', ({ type, data }) => {
      if (type === 'comment.updated' && data.id === comment.id) others.push(data);
    });
    const saving = app.attempt(() => app.room.updateComment(comment.id, written));
    this.#endEdit(false);
    const saved = await saving;
    end();
    if (saved === null) {
      this.editing = true;
      if (app.comment(comment.id) === null) app.showGone(written.body);
      return false;
    }
    const theirs = others.findLast(({ editedAt, body }) => editedAt !== saved.editedAt && body !== saved.body);
    if (theirs !== undefined) this.#sayCrossed(theirs.body);
    return true;
  }

  /** Another edit reached the server while this one was on its way, which replaced it. */
  #sayCrossed(theirs: string): void {
    const { app } = this;
    const action = { label: app.language.text('copyTheirs'), run: () => void app.copy(theirs, 'textCopied') };
    app.toasts.add({ kind: 'problem', text: app.language.text('editCrossed'), action });
  }

  readonly #edit = async (): Promise<void> => {
    this.menu = null;
    this.#base = this.app.drafts.read(this.#field)?.base ?? this.comment.body;
    this.editing = true;
    await this.updateComplete;
    const composer = this.querySelector('collab-comments-composer') as
      | (HTMLElement & { focusText(): void; updateComplete: Promise<boolean> })
      | null;
    await composer?.updateComplete;
    composer?.focusText();
  };

  #endEdit(forget = true): void {
    this.editing = false;
    if (forget) this.app.drafts.write(this.#field, emptyDraft);
    this.querySelector<HTMLElement>('.comment')?.focus({ preventScroll: true });
  }

  readonly #delete = (): void => {
    this.menu = null;
    const neighbour = this.closest('.comments')?.querySelector<HTMLElement>('.comment') ?? null;
    this.app.deletions.delete(this.comment.id, this.comment.threadId);
    neighbour?.focus({ preventScroll: true });
  };

  readonly #report = async (): Promise<void> => {
    this.menu = null;
    if ((await this.app.attempt(() => import('./moderation/report.ts'))) !== null) this.reporting = true;
  };

  #endReport(): void {
    this.reporting = false;
    this.querySelector<HTMLElement>('.comment')?.focus({ preventScroll: true });
  }

  /** An edit back to the published text withdraws the one that waits. */
  readonly #withdrawEdit = (): void => {
    this.#closeMenu();
    const { app, comment } = this;
    const { published } = comment;
    if (published === undefined) return;
    const { body, mentions, attachments, metadata } = published;
    void app.attempt(() =>
      app.room.updateComment(comment.id, { body, mentions, attachmentIds: attachments.map(({ id }) => id), metadata }),
    );
  };

  readonly #movePin = (): void => {
    this.menu = null;
    this.app.show({ placing: { threadId: this.comment.threadId }, open: null });
  };

  readonly #copyLink = (): void => {
    this.#closeMenu();
    void this.app.copy(
      linkTo(location.href, { threadId: this.comment.threadId, commentId: this.comment.id }),
      'linkCopied',
    );
  };

  async #showAllEmojis(): Promise<void> {
    if ((await this.app.attempt(() => import('../emoji/all-emojis.ts'))) !== null && this.menu === 'emoji')
      this.menu = 'emojis';
  }

  #react(emoji: string): void {
    this.#closeMenu();
    const own = this.comment.reactions.find(
      (reaction) => reaction.emoji === emoji && reaction.userId === this.app.userId,
    );
    if (own === undefined) this.#toggleReaction(emoji, undefined);
  }

  #toggleReaction(emoji: string, own: Reaction | undefined): void {
    const { room } = this.app;
    void this.app.attempt<unknown>(() =>
      own === undefined ? room.addReaction(this.comment.id, emoji) : room.removeReaction(own.id),
    );
  }

  #toggle(menu: 'emoji' | 'more'): void {
    this.menu = this.menu?.startsWith(menu) ? null : menu;
  }

  #closeMenu(): void {
    const menu = this.menu === 'emojis' ? 'emoji' : this.menu;
    this.menu = null;
    this.querySelector<HTMLElement>(`[data-menu=${menu}]`)?.focus();
  }

  readonly #onKey = (event: KeyboardEvent): void => {
    if (event.key !== 'Escape' || this.menu === null) return;
    event.stopPropagation();
    this.#closeMenu();
  };

  readonly #onMenuKey = (event: KeyboardEvent): void => {
    const items = [...this.querySelectorAll<HTMLElement>('[role=menuitem]')];
    const at = items.indexOf(event.target as HTMLElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    items.at(next % items.length)?.focus();
  };

  readonly #onFocusOut = (event: FocusEvent): void => {
    if (
      this.menu === null ||
      event.relatedTarget === null ||
      this.querySelector('.actions')?.contains(event.relatedTarget as Node)
    )
      return;
    this.menu = null;
  };
}

definePart('collab-comments-comment', CommentPart);
