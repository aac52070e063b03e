import { html, nothing, type TemplateResult } from 'lit';
import { guard } from 'lit/directives/guard.js';
import { repeat } from 'lit/directives/repeat.js';
import type { Placement } from '../anchoring/tracker.ts';
import type { PinLayer } from '../pins/pin-layer.ts';
import type { App } from '../core/app.ts';
import type { Person } from '../core/people.ts';
import type { Cluster } from '../pins/cluster.ts';
import type { RoomThread } from '../../client/room/snapshot.ts';
import { avatar } from './avatar.ts';
import { plainText } from './body.ts';
import { icon } from './icons.ts';

/**
 * The pins on the page. Resolved threads have one only while they are open or the panel lists them.
 *
 * @param layer arranges them, and places them once they are rendered
 * @param rtl whether text runs from right to left
 */
export function pinsView(
  app: App,
  placements: ReadonlyMap<string, Placement>,
  layer: PinLayer,
  rtl: boolean,
): TemplateResult {
  const threads = new Map(app.threads.map((thread) => [thread.id, thread]));
  const open = app.view.open?.threadId ?? '';
  const { hidesPins } = app.view;
  const resolved = showsResolved(app);
  const ids = [...placements].flatMap(([id, { state }]) => {
    const thread = threads.get(id);
    if (state !== 'shown' || thread === undefined) return [];
    return id === open || (!hidesPins && (!thread.resolved || resolved)) ? [id] : [];
  });
  const clusters = layer.arrange(ids, open, placements, rtl);
  // All pins are one stop of the Tab key: the one that had the focus last, or the first.
  const stop = clusters.find(({ ids }) => ids[0] === app.view.pin)?.ids[0] ?? clusters[0]?.ids[0] ?? '';
  return html`${repeat(
    clusters,
    ({ ids }) => ids[0],
    (cluster) =>
      cluster.ids.length === 1 ? pin(app, cluster, threads, stop) : clusterPin(app, cluster, threads, stop),
  )}`;
}

function showsResolved({ view }: App): boolean {
  return view.panel && view.filter !== 'open';
}

function pin(
  app: App,
  { ids }: Cluster,
  threads: ReadonlyMap<string, RoomThread>,
  stop: string,
): TemplateResult | typeof nothing {
  const thread = threads.get(ids[0] ?? '');
  if (thread === undefined) return nothing;
  const unread = app.isUnread(thread);
  const isOpen = app.view.open?.threadId === thread.id;
  const person = app.person(thread.userId);
  // A page with hundreds of pins renders with every event, of which most concern none of them.
  const isStop = thread.id === stop;
  return html`${guard([thread, unread, isOpen, isStop, person, app.language], () => pinContent(app, thread, { unread, isOpen, isStop, person }))}`;
}

interface Pin {
  readonly unread: boolean;
  readonly isOpen: boolean;
  /** Whether the Tab key stops at it. */
  readonly isStop: boolean;
  readonly person: Person;
}

function pinContent(app: App, thread: RoomThread, { unread, isOpen, isStop, person }: Pin): TemplateResult {
  const label = app.language.text(unread ? 'pinUnread' : 'pin', {
    name: person.name,
    text: plainText(app, thread.comments[0], 80),
  });
  return html`<button
    type="button"
    class="pin ${isOpen ? 'open' : ''} ${thread.resolved ? 'resolved' : ''} ${thread.pending === 'create' ? 'pending' : ''}"
    part="pin"
    data-thread=${thread.id}
    tabindex=${isStop ? 0 : -1}
    aria-label=${label}
    aria-expanded=${String(isOpen)}
    @click=${() => (isOpen ? app.close() : app.openThread(thread.id))}
  >
    ${thread.resolved ? html`<span class="avatar">${icon('check')}</span>` : avatar(person)}${unread ? html`<span class="dot"></span>` : nothing}
  </button>`;
}

function clusterPin(
  app: App,
  { ids }: Cluster,
  threads: ReadonlyMap<string, RoomThread>,
  stop: string,
): TemplateResult {
  const unread = ids.some((id) => {
    const thread = threads.get(id);
    return thread !== undefined && app.isUnread(thread);
  });
  const isOpen = app.view.cluster?.includes(ids[0] ?? '') ?? false;
  return html`<button
    type="button"
    class="pin cluster ${isOpen ? 'open' : ''}"
    part="pin cluster"
    data-cluster=${ids[0] ?? ''}
    tabindex=${ids[0] === stop ? 0 : -1}
    aria-label=${app.language.text('cluster', { count: ids.length })}
    aria-expanded=${String(isOpen)}
    @click=${() => app.show({ cluster: isOpen ? null : ids, open: null, composing: null })}
  >
    <span class="avatar">${ids.length}</span>${unread ? html`<span class="dot"></span>` : nothing}
  </button>`;
}

/** Notes which pin has the focus. */
export function onPinFocus(app: App, event: FocusEvent): void {
  const { thread, cluster } = (event.target as HTMLElement).dataset;
  const pin = thread ?? cluster;
  if (pin !== undefined && pin !== app.view.pin) app.show({ pin });
}

/** Moves the focus among the pins with the arrow keys, from the top of the page to its end. */
export function onPinKey(event: KeyboardEvent): void {
  const forward = getComputedStyle(event.currentTarget as HTMLElement).direction === 'rtl' ? 'ArrowLeft' : 'ArrowRight';
  const keys = [forward, 'ArrowDown', 'Home', 'End', 'ArrowUp', forward === 'ArrowLeft' ? 'ArrowRight' : 'ArrowLeft'];
  const key = keys.indexOf(event.key);
  if (key < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const pins = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('.pin')].map((pin) => ({
    pin,
    box: pin.getBoundingClientRect(),
  }));
  pins.sort((a, b) => a.box.top - b.box.top || a.box.left - b.box.left);
  const at = pins.findIndex(({ pin }) => pin === event.target);
  const next = [at + 1, at + 1, 0, -1, at - 1, at - 1][key] ?? 0;
  pins.at(next % pins.length)?.pin.focus();
}
