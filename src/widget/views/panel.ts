import { html, nothing, type TemplateResult } from 'lit';
import { guard } from 'lit/directives/guard.js';
import { repeat } from 'lit/directives/repeat.js';
import type { RoomThread } from '../../client/room/snapshot.ts';
import type { App } from '../core/app.ts';
import { type Filter, filters } from '../core/filters.ts';
import { queueOf } from '../core/queue.ts';
import { LIST_STEP } from '../core/view.ts';
import { pageAt, linkOnPage, pageOf } from '../pins/page.ts';
import type { StringKey } from '../strings/en.ts';
import { avatar } from './avatar.ts';
import { plainText } from './body.ts';
import { icon } from './icons.ts';
import { rejectionList } from './moderation/rejections.ts';
import { sideView } from './side/side.ts';
import { scrollList } from './wheel.ts';

const filterNames: Readonly<Record<Filter, StringKey>> = {
  open: 'filterOpen',
  resolved: 'filterResolved',
  mine: 'filterMine',
  mentions: 'filterMentions',
};
const emptyTexts: Readonly<Record<Filter, readonly [title: StringKey, hint: StringKey]>> = {
  open: ['emptyOpenTitle', 'emptyOpen'],
  resolved: ['emptyResolvedTitle', 'emptyResolved'],
  mine: ['emptyMineTitle', 'emptyMine'],
  mentions: ['emptyMentionsTitle', 'emptyMentions'],
};

/**
 * The list of all threads of the page, or what is shown in its place, and below it the messages, if it is to show them.
 */
export function panelView(
  app: App,
  detached: ReadonlySet<string>,
  messages: TemplateResult | typeof nothing,
  version: number,
): TemplateResult {
  if (app.view.side !== null) return sideView(app, app.view.side, messages, version);
  const text = app.language;
  const { filter, query, listLength } = app.view;
  const listed = app.listed;
  const pins = text.text(app.view.hidesPins ? 'showPins' : 'hidePins');
  const pinned = listed.filter(({ id }) => !detached.has(id)).slice(0, listLength);
  const here = pageAt(location);
  const isElsewhere = ({ position }: RoomThread): boolean => (pageOf(position) ?? here) !== here;
  const unpinned = listed.filter(({ id }) => detached.has(id));
  const away = new Set(unpinned.filter(isElsewhere));
  const elsewhere = [...away].slice(0, listLength - pinned.length);
  const gone = unpinned.filter((thread) => !away.has(thread)).slice(0, listLength - pinned.length - elsewhere.length);
  return html`<aside
    class="panel"
    part="panel"
    @wheel=${scrollList}
    role="complementary"
    aria-label=${text.text('comments')}
    @keydown=${(event: KeyboardEvent) => event.key === 'Escape' && app.show({ panel: false })}
  >
    <header class="panel-header">
      <h2>${text.text('comments')}</h2>
      <span class="grow"></span>
      <button
        type="button"
        class="icon-button"
        aria-label=${pins}
        title=${pins}
        @click=${() => app.hidePins(!app.view.hidesPins)}
      >
        ${icon(app.view.hidesPins ? 'hidden' : 'eye')}
      </button>
      <button
        type="button"
        class="icon-button"
        aria-label=${text.text('close')}
        title=${text.text('close')}
        @click=${() => app.show({ panel: false })}
      >
        ${icon('close')}
      </button>
    </header>
    <div class="panel-tools">
      ${app.state.role === 'moderator' ? queueEntry(app) : nothing}
      <label class="search"
        >${icon('search')}<input
          type="search"
          aria-label=${text.text('search')}
          placeholder=${text.text('search')}
          .value=${query}
          @input=${(event: Event) => app.show({ query: (event.target as HTMLInputElement).value })}
      /></label>
      <div
        class="tabs"
        role="radiogroup"
        aria-label=${text.text('filters')}
        @keydown=${(event: KeyboardEvent) => onTabKey(app, event)}
      >
        ${filters.map((name) => html`<button type="button" role="radio" aria-checked=${String(name === filter)} tabindex=${name === filter ? 0 : -1} @click=${() => app.show({ filter: name })}>${text.text(filterNames[name])}</button>`)}
      </div>
    </div>
    <div class="list" part="list" tabindex="-1" @scroll=${(event: Event) => onScroll(app, event, listed.length)}>
      ${filter === 'mine' && query === '' ? rejectionList(app, null) : nothing}
      ${listed.length > 0 ? nothing : emptyState(app)}
      <ol>
        ${repeat(
          pinned,
          ({ id }) => id,
          (thread) => listItem(app, thread),
        )}
      </ol>
      ${
        elsewhere.length === 0
          ? nothing
          : html`<section class="detached" part="elsewhere">
              <h3>${icon('link')}${text.text('elsewhereTitle')}</h3>
              <p class="quiet">${text.text('elsewhereHint')}</p>
              <ol>
                ${repeat(
                  elsewhere,
                  ({ id }) => id,
                  (thread) => listItem(app, thread, 'elsewhere'),
                )}
              </ol>
            </section>`
      }
      ${
        gone.length === 0
          ? nothing
          : html`<section class="detached" part="detached">
              <h3>${icon('warn')}${text.text('detachedTitle')}</h3>
              <p class="quiet">${text.text('detachedHint')}</p>
              <ol>
                ${repeat(
                  gone,
                  ({ id }) => id,
                  (thread) => listItem(app, thread, 'gone'),
                )}
              </ol>
            </section>`
      }
    </div>
    ${messages}
  </aside>`;
}

