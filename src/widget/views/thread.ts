import { html, nothing, type TemplateResult } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import type { RoomThread } from '../../client/room/snapshot.ts';
import type { App } from '../core/app.ts';
import { setResolved } from '../core/thread-writes.ts';
import type { StringKey } from '../strings/en.ts';
import type { Written } from './composer.ts';
import { icon } from './icons.ts';
import { rejectionList } from './moderation/rejections.ts';
import './comment.ts';
import './composer.ts';
import './inbox/follow.ts';

/** The open thread: its comments, the messages, and the field to reply. */
export function threadView(app: App, thread: RoomThread, version: number, messages: TemplateResult): TemplateResult {
  const text = app.language;
  const isHeld = thread.status === 'held';
  const label = text.text(thread.resolved ? 'reopen' : 'resolve');
  return html`<div class="popover-header">
      <h2>${named(app, 'thread', thread.userId)}</h2>
      ${thread.resolved ? html`<span class="tag success">${icon('check')}<span>${resolvedText(app, thread)}</span></span>` : nothing}
      <span class="grow"></span>
      ${app.mayWrite && !isHeld ? html`<button type="button" class="icon-button ${thread.resolved ? 'on' : ''}" part="resolve" aria-label=${label} title=${label} @click=${() => void setResolved(app, thread.id, !thread.resolved)}>${icon(thread.resolved ? 'reopen' : 'check')}</button>` : nothing}
      ${app.inbox === null || isHeld || thread.pending === 'create' ? nothing : html`<collab-comments-follow .app=${app} .version=${version} .threadId=${thread.id}></collab-comments-follow>`}
      <button
        type="button"
        class="icon-button"
        aria-label=${text.text('close')}
        title=${text.text('close')}
        @click=${() => app.close()}
      >
        ${icon('close')}
      </button>
    </div>
    <div class="comments" part="comments">
      <div>
        ${repeat(
          thread.comments,
          ({ id }) => id,
          (comment) =>
            html`<collab-comments-comment
              .app=${app}
              .version=${version}
              .comment=${comment}
            ></collab-comments-comment>`,
        )}${rejectionList(app, thread.id)}
      </div>
    </div>
    ${typingLine(app, thread.id)} ${messages}
    ${
      app.mayWrite && !isHeld
        ? html`<collab-comments-composer
            .app=${app}
            .version=${version}
            .field=${thread.id}
            .label=${'replyPlaceholder'}
            .submitLabel=${'reply'}
            .typingIn=${thread.id}
            .submit=${(written: Written) => reply(app, thread.id, written)}
          ></collab-comments-composer>`
        : note(app, isHeld ? 'threadPending' : 'readOnly')
    }`;
}

/** The field for a new thread at the chosen place. */
export function newThreadView(
  app: App,
  version: number,
  submit: (written: Written) => Promise<boolean>,
): TemplateResult {
  const text = app.language;
  return html`<h2 class="visually-hidden">${text.text('newThread')}</h2>
    ${typingLine(app, null)}
    <collab-comments-composer
      .app=${app}
      .version=${version}
      .field=${'new'}
      .label=${'newPlaceholder'}
      .submitLabel=${'send'}
      .typingIn=${null}
      .submit=${submit}
      .cancel=${() => app.close()}
    ></collab-comments-composer>`;
}

/** Why there is no field to write in. */
function note(app: App, key: StringKey): TemplateResult {
  return html`<p class="note" part="note">${icon('eye')}<span>${app.language.text(key)}</span></p>`;
}

async function reply(app: App, threadId: string, written: Written): Promise<boolean> {
  const comment = await app.attempt(() => app.room.createComment(threadId, written));
  if (comment === null && app.thread(threadId) === null) app.showGone(written.body);
  if (comment !== null) app.host.dispatch('collab-comment-create', { threadId, commentId: comment.id });
  return comment !== null;
}

function resolvedText(app: App, { resolvedBy }: RoomThread): TemplateResult | string {
  return resolvedBy === null ? app.language.text('resolved') : named(app, 'resolvedBy', resolvedBy);
}

/**
 * A text with the name of a user in an element of its own, which is cut at the end of the name, whichever direction
 * that has.
 */
function named(app: App, key: StringKey, userId: string): TemplateResult {
  // No text and no name has a line break.
  const pieces = app.language.text(key, { name: '\n' }).split('\n');
  return html`<span class="named" dir="auto"
    >${pieces.map((piece, index) => html`${index === 0 ? nothing : html`<bdi class="name" title=${app.person(userId).name}>${app.person(userId).name}</bdi>`}${piece}`)}</span
  >`;
}

function typingLine(app: App, threadId: string | null): TemplateResult {
  const names = app.snapshot.typing
    .filter((typing) => typing.threadId === threadId && typing.userId !== app.userId)
    .map(({ userId }) => app.person(userId).name);
  const [name = '', other = ''] = names;
  const key = names.length === 1 ? 'typingOne' : names.length === 2 ? 'typingTwo' : 'typingMany';
  const dots = html`<span class="dots" aria-hidden="true"><i></i><i></i><i></i></span>`;
  return html`<p class="typing" part="typing" aria-live="polite">
    ${names.length === 0 ? nothing : html`${dots}<span>${app.language.text(key, { name, other })}</span>`}
  </p>`;
}
