import { html, nothing, type TemplateResult } from 'lit';
import type { InboxItem } from '../../../client/inbox/inbox.ts';
import type { App } from '../../core/app.ts';
import type { InboxList } from '../../core/inbox-list.ts';
import { linkTo } from '../../core/link.ts';
import { linkOnPage, pageAt, pageOf } from '../../pins/page.ts';
import { avatar } from '../avatar.ts';
import { plainText } from '../body.ts';
import { icon } from '../icons.ts';

/** A notification in the list. One on another page of this site is a link there. `markRead` is called by its button. */
export function inboxItem(
  app: App,
  list: InboxList,
  item: InboxItem,
  markRead: (event: Event) => unknown,
): TemplateResult {
  const text = app.language;
  const person = app.person(item.actorId);
  const isUnread = item.readAt === null;
  const comment = list.comment(item);
  const label = text.text('markRead');
  const address = addressOf(app, list, item);
  const isHere = item.roomId === app.room.roomId;
  const place = isHere ? (address === null ? nothing : text.text('elsewhereTitle')) : item.roomId;
  const content = html`${avatar(person)}
    <span class="item-text">
      <span class="item-head"
        ><span class="item-title" dir="auto"
          >${text.text(item.kind === 'mention' ? 'inboxMention' : 'announceReplied', { name: person.name })}</span
        >${isUnread ? html`<span class="dot"><span class="visually-hidden">${text.text('unread')}</span></span>` : nothing}</span
      >
      ${comment === null ? nothing : html`<span class="item-body" dir="auto">${plainText(app, comment)}</span>`}
      <span class="quiet place"
        ><time datetime=${item.createdAt} title=${text.exactly(item.createdAt)}
          >${text.ago(item.createdAt, Date.now())}</time
        >${place === nothing ? nothing : html`<span aria-hidden="true">·</span><bdi class="room" title=${place}>${place}</bdi>`}${list.thread(item)?.resolved === true ? html`<span class="tag success">${text.text('resolved')}</span>` : nothing}</span
      >
    </span>`;
  const open = (event: Event): void => openItem(app, list, item, address, event);
  const main =
    address === null
      ? html`<button type="button" class="item-main" data-notification=${item.id} @click=${open}>${content}</button>`
      : html`<a class="item-main" data-notification=${item.id} href=${address} @click=${open}>${content}</a>`;
  return html`<li>
    <div class="item ${isUnread ? 'unread' : ''}" part="list-item">
      ${main}
      ${isUnread ? html`<button type="button" class="icon-button mark-read" aria-label=${label} title=${label} @click=${markRead}>${icon('check')}</button>` : nothing}
    </div>
  </li>`;
}

/**
 * Where the thread of a notification is, on another page of this site; null if it is on this page, or if nobody knows
 * where.
 */
function addressOf(app: App, list: InboxList, item: InboxItem): string | null {
  const page = pageOf(list.thread(item)?.position ?? null);
  const isHere = item.roomId === app.room.roomId;
  if (page !== null) return isHere && page === pageAt(location) ? null : linkOnPage(page, location.href, item);
  // Anybody may have chosen the id of a room: as an address it leads no further than this site.
  if (isHere || !URL.canParse(item.roomId) || new URL(item.roomId).origin !== location.origin) return null;
  return linkTo(item.roomId, item);
}

/** Opens the thread here, or says where it is; the browser follows a link. The page may do something else instead. */
function openItem(app: App, list: InboxList, item: InboxItem, address: string | null, event: Event): void {
  const { id, readAt, roomId, threadId, commentId } = item;
  if (readAt === null) void app.attempt(() => app.session.inbox.markRead([id]));
  if (!app.host.dispatch('collab-notification-open', { roomId, threadId, commentId })) return event.preventDefault();
  // A route behind `#` has no place for the thread, but the widget stays.
  if (address !== null)
    return roomId === app.room.roomId && isThisDocument(address) ? app.openThread(threadId, commentId) : undefined;
  if (roomId === app.room.roomId)
    return app.snapshot.status === 'ready' && app.thread(threadId) === null
      ? app.showGone()
      : app.openThread(threadId, commentId);
  if (list.isGone(item)) return app.showGone();
  app.toasts.add({ kind: 'info', text: app.language.text('inboxElsewhere', { room: roomId }) });
}

function isThisDocument(address: string): boolean {
  const { origin, pathname, search } = new URL(address, location.href);
  return origin === location.origin && pathname === location.pathname && search === location.search;
}
