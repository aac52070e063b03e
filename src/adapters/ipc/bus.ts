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
import type { BusMessage } from '../../ports/bus-messages.ts';
import { Topics } from './topics.ts';

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
 *
 * @param subscribes whether the process may subscribe to topics: the others send publications if any process may
 */
export function ipcBus(channel: Channel, { subscribes = true }: { readonly subscribes?: boolean } = {}): Bus {
  const announceListeners = new Set<(announcement: Announcement) => void>();
  const topics = new Topics((changes) => channel.send({ type: 'topics', data: changes }, () => {}));
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
          data: { announcements: announceListeners.size > 0, publications: subscribes },
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
    if (type === 'publish') for (const { topic, text } of data.publications) topics.receive(topic, text);
    if (type === 'subscribed') topics.answered(data.id);
    if (type === 'peers') {
      const isNew = others === null;
      others = data;
      if (isNew) {
        sendListening();
        topics.connect();
      }
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
    onAnnounce(listener) {
      announceListeners.add(listener);
      if (announceListeners.size === 1) sendListening();
      return () => {
        if (announceListeners.delete(listener) && announceListeners.size === 0) sendListening();
      };
    },
    publish(publication) {
      if (others?.publications ?? true) batches.add(publication);
    },
    subscribe(topic, listener) {
      if (!subscribes) throw new Error('this process was to subscribe to no topic');
      return topics.subscribe(topic, listener);
    },
  };
}

const lengthOf = ({ topic, text }: Publication): number => topic.length + text.length;
