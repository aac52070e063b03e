import { html, nothing, type TemplateResult } from 'lit';
import type { App } from '../../core/app.ts';
import { type Rejection, rejectionsOf } from '../../core/rejections.ts';
import { commentBody } from '../body.ts';
import { icon } from '../icons.ts';

/** What moderators have rejected of the user in a thread, or in all of the room, with the reason. */
export function rejectionList(app: App, threadId: string | null): TemplateResult | typeof nothing {
  const items = app.mayWrite ? rejectionsOf(app).of(threadId) : [];
  if (items.length === 0) return nothing;
  return html`<section class="rejections" aria-label=${app.language.text('notApprovedTitle')}>
    ${items.map((item) => card(app, item))}
  </section>`;
}

function card(app: App, { id, comment, kind, rejection, decidedAt }: Rejection): TemplateResult {
  const text = app.language;
  const copy = (): void => void app.copy(comment.body, 'textCopied');
  return html`<article class="rejection" part="rejection">
    <header>
      <span class="tag danger"
        >${icon('warn')}<span>${text.text(kind === 'report' ? 'removedTag' : 'notApproved')}</span></span
      >${decidedAt === null ? nothing : html`<time class="quiet" datetime=${decidedAt} title=${text.exactly(decidedAt)}>${text.ago(decidedAt, Date.now())}</time>`}<span
        class="grow"
      ></span>
      <button
        type="button"
        class="icon-button"
        aria-label=${text.text('dismiss')}
        title=${text.text('dismiss')}
        @click=${() => rejectionsOf(app).dismiss(id)}
      >
        ${icon('close')}
      </button>
    </header>
    ${rejection === null ? nothing : html`<p class="reason" dir="auto">${text.text('rejectedBecause', { reason: rejection })}</p>`}
    ${commentBody(app, comment)}
    ${comment.body.trim() === '' ? nothing : html`<button type="button" class="button" @click=${copy}>${text.text('copyText')}</button>`}
  </article>`;
}
