import { html, nothing, type TemplateResult } from 'lit';
import { type QueueItem, queueOf } from '../../core/queue.ts';
import type { StringKey } from '../../strings/en.ts';
import { isOfInputMethod } from '../../typing.ts';
import { attachmentList } from '../attachments.ts';
import { avatar } from '../avatar.ts';
import { commentBody } from '../body.ts';
import { icon } from '../icons.ts';
import { definePart, Part } from '../part.ts';

/** The bound of the server on a reason, in UTF-16 units. */
const MAX_REASON = 1_000;

const KINDS: Readonly<Record<QueueItem['kind'], StringKey>> = {
  comment: 'kindComment',
  thread: 'kindThread',
  edit: 'kindEdit',
  report: 'queueReported',
};

/** What each decision is called and what is said when it is made: on held content, and on reports. */
const DECISIONS = {
  held: { approve: ['approve', 'approved'], reject: ['reject', 'rejectedDone'] },
  reported: { approve: ['dismissReports', 'reportsDismissed'], reject: ['removeReported', 'removedDone'] },
} as const;

/** Something that waits for a moderator, with the buttons to decide on it. */
class QueueItemPart extends Part {
  static override properties = {
    ...Part.properties,
    item: { attribute: false },
    reason: { state: true },
    busy: { state: true },
  };

  declare item: QueueItem;
  /** Called before the item goes. */
  declare leave: (item: Element) => void;
  /** The reason of a rejection while that is being written; else null. */
  declare reason: string | null;
  declare busy: boolean;

  constructor() {
    super();
    this.reason = null;
    this.busy = false;
  }

  override render(): TemplateResult {
    const { app, item } = this;
    const text = app.language;
    const person = app.person(item.userId);
    const { approve, reject } = DECISIONS[item.state];
    return html`<article
      class="queue-item"
      part="queue-item"
      tabindex="-1"
      aria-label=${`${text.text(KINDS[item.kind])}: ${person.name}`}
    >
      <header>
        ${avatar(person)}<bdi class="name" title=${person.name}>${person.name}</bdi
        ><span class="tag">${text.text(KINDS[item.kind])}</span><span class="grow"></span
        ><time class="quiet" datetime=${item.createdAt} title=${text.exactly(item.createdAt)}
          >${text.ago(item.createdAt, Date.now())}</time
        >
      </header>
      ${this.#content()} ${item.state === 'held' ? this.#cause() : this.#reports()}
      ${
        this.reason !== null
          ? this.#form(this.reason)
          : html`<div class="decisions">
              ${app.thread(item.threadId) === null ? nothing : html`<button type="button" class="button quiet-button" @click=${() => app.openThread(item.threadId, item.commentId)}>${text.text('showThread')}</button>`}<span
                class="grow"
              ></span>
              <span class="decision"
                ><button
                  type="button"
                  class="button"
                  data-does="reject"
                  aria-disabled=${String(this.busy)}
                  @click=${this.#startRejection}
                >
                  ${text.text(reject[0])}
                </button>
                <button
                  type="button"
                  class="button primary"
                  aria-disabled=${String(this.busy)}
                  @click=${() => this.#decide('approve')}
                >
                  ${text.text(approve[0])}
                </button></span
              >
            </div>`
      }
    </article>`;
  }

  #content(): TemplateResult {
    const { app, item } = this;
    const { kind, comment, current, before } = item;
    const text = app.language;
    const other = kind === 'edit' ? before : kind === 'report' && current?.body !== comment?.body ? current : null;
    return html`${comment === null ? nothing : html`${commentBody(app, comment)}${attachmentList(app, comment.attachments)}`}
    ${
      other === null
        ? nothing
        : html`<div class="other">
            <p class="quiet">${text.text(kind === 'edit' ? 'publishedNow' : 'changedSince')}</p>
            ${commentBody(app, other)}
          </div>`
    }
    ${kind === 'report' && current === null ? html`<p class="quiet">${text.text('deletedSince')}</p>` : nothing}`;
  }

  #cause(): TemplateResult | typeof nothing {
    const { plugin, reason } = this.item;
    if (plugin === null) return nothing;
    return html`<p class="cause quiet">
      ${icon('flag')}<span
        >${this.app.language.text(reason === null ? 'heldBy' : 'heldBecause', { plugin, reason: reason ?? '' })}</span
      >
    </p>`;
  }

  #reports(): TemplateResult {
    const { app, item } = this;
    const text = app.language;
    const count = text.text('reportedTimes', { count: item.reportCount });
    return html`<div class="cause quiet">
      ${icon('flag')}
      <div>
        <p>${count}</p>
        <ul>
          ${item.reports.map(({ userId, reason }) => {
            const name = userId === null ? text.text('someone') : app.person(userId).name;
            return html`<li dir="auto">${text.text('reportBy', { name, reason })}</li>`;
          })}
        </ul>
      </div>
    </div>`;
  }

  #form(reason: string): TemplateResult {
    const text = this.app.language;
    const blocked = reason.trim() === '' || this.busy;
    return html`<div class="composer form" @keydown=${this.#onKey}>
      <label
        ><span class="form-label">${text.text('rejectLabel')}</span>
        <textarea
          rows="2"
          maxlength=${MAX_REASON}
          dir="auto"
          .value=${reason}
          @input=${(event: Event) => (this.reason = (event.target as HTMLTextAreaElement).value)}
        ></textarea>
      </label>
      <div class="composer-bar">
        <span class="grow"></span>
        <button type="button" class="button quiet-button" @click=${this.#endRejection}>${text.text('cancel')}</button>
        <button
          type="button"
          class="button primary"
          aria-disabled=${String(blocked)}
          @click=${() => this.#decide('reject')}
        >
          ${text.text(DECISIONS[this.item.state].reject[0])}
        </button>
      </div>
    </div>`;
  }

  readonly #startRejection = async (): Promise<void> => {
    if (this.busy) return;
    this.reason = '';
    await this.updateComplete;
    this.querySelector('textarea')?.focus();
  };

  readonly #endRejection = async (): Promise<void> => {
    this.reason = null;
    await this.updateComplete;
    this.querySelector<HTMLElement>('[data-does=reject]')?.focus();
  };

  async #decide(decision: 'approve' | 'reject'): Promise<void> {
    const { app, item } = this;
    const reason = (this.reason ?? '').trim();
    if (this.busy || (decision === 'reject' && reason === '')) return;
    this.busy = true;
    // Before the item goes: afterwards the focus would be nowhere.
    const hadFocus = this.contains((this.getRootNode() as ShadowRoot).activeElement);
    const deciding = decision === 'approve' ? queueOf(app).approve(item) : queueOf(app).reject(item, reason);
    void deciding.then((isDone) => isDone && hadFocus && this.isConnected && this.leave(this));
    if (await deciding) app.toasts.add({ kind: 'info', text: app.language.text(DECISIONS[item.state][decision][1]) });
    this.busy = false;
  }

  readonly #onKey = (event: KeyboardEvent): void => {
    if (isOfInputMethod(event)) return;
    if (event.key === 'Escape') {
      event.stopPropagation();
      void this.#endRejection();
    } else if (event.key === 'Enter' && !event.shiftKey && event.target instanceof HTMLTextAreaElement) {
      event.preventDefault();
      void this.#decide('reject');
    }
  };
}

definePart('collab-comments-queue-item', QueueItemPart);
