import { BatchQueue } from '../../lib/batch-queue.ts';
import { MergeQueue } from '../../lib/merge-queue.ts';
import { type Announcement, type Bus, laterPosition, MAX_ANNOUNCED, MAX_WAITING, type Publication } from '../../ports/bus.ts';

/** The messages that the bus of a worker and the relay in the primary exchange. */
export type BusMessage =
  | { readonly type: 'announce'; readonly data: { readonly streams: readonly (readonly [stream: string, seq: number | null])[] | null } }
  | { readonly type: 'publish'; readonly data: { readonly publications: readonly Publication[] } }
  /** The number of other processes on the bus. */
  | { readonly type: 'peers'; readonly data: { readonly count: number } };

/** What the bus uses of a worker's channel to the primary, which carries messages of other types too. */
interface Channel {
  /** @param sent called once the message has left this process or was dropped */
  send(message: BusMessage, sent: () => void): void;
  onMessage(listener: (message: { readonly type: string; readonly data: unknown }) => void): () => void;
}

/**
 * Makes a bus over the channel to the primary, which relays. At most one announcement is being sent at a time: positions
 * announced meanwhile are merged into one after it, so a slow primary costs little memory. Publications are sent in batches,
 * one at a time as well. While there is no other process nothing is sent: a message to the primary costs as much as a few
 * comments.
 */
export function ipcBus(channel: Channel): Bus {
  const announceListeners = new Set<(announcement: Announcement) => void>();
  const publishListeners = new Set<(publication: Publication) => void>();
  const batches = new BatchQueue<Publication>((publications, sent) => channel.send({ type: 'publish', data: { publications } }, sent), lengthOf, MAX_WAITING);
  const announcements = new MergeQueue<number | null>(
    (streams, sent) => channel.send({ type: 'announce', data: { streams: streams === null ? null : [...streams] } }, sent),
    laterPosition,
    MAX_ANNOUNCED,
  );
  let alone = false;
  /** Whether anything was announced while there was no other process. */
  let unsent = false;

  channel.onMessage((message) => {
    // Messages of other types match none of the cases.
    const { type, data } = message as BusMessage;
    if (type === 'announce') {
      const announcement = data.streams === null ? null : new Map(data.streams);
      for (const listener of announceListeners) listener(announcement);
    }
    if (type === 'publish') for (const publication of data.publications) for (const listener of publishListeners) listener(publication);
    if (type === 'peers') {
      alone = data.count === 0;
      if (alone || !unsent) return;
      unsent = false;
      announcements.add(null);
    }
  });

  return {
    announce(announcement) {
      if (!alone) announcements.add(announcement);
      else if (announcement === null || announcement.size > 0) unsent = true;
    },
    onAnnounce: (listener) => subscribe(announceListeners, listener),
    publish(publication) {
      if (!alone) batches.add(publication);
    },
    onPublish: (listener) => subscribe(publishListeners, listener),
  };
}

function subscribe<T>(listeners: Set<T>, listener: T): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const lengthOf = ({ topic, text }: Publication): number => topic.length + text.length;
