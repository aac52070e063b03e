import { html, nothing, type TemplateResult } from 'lit';
import type { App } from '../core/app.ts';
import { avatar } from './avatar.ts';
import { icon } from './icons.ts';

/** At most so many avatars are shown; the others are counted. */
const MAX_FACES = 4;

/** The bar that is always there: who is online, and buttons to add a comment, for the inbox and for the panel. */
export function toolbar(app: App): TemplateResult {
  const text = app.language;
  const { panel, placing, side } = app.view;
  const news = app.inbox?.getSnapshot().unreadCount ?? 0;
  const unread = app.unreadCount;
  const label = text.text(panel ? 'hideComments' : 'showComments');
  const state = app.state.status;
  const ended = state === 'closed';
  return html`<div class="toolbar" part="toolbar" role="toolbar" aria-label=${text.text('comments')}>
    ${state === 'live' ? presence(app) : html`<span class="connection ${state}" part="connection" role="img" title=${app.problem ?? text.text(ended ? 'errorConnection' : 'connecting')}>${ended ? icon('warn') : html`<span class="spinner" aria-hidden="true"></span>`}</span>`}
    ${
      app.mayWrite
        ? html`<button
            type="button"
            class="tool ${placing === null ? '' : 'active'}"
            part="add"
            aria-label=${text.text('addComment')}
            title=${text.text('addComment')}
            aria-pressed=${String(placing !== null)}
            @click=${() => (placing === null ? app.startComment() : app.show({ placing: null }))}
          >
            ${icon('comment')}
          </button>`
        : nothing
    }
    ${
      app.inbox === null
        ? nothing
        : html`<button
            type="button"
            class="tool"
            part="bell"
            aria-label=${withCount(app, text.text('inbox'), news)}
            title=${text.text('inbox')}
            aria-expanded=${String(side === 'inbox')}
            @click=${() => app.showInbox(true)}
          >
            ${icon('bell')}${news === 0 ? nothing : html`<span class="count" part="count" aria-hidden="true">${short(news)}</span>`}
          </button>`
    }
    <button
      type="button"
      class="tool"
      part="toggle"
      aria-label=${withCount(app, label, unread)}
      title=${label}
      aria-expanded=${String(panel)}
      @click=${() => app.show({ panel: !panel })}
    >
      ${icon('list')}${unread === 0 ? nothing : html`<span class="badge" part="badge" aria-hidden="true">${short(unread)}</span>`}
    </button>
  </div>`;
}

function withCount(app: App, label: string, count: number): string {
  return count === 0 ? label : `${label}, ${app.language.text('unreadCount', { count })}`;
}

function short(count: number): string {
  return count > 99 ? '99+' : String(count);
}

function presence(app: App): TemplateResult | typeof nothing {
  const present = app.snapshot.presence.filter(({ userId }) => userId !== app.userId);
  if (present.length === 0) return nothing;
  const names = app.language.names(present.map(({ userId }) => app.person(userId).name));
  const more = present.length - MAX_FACES;
  return html`<span
    class="faces"
    part="presence"
    role="img"
    aria-label=${app.language.text('online', { names })}
    title=${app.language.text('online', { names })}
  >
    ${present.slice(0, MAX_FACES).map(({ userId }) => avatar(app.person(userId)))}${more > 0 ? html`<span class="avatar more">+${more}</span>` : nothing}
  </span>`;
}
