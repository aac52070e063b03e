import { html, nothing, type PropertyValues, type TemplateResult } from 'lit';
import type { Reaction } from '../../model/reaction.ts';
import type { RoomComment } from '../../client/room/snapshot.ts';
import { emptyDraft } from '../core/drafts.ts';
import { linkTo } from '../core/link.ts';
import { attachmentList } from './attachments.ts';
import { avatar } from './avatar.ts';
import { commentBody } from './body.ts';
import type { Written } from './composer.ts';
import { emojiPicker } from './emoji-picker.ts';
import { icon } from './icons.ts';
import { openMenu } from './open-menu.ts';
import { definePart, Part } from './part.ts';
import './composer.ts';

/** Distance from the end of the list, in pixels, within which a new comment is scrolled into view. */
const NEAR_END = 40;

/** One comment of the open thread, with what can be done to it. */
class CommentPart extends Part {
  static override properties = { ...Part.properties, comment: { attribute: false }, menu: { state: true }, editing: { state: true } };

  declare comment: RoomComment;
  declare menu: 'emoji' | 'more' | null;
  declare editing: boolean;

  constructor() {
    super();
    this.menu = null;
    this.editing = false;
  }

  /** Whether the app changed in a way that this comment shows: with many comments, rendering all at each event takes long. */
  override shouldUpdate(changed: PropertyValues): boolean {
    const { language, userId, snapshot } = this.app;
    const shown = [language, userId, snapshot.users, Math.floor(Date.now() / 60_000)];
    const isSame = shown.every((value, index) => value === this.#shown[index]);
    this.#shown = shown;
    const onlyVersion = changed.size === 1 && changed.has('version');
    return !(onlyVersion && isSame) || this.editing || this.menu !== null;
  }
  #shown: readonly unknown[] = [];

  override render(): TemplateResult {
    const { app, comment } = this;
    const text = app.language;
    const person = app.person(comment.userId);
    const edited = comment.editedAt === null ? nothing : html`<span class="quiet" title=${text.text('editedAt', { time: text.exactly(comment.editedAt) })}>${text.text('edited')}</span>`;
    return html`<article class="comment ${comment.pending === null ? '' : 'pending'}" part="comment" data-comment=${comment.id} tabindex="-1" @keydown=${this.#onKey} @focusout=${this.#onFocusOut}>
      ${avatar(person)}
      <div class="comment-main">
        <header>
          <bdi class="name" part="comment-author" title=${person.name}>${person.name}</bdi>${person.isBot ? html`<span class="tag">${text.text('bot')}</span>` : nothing}
          <time class="quiet" datetime=${comment.createdAt} title=${text.exactly(comment.createdAt)}>${comment.pending === null ? text.ago(comment.createdAt, Date.now()) : text.text('sending')}</time>${edited}
        </header>
        ${this.editing ? this.#editor() : html`${commentBody(app, comment)}${attachmentList(app, comment.attachments)}${this.#reactions()}`}
      </div>
      ${this.editing ? nothing : this.#actions()}
    </article>`;
  }

  /**
   * Scrolls a new comment into view if it is the user's own, or if the end of the list was nearly in view. Otherwise the scroll
   * position is kept, which browsers with scroll anchoring do themselves. Only the last comment is checked: measuring lays the page out.
   */
  override firstUpdated(): void {
    if (this.nextElementSibling !== null) return;
    const list = this.closest('.comments') as HTMLElement;
    const height = this.offsetHeight;
    const top = list.scrollTop - (CSS.supports('overflow-anchor', 'auto') ? 0 : height);
    list.scrollTop = this.comment.pending === 'create' || top + height > -NEAR_END ? 0 : top;
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    const { app, comment } = this;
    if (this.editing && app.snapshot.status === 'ready' && app.comment(comment.id) === null) app.showGone(app.drafts.read(`edit-${comment.id}`)?.text);
  }

  override updated(changed: PropertyValues): void {
    super.updated(changed);
    const menu = this.querySelector<HTMLElement>('.menu');
    const actions = this.querySelector<HTMLElement>('.actions');
    if (!changed.has('menu') || menu === null || actions === null) return;
    openMenu(menu, actions);
    menu.querySelector('button')?.focus({ preventScroll: true });
  }

  #actions(): TemplateResult {
    const text = this.app.language;
    const own = this.comment.userId === this.app.userId;
    const button = (menu: 'emoji' | 'more', label: string, popup: 'dialog' | 'menu'): TemplateResult =>
      html`<button type="button" class="icon-button" data-menu=${menu} aria-label=${label} title=${label} aria-haspopup=${popup} aria-expanded=${String(this.menu === menu)} @click=${() => this.#toggle(menu)}>${icon(menu === 'more' ? menu : 'smile')}</button>`;
    return html`<div class="actions" part="comment-actions">
      ${button('emoji', text.text('react'), 'dialog')}
      ${button('more', text.text('moreActions'), 'menu')}
      ${this.menu === 'emoji' ? emojiPicker(this.app, (emoji) => this.#react(emoji), () => this.#closeMenu()) : nothing}
      ${this.menu === 'more' ? html`<div class="menu" role="menu" aria-label=${text.text('moreActions')} @keydown=${this.#onMenuKey}>
        <button type="button" role="menuitem" @click=${this.#copyLink}>${icon('link')}${text.text('copyLink')}</button>
        ${own ? html`<button type="button" role="menuitem" @click=${this.#edit}>${icon('edit')}${text.text('edit')}</button>
        <button type="button" role="menuitem" class="danger" @click=${this.#delete}>${icon('trash')}${text.text('delete')}</button>` : nothing}
      </div>` : nothing}
    </div>`;
  }

  #reactions(): TemplateResult | typeof nothing {
    const { app, comment } = this;
    const groups = new Map<string, Reaction[]>();
    for (const reaction of comment.reactions) groups.set(reaction.emoji, [...(groups.get(reaction.emoji) ?? []), reaction]);
    if (groups.size === 0) return nothing;
    return html`<div class="reactions" part="reactions">${[...groups].map(([emoji, reactions]) => {
      const own = reactions.find(({ userId }) => userId === app.userId);
      const names = app.language.names(reactions.map(({ userId }) => (userId === app.userId ? app.language.text('you') : app.person(userId).name)));
      const label = app.language.text('reactedBy', { emoji, count: reactions.length, names });
      return html`<button type="button" class="reaction" part="reaction" aria-pressed=${String(own !== undefined)} aria-label=${label} title=${label} @click=${() => this.#toggleReaction(emoji, own)}>${emoji} <span>${reactions.length}</span></button>`;
    })}</div>`;
  }

  #editor(): TemplateResult {
    const { comment } = this;
    const mentions = Object.fromEntries(comment.mentions.map((userId) => [userId, this.app.person(userId).name]));
    return html`<collab-comments-composer .app=${this.app} .version=${this.version} .field=${`edit-${comment.id}`} .initial=${{ text: comment.body, mentions, attachments: comment.attachments }}
      .label=${'editLabel'} .submitLabel=${'save'} .submit=${(written: Written) => this.#save(written)} .cancel=${() => this.#endEdit()}></collab-comments-composer>`;
  }

  async #save(written: Written): Promise<boolean> {
    const saving = this.app.attempt(() => this.app.room.updateComment(this.comment.id, written));
    this.#endEdit(false);
    const saved = (await saving) !== null;
    if (!saved) this.editing = true;
    if (!saved && this.app.comment(this.comment.id) === null) this.app.showGone(written.body);
    return saved;
  }

  readonly #edit = async (): Promise<void> => {
    this.menu = null;
    this.editing = true;
    await this.updateComplete;
    const composer = this.querySelector('collab-comments-composer') as (HTMLElement & { focusText(): void; updateComplete: Promise<boolean> }) | null;
    await composer?.updateComplete;
    composer?.focusText();
  };

  #endEdit(forget = true): void {
    this.editing = false;
    if (forget) this.app.drafts.write(`edit-${this.comment.id}`, emptyDraft);
    this.querySelector<HTMLElement>('.comment')?.focus({ preventScroll: true });
  }

  readonly #delete = (): void => {
    this.menu = null;
    const neighbour = this.closest('.comments')?.querySelector<HTMLElement>('.comment') ?? null;
    this.app.deletions.delete(this.comment.id, this.comment.threadId);
    neighbour?.focus({ preventScroll: true });
  };

  readonly #copyLink = (): void => {
    this.#closeMenu();
    void this.app.copy(linkTo(location.href, { threadId: this.comment.threadId, commentId: this.comment.id }), 'linkCopied');
  };

  #react(emoji: string): void {
    this.#closeMenu();
    const own = this.comment.reactions.find((reaction) => reaction.emoji === emoji && reaction.userId === this.app.userId);
    if (own === undefined) this.#toggleReaction(emoji, undefined);
  }

  #toggleReaction(emoji: string, own: Reaction | undefined): void {
    const { room } = this.app;
    void this.app.attempt<unknown>(() => (own === undefined ? room.addReaction(this.comment.id, emoji) : room.removeReaction(own.id)));
  }

  #toggle(menu: 'emoji' | 'more'): void {
    this.menu = this.menu === menu ? null : menu;
  }

  #closeMenu(): void {
    const menu = this.menu;
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
    if (this.menu === null || event.relatedTarget === null || this.querySelector('.actions')?.contains(event.relatedTarget as Node)) return;
    this.menu = null;
  };
}

definePart('collab-comments-comment', CommentPart);
