import { BatchQueue } from '../../lib/concurrency/batch-queue.ts';
import { MergeQueue } from '../../lib/concurrency/merge-queue.ts';
import {
  type Announcement,
  type Bus,
  laterPosition,
  type Listening,
  MAX_ANNOUNCED,
  MAX_WAITING,
  type Publication,
} from '../../ports/bus.ts';

/** The messages that the bus of a worker and the relay in the primary exchange. */
export type BusMessage =
  | {
      readonly type: 'announce';
      readonly data: { readonly streams: readonly (readonly [stream: string, seq: number | null])[] | null };
    }
  | { readonly type: 'publish'; readonly data: { readonly publications: readonly Publication[] } }
  /** Worker to primary: what it listens to. */
  | { readonly type: 'listens'; readonly data: Listening }
  /** Primary to worker: what any other process listens to. */
  | { readonly type: 'peers'; readonly data: Listening };

/** The part of a worker's channel to the primary that the bus uses. The channel carries messages of other types too. */
interface Channel {
  /** @param sent called once the message has left this process or was dropped */
  send(message: BusMessage, sent: () => void): void;
  onMessage(listener: (message: { readonly type: string; readonly data: unknown }) => void): () => void;
}

/**
 * Makes a bus over the channel to the primary, which relays. At most one announcement is being sent at a time:
 * positions announced meanwhile are merged into one after it, so a slow primary costs little memory. Publications are
 * sent in batches, one at a time as well. What no other process listens to is not sent: a message to the primary costs
 * as much as a few comments. Announcements made while no other process listens are replaced by one null announcement
 * when one starts listening.
 */
export function ipcBus(channel: Channel): Bus {
  const announceListeners = new Set<(announcement: Announcement) => void>();
  const publishListeners = new Set<(publication: Publication) => void>();
  const batches = new BatchQueue<Publication>(
    (publications, sent) => channel.send({ type: 'publish', data: { publications } }, sent),
    lengthOf,
    MAX_WAITING,
  );
  const announcements = new MergeQueue<number | null>(
    (streams, sent) =>
      channel.send({ type: 'announce', data: { streams: streams === null ? null : [...streams] } }, sent),
    laterPosition,
    MAX_ANNOUNCED,
  );
  /** The messages that other processes listen to. Null before this process is on the relay: then everything is sent. */
  let others: Listening | null = null;
  /** Whether anything was announced while nobody listened. */
  let unsent = false;
  const sendListening = (): void => {
    // The relay knows nothing of what was sent to the primary before.
    if (others !== null)
      channel.send(
        {
          type: 'listens',
          data: { announcements: announceListeners.size > 0, publications: publishListeners.size > 0 },
        },
        () => {},
      );
  };

  channel.onMessage((message) => {
    // Messages of other types match none of the cases.
    const { type, data } = message as BusMessage;
    if (type === 'announce') {
      const announcement = data.streams === null ? null : new Map(data.streams);
      for (const listener of announceListeners) listener(announcement);
    }
    if (type === 'publish')
      for (const publication of data.publications) for (const listener of publishListeners) listener(publication);
    if (type === 'peers') {
      const isNew = others === null;
      others = data;
      if (isNew) sendListening();
      if (!data.announcements || !unsent) return;
      unsent = false;
      announcements.add(null);
    }
  });

  return {
    announce(announcement) {
      if (others?.announcements ?? true) announcements.add(announcement);
      else if (announcement === null || announcement.size > 0) unsent = true;
    },
    onAnnounce: (listener) => subscribe(announceListeners, listener, sendListening),
    publish(publication) {
      if (others?.publications ?? true) batches.add(publication);
    },
    onPublish: (listener) => subscribe(publishListeners, listener, sendListening),
  };
}

/** Adds a listener, and calls `onChange` when there is a first one, or none any more. */
function subscribe<T>(listeners: Set<T>, listener: T, onChange: () => void): () => void {
  listeners.add(listener);
  if (listeners.size === 1) onChange();
  return () => {
    if (listeners.delete(listener) && listeners.size === 0) onChange();
  };
}

const lengthOf = ({ topic, text }: Publication): number => topic.length + text.length;
