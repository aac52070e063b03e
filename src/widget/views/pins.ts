import { html, nothing, type TemplateResult } from 'lit';
import { guard } from 'lit/directives/guard.js';
import { repeat } from 'lit/directives/repeat.js';
import type { Placement } from '../anchoring/tracker.ts';
import type { App } from '../core/app.ts';
import type { Person } from '../core/people.ts';
import { type Cluster, clusterPins } from '../pins/cluster.ts';
import type { RoomThread } from '../../client/room/snapshot.ts';
import { avatar } from './avatar.ts';
import { plainText } from './body.ts';
import { icon } from './icons.ts';
import { place } from './place.ts';

/** Pins closer than this, in pixels, are shown as one. */
const CLUSTER_DISTANCE = 26;
/** Width and height of a pin, in pixels. */
const PIN_SIZE = 32;

/**
 * The pins on the page. Resolved threads have one only while they are open or the panel lists them.
 *
 * @param origin the place of the layer's corner in the window, which positions are relative to
 * @param rtl whether text runs from right to left
 */
export function pinsView(app: App, placements: ReadonlyMap<string, Placement>, origin: { readonly x: number; readonly y: number }, rtl: boolean): TemplateResult {
  const page = document.documentElement.getBoundingClientRect();
  const threads = new Map(app.threads.map((thread) => [thread.id, thread]));
  const open = app.view.open?.threadId ?? '';
  const pins = [...placements].flatMap(([id, placement]) => {
    const thread = threads.get(id);
    if (placement.state !== 'shown' || thread === undefined || (thread.resolved && id !== open && !showsResolved(app))) return [];
    const { x, y } = withinPage(placement, page, rtl);
    return [{ id, x: x - origin.x, y: y - origin.y }];
  });
  const clusters = clusterPins(pins, CLUSTER_DISTANCE, new Set([open]));
  return html`${repeat(clusters, ({ ids }) => ids[0], (cluster) => (cluster.ids.length === 1 ? pin(app, cluster, threads) : clusterPin(app, cluster, threads)))}`;
}

/** The place of a pin, moved inside by at most its size if it would be cut off at an edge of the page. */
function withinPage({ x, y }: Placement & { readonly state: 'shown' }, page: DOMRect, rtl: boolean): { x: number; y: number } {
  const atEnd = rtl ? x >= page.left && x < page.left + PIN_SIZE : x <= page.right && x > page.right - PIN_SIZE;
  const end = rtl ? page.left + PIN_SIZE : page.right - PIN_SIZE;
  return { x: atEnd ? end : x, y: Math.max(y, page.top + PIN_SIZE) };
}

function showsResolved({ view }: App): boolean {
  return view.panel && view.filter !== 'open';
}

function pin(app: App, { ids, x, y }: Cluster, threads: ReadonlyMap<string, RoomThread>): TemplateResult | typeof nothing {
  const thread = threads.get(ids[0] ?? '');
  if (thread === undefined) return nothing;
  const unread = app.isUnread(thread);
  const isOpen = app.view.open?.threadId === thread.id;
  const person = app.person(thread.userId);
  // A page with hundreds of pins renders with every event, of which most concern none of them.
  return html`${guard([thread, x, y, unread, isOpen, person, app.language], () => pinContent(app, thread, { x, y, unread, isOpen, person }))}`;
}

interface Pin {
  readonly x: number;
  readonly y: number;
  readonly unread: boolean;
  readonly isOpen: boolean;
  readonly person: Person;
}

function pinContent(app: App, thread: RoomThread, { x, y, unread, isOpen, person }: Pin): TemplateResult {
  const label = app.language.text(unread ? 'pinUnread' : 'pin', { name: person.name, text: plainText(app, thread.comments[0], 80) });
  return html`<button type="button" class="pin ${isOpen ? 'open' : ''} ${thread.resolved ? 'resolved' : ''} ${thread.pending === 'create' ? 'pending' : ''}" part="pin" ${place(x, y)} data-thread=${thread.id}
    aria-label=${label} aria-expanded=${String(isOpen)} @click=${() => (isOpen ? app.close() : app.openThread(thread.id))}>
    ${thread.resolved ? html`<span class="avatar">${icon('check')}</span>` : avatar(person)}${unread ? html`<span class="dot"></span>` : nothing}
  </button>`;
}

function clusterPin(app: App, { ids, x, y }: Cluster, threads: ReadonlyMap<string, RoomThread>): TemplateResult {
  const unread = ids.some((id) => {
    const thread = threads.get(id);
    return thread !== undefined && app.isUnread(thread);
  });
  const isOpen = app.view.cluster?.includes(ids[0] ?? '') ?? false;
  return html`<button type="button" class="pin cluster ${isOpen ? 'open' : ''}" part="pin cluster" ${place(x, y)} data-cluster=${ids[0] ?? ''} aria-label=${app.language.text('cluster', { count: ids.length })} aria-expanded=${String(isOpen)}
    @click=${() => app.show({ cluster: isOpen ? null : ids, open: null, composing: null })}><span class="avatar">${ids.length}</span>${unread ? html`<span class="dot"></span>` : nothing}</button>`;
}
