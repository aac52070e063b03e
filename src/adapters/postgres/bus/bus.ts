import { setTimeout as delay } from 'node:timers/promises';
import { BatchQueue } from '../../../lib/concurrency/batch-queue.ts';
import { MergeQueue } from '../../../lib/concurrency/merge-queue.ts';
import { randomSecret } from '../../../lib/ids.ts';
import {
  type Announcement,
  type Bus,
  laterPosition,
  MAX_ANNOUNCED,
  MAX_WAITING,
  type Publication,
} from '../../../ports/bus.ts';
import type { EngineOption } from '../../../ports/engine-error.ts';
import { announcementText, readAnnouncement, readPublications } from '../../ipc/heard-messages.ts';
import { Topics } from '../../ipc/topics.ts';
import { faultOf, openingError } from '../faults.ts';
import { Link } from '../link.ts';
import { parseTarget } from '../target.ts';
import { Listener, type ListenerBounds } from './listener.ts';
import { Notifier } from './notifier.ts';
import { Assembler, type MessageKind, payloadsOf } from './payloads.ts';
import { deafMessage, refusedMessage } from './troubles.ts';

/** How `openPostgresBus` opens a bus. */
export interface PostgresBusOptions {
  /** The option that has the URL, which messages name. */
  readonly option: EngineOption;
  /** `postgres://…` of the server itself: through a pooler in transaction mode nothing is heard. */
  readonly url: string;
  /** Whether the process may subscribe to topics; true when absent. Another one does not hear publications. */
  readonly subscribes?: boolean | undefined;
  /**
   * Called when notifications do not arrive any more, or are refused, with one line that says why and what that means,
   * and with null whenever they arrive.
   */
  readonly onTrouble?: ((message: string | null) => void) | undefined;
  /** Other bounds, for tests. */
  readonly bounds?: Partial<ListenerBounds> | undefined;
}

/** A bus with an end. */
export interface PostgresBus extends Bus {
  readonly isWorking: boolean;
  /** Whether what other processes send arrives. Otherwise only what the store looks for by itself is delivered. */
  readonly isHearing: boolean;
  /** Ends it, after what was sent before. Publish and announce nothing afterwards. */
  close(): Promise<void>;
}

const BOUNDS: ListenerBounds = { beaconMs: 20_000, deafMs: 10_000, retryDeafMs: 30_000 };
/** Milliseconds for which opening waits until notifications arrive. */
const OPEN_MS = 2_000;
/** Milliseconds before anything is sent after a failure. */
const PAUSE_MS = 500;

const GROWTH = 'collab_growth';
const TOPICS = 'collab_topics';

/**
 * Opens a bus by LISTEN and NOTIFY of a PostgreSQL, over two connections of this process: one that hears, and one that
 * sends, in transactions of their own. Throws an `EngineError`.
 *
 * A process hears what it sends itself, too, and drops it; whether it does shows that it hears anything at all. While
 * it does not, publications are lost, and new subscriptions are not ready. Afterwards every listener gets null: any
 * stream may have grown.
 */
export async function openPostgresBus(options: PostgresBusOptions): Promise<PostgresBus> {
  const { option, url, subscribes = true, onTrouble = () => {} } = options;
  const target = parseTarget(option, url);
  const sender = randomSecret(9);
  const notifier = new Notifier(new Link(target, 'collab bus'));
  const assembler = new Assembler();
  const announceListeners = new Set<(announcement: Announcement) => void>();
  /** Whether an announcement could not be sent. */
  let isBehind = false;
  let onFirst = (): void => {};
  const first = new Promise<void>((resolve) => (onFirst = resolve));

  /** Whether PostgreSQL has refused the last notifications. Those that were lost with a connection say nothing. */
  let isRefused = false;

  const send = async (channel: string, kind: MessageKind, text: string): Promise<void> => {
    try {
      await notifier.send(payloadsOf({ sender, kind, text }).map((payload) => ({ channel, payload })));
    } catch (error) {
      if (faultOf(error) === 'lost') throw error;
      if (!isRefused) onTrouble(refusedMessage(target, error));
      isRefused = true;
      throw error;
    }
    if (isRefused && listener.isHearing) onTrouble(null);
    isRefused = false;
    if (!isBehind) return;
    isBehind = false;
    announcements.add(null);
  };
  const pause = (): Promise<void> => delay(PAUSE_MS, undefined, { ref: false });
  const announcements = new MergeQueue<number | null>(
    (streams, sent) => {
      const failed = (): Promise<void> => {
        isBehind = true;
        return pause();
      };
      void send(GROWTH, 'announce', announcementText(streams)).catch(failed).then(sent);
    },
    laterPosition,
    MAX_ANNOUNCED,
  );
  const batches = new BatchQueue<Publication>(
    (publications, sent) => {
      const text = JSON.stringify(publications.map(({ topic, text }) => [topic, text]));
      void send(TOPICS, 'publish', text).catch(pause).then(sent);
    },
    ({ topic, text }) => topic.length + text.length,
    MAX_WAITING,
  );

  const topics: Topics = new Topics(({ id }) => {
    // Every publication arrives here, and is then matched with the subscriptions.
    if (listener.isHearing) topics.answered(id);
  });
  const receive = (payload: string): void => {
    if (payload.startsWith(`${sender} `)) return listener.heardOwn();
    const message = assembler.add(payload);
    if (message === null || message.kind === 'beacon') return;
    if (message.kind === 'publish') {
      for (const { topic, text } of readPublications(message.text)) topics.receive(topic, text);
      return;
    }
    const announcement = readAnnouncement(message.text);
    for (const told of announceListeners) told(announcement);
  };
  const listener = new Listener({
    target,
    channels: subscribes ? [GROWTH, TOPICS] : [GROWTH],
    bounds: { ...BOUNDS, ...options.bounds },
    sendBeacon: () => send(GROWTH, 'beacon', ''),
    onPayload: receive,
    onHearing: () => {
      assembler.clear();
      for (const told of announceListeners) told(null);
      topics.connect();
      onFirst();
      if (!isRefused) onTrouble(null);
    },
    onDeaf: (reason) => {
      onFirst();
      onTrouble(deafMessage(target, reason));
    },
  });

  try {
    await listener.start();
  } catch (error) {
    listener.close();
    await notifier.close();
    throw openingError(target, error);
  }
  await Promise.race([first, delay(OPEN_MS, undefined, { ref: false })]);

  return {
    announce: (announcement) => announcements.add(announcement),
    onAnnounce(told) {
      announceListeners.add(told);
      return () => void announceListeners.delete(told);
    },
    publish: (publication) => batches.add(publication),
    subscribe(topic, told) {
      if (!subscribes) throw new Error('this process was to subscribe to no topic');
      return topics.subscribe(topic, told);
    },
    get isHearing() {
      return listener.isHearing;
    },
    get isWorking() {
      return listener.isHearing && !isRefused;
    },
    async close() {
      listener.close();
      await notifier.close();
    },
  };
}