/** The way to the moderation queue, with the number of what waits there. */
function queueEntry(app: App): TemplateResult {
  const text = app.language;
  const { length: count } = queueOf(app).items;
  const label = count === 0 ? text.text('queue') : text.text('queueWaiting', { count });
  return html`<button
    type="button"
    class="queue-entry ${count === 0 ? '' : 'waiting'}"
    part="queue-entry"
    @click=${() => app.show({ side: 'moderation' })}
  >
    ${icon('flag')}<span>${label}</span>
  </button>`;
}

/** Why a listed thread has no pin: it is on another page, or what it was pinned to is gone. */
type Unpinned = 'elsewhere' | 'gone';

/** A thread in a list: its first comment, and how the conversation stands. */
export function listItem(app: App, thread: RoomThread, unpinned?: Unpinned): TemplateResult {
  const unread = app.isUnread(thread);
  const isOpen = app.view.open?.threadId === thread.id;
  const minute = Math.floor(Date.now() / 60_000);
  return html`<li>
    ${guard([thread, unread, isOpen, unpinned, app.mayWrite, app.language, app.snapshot.users, minute], () => itemContent(app, thread, unread, isOpen, unpinned))}
  </li>`;
}

function itemContent(
  app: App,
  thread: RoomThread,
  unread: boolean,
  isOpen: boolean,
  unpinned: Unpinned | undefined,
): TemplateResult {
  const text = app.language;
  const [first] = thread.comments;
  const person = app.person(thread.userId);
  const replies = thread.comments.length - 1;
  return html`<div class="item ${unread ? 'unread' : ''} ${thread.resolved ? 'resolved' : ''}" part="list-item">
    <button
      type="button"
      class="item-main"
      aria-current=${isOpen ? 'true' : 'false'}
      data-thread=${thread.id}
      @click=${() => app.openThread(thread.id)}
    >
      ${avatar(person)}
      <span class="item-text">
        <span class="item-head"
          ><bdi class="name" title=${person.name}>${person.name}</bdi
          >${person.isBot ? html`<span class="tag">${text.text('bot')}</span>` : nothing}${thread.status === 'held' ? html`<span class="tag waiting">${text.text('pending')}</span>` : nothing}<time
            class="quiet"
            datetime=${thread.updatedAt}
            >${text.ago(thread.updatedAt, Date.now())}</time
          >${unread ? html`<span class="dot"><span class="visually-hidden">${text.text('unread')}</span></span>` : nothing}</span
        >
        <span class="item-body" dir="auto">${plainText(app, first)}</span>
        ${replies === 0 ? nothing : html`<span class="quiet replies">${faces(app, thread)}${text.text('replies', { count: replies })}</span>`}
      </span>
    </button>
    ${unpinned === 'elsewhere' ? html`<a class="button again" href=${linkOnPage(pageOf(thread.position) ?? '', location.href, { threadId: thread.id, commentId: null })}>${icon('link')}${text.text('goToPage')}</a>` : nothing}
    ${unpinned === 'gone' && !thread.resolved && app.mayWrite ? html`<button type="button" class="button again" @click=${() => app.show({ placing: { threadId: thread.id }, open: null })}>${icon('pin')}${text.text('placeAgain')}</button>` : nothing}
  </div>`;
}

function faces(app: App, { comments }: RoomThread): TemplateResult {
  const others = [...new Set(comments.slice(1).map(({ userId }) => userId))].slice(0, 3);
  return html`<span class="faces">${others.map((userId) => avatar(app.person(userId), 'small'))}</span>`;
}

function emptyState(app: App): TemplateResult {
  const text = app.language;
  const { filter, query } = app.view;
  if (app.snapshot.status === 'loading')
    return html`<div class="empty">
      <span class="spinner" aria-hidden="true"></span>
      <p>${text.text('loading')}</p>
    </div>`;
  if (app.unloaded)
    return html`<div class="empty">
      ${icon('warn')}
      <p>${app.problem}</p>
      <button type="button" class="button" @click=${() => app.retry()}>${text.text('retry')}</button>
    </div>`;
  const [title, hint] = query.trim() === '' ? emptyTexts[filter] : (['emptySearchTitle', 'emptySearch'] as const);
  const shownHint = hint === 'emptyOpen' && !app.mayWrite ? 'emptyOpenReader' : hint;
  return html`<div class="empty" part="empty">
    ${icon(query.trim() === '' ? 'comment' : 'search')}
    <h3>${text.text(title)}</h3>
    <p>${text.text(shownHint, { query: query.trim() })}</p>
  </div>`;
}

/** Lists more threads shortly before the end comes into sight. */
function onScroll(app: App, { currentTarget }: Event, count: number): void {
  const { scrollTop, clientHeight, scrollHeight } = currentTarget as HTMLElement;
  const { listLength } = app.view;
  if (listLength < count && scrollTop + 2 * clientHeight > scrollHeight)
    app.show({ listLength: listLength + LIST_STEP });
}

function onTabKey(app: App, event: KeyboardEvent): void {
  const rtl = getComputedStyle(event.currentTarget as HTMLElement).direction === 'rtl' ? -1 : 1;
  const step = { ArrowRight: rtl, ArrowLeft: -rtl, ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const next = (filters.indexOf(app.view.filter) + step + filters.length) % filters.length;
  app.show({ filter: filters[next] ?? 'open' });
  (event.currentTarget as HTMLElement).querySelectorAll('button')[next]?.focus();
}
