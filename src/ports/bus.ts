import type { Growth } from './store.ts';

/** A message to the other processes of a cluster that have subscribed to its topic. */
export interface Publication {
  readonly topic: string;
  readonly text: string;
}

/** A subscription to a topic. */
export interface Subscription {
  /**
   * Resolves once what other processes publish from then on arrives, or the subscription is stopped. Never rejects.
   * Pending for as long as the others cannot be reached: bound the time that anybody waits for it.
   */
  readonly ready: Promise<void>;
  /** Ends the subscription: its listener is not called any more. No effect if it has ended. */
  stop(): void;
}

/** The streams that have grown, with their last positions; null if any stream may have grown. */
export type Announcement = Growth | null;

/** Whether a value that was received is a stream with its last position, null for an end, as announcements carry them. */
export function isStreamPosition(value: unknown): value is [stream: string, seq: number | null] {
  if (!Array.isArray(value)) return false;
  const [stream, seq] = value as unknown[];
  return typeof stream === 'string' && (seq === null || typeof seq === 'number');
}

/**
 * The Bus carries announcements and publications between the processes of a cluster; a process does not receive its
 * own. An announcement says which event streams have grown by flushed commits, and how far, so that the others look for
 * the events (`Store.poll`). Announcements may be lost, repeated and reordered: the store has the truth, and every
 * process also polls it periodically. A publication is about nothing that is stored. It has a topic, such as a room, and
 * reaches only the processes that have subscribed to it, so that a process need not hear what happens in rooms that none
 * of its sockets is in. It arrives at most once, and the publications of one process on one topic arrive in its order.
 * `test/conformance/bus.ts` asserts every sentence below for every adapter.
 */
export interface Bus {
  /**
   * Announces to every other process which streams this one has made grow (`Store.onFlushed`). Calls within one event
   * loop iteration are sent as one, with the highest position of each stream, or its end. If more than `MAX_ANNOUNCED`
   * streams wait to be sent, null is sent in their place. An announcement of no stream is not sent.
   */
  announce(announcement: Announcement): void;
  /**
   * Calls `listener`, which must not throw, with what other processes announce: each stream that they have named, or
   * null. Announcements that arrive together may be merged in the same way. A listener may ignore streams that it does
   * not follow. Returns a function that unsubscribes it.
   */
  onAnnounce(listener: (announcement: Announcement) => void): () => void;

  /**
   * Sends a publication to every other process that has subscribed to its topic. It is lost if it would make more than
   * `MAX_WAITING` characters wait to be sent.
   */
  publish(publication: Publication): void;
  /**
   * Calls `listener`, which must not throw, with the texts that other processes publish on a topic. What they publish
   * before `ready` resolves may be missed.
   */
  subscribe(topic: string, listener: (text: string) => void): Subscription;

  /**
   * Whether what this process sends leaves it, and what others send arrives, as far as it knows. Absent where nothing
   * but the end of a process is between them, or where shared memory fails with it.
   */
  readonly isWorking?: boolean;
}

/** Which messages of the bus somebody listens to. An adapter need not send the others. */
export interface Listening {
  readonly announcements: boolean;
  /** Whether it subscribes to topics, now or later. */
  readonly publications: boolean;
}

/** Maximum number of streams that may wait to be announced from one process to the next. */
export const MAX_ANNOUNCED = 64;

/** Maximum number of characters, of the topics and texts of publications, that may wait to be sent from one process to the next. */
export const MAX_WAITING = 8 * 1024 * 1024;

/** The position to announce in place of two positions of one stream: the end, or else the higher one. */
export function laterPosition(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : Math.max(one, other);
}
