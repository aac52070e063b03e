import { html, type TemplateResult } from 'lit';
import { isOfInputMethod } from '../../typing.ts';
import { definePart, Part } from '../part.ts';

/** The bound of the server on a reason, in UTF-16 units. */
const MAX_REASON = 1_000;

/** The form to report a comment to the moderators. */
class ReportPart extends Part {
  static override properties = {
    ...Part.properties,
    commentId: { attribute: false },
    reason: { state: true },
    sending: { state: true },
  };

  declare commentId: string;
  /** Called when the form is to be closed. */
  declare done: () => void;
  declare reason: string;
  declare sending: boolean;

  constructor() {
    super();
    this.reason = '';
    this.sending = false;
  }

  override firstUpdated(): void {
    this.querySelector('textarea')?.focus({ preventScroll: true });
    this.scrollIntoView({ block: 'nearest' });
  }

  override render(): TemplateResult {
    const text = this.app.language;
    const blocked = this.reason.trim() === '' || this.sending;
    return html`<div class="composer form" part="report" @keydown=${this.#onKey}>
      <label
        ><span class="form-label">${text.text('reportLabel')}</span>
        <textarea
          rows="2"
          maxlength=${MAX_REASON}
          dir="auto"
          .value=${this.reason}
          @input=${(event: Event) => (this.reason = (event.target as HTMLTextAreaElement).value)}
        ></textarea>
      </label>
      <div class="composer-bar">
        <span class="grow"></span>
        <button type="button" class="button quiet-button" @click=${() => this.done()}>${text.text('cancel')}</button>
        <button type="button" class="button primary" aria-disabled=${String(blocked)} @click=${this.#send}>
          ${text.text('report')}
        </button>
      </div>
    </div>`;
  }

  readonly #onKey = (event: KeyboardEvent): void => {
    if (isOfInputMethod(event)) return;
    if (event.key === 'Escape') {
      event.stopPropagation();
      this.done();
    } else if (event.key === 'Enter' && !event.shiftKey && event.target instanceof HTMLTextAreaElement) {
      event.preventDefault();
      void this.#send();
    }
  };

  readonly #send = async (): Promise<void> => {
    const { app, commentId } = this;
    const reason = this.reason.trim();
    if (reason === '' || this.sending) return;
    this.sending = true;
    const answer = await app.attempt(() =>
      app.session.fetch(`/comments/${encodeURIComponent(commentId)}/report`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ reason }),
      }),
    );
    this.sending = false;
    if (answer === null) return;
    app.toasts.add({ kind: 'info', text: app.language.text(answer.status === 201 ? 'reported' : 'reportedBefore') });
    this.done();
  };
}

definePart('collab-comments-report', ReportPart);
