import { readEvents } from '../../domain/events/read-events.ts';
import { epochOf, streamOf } from '../../domain/events/streams.ts';
import { isVisibleTo } from '../../domain/events/visibility.ts';
import { withFileUrls } from '../../domain/files/file-urls.ts';
import { yieldToEventLoop } from '../../lib/concurrency/event-loop.ts';
import { Semaphore } from '../../lib/concurrency/semaphore.ts';
import type { Environment } from '../../model/environments/environment.ts';
import type { Store, StoredEvent } from '../../ports/store.ts';
import { seqFrame } from '../socket/protocol.ts';
import { SLOW_CONSUMER } from '../socket/socket-writer.ts';
import type { Feed, FeedSubscriber } from './feed.ts';
import { MAX_RESUME_GAP, type ResumePoint } from './resume-point.ts';

/**
 * Events read from the log at a time, in number and characters: about as much as is sent before the client must have
 * read some of it.
 */
const PAGE = { limit: 100, maxChars: 256 * 1024 };

/**
 * Bounds the pages that are in memory when many clients reconnect at once: 32 per process, so N times as many in N
 * processes, each of which has memory of its own.
 */
const reads = new Semaphore(32);

/**
 * Whether every event missed since `point` can be replayed: same epoch, still kept, and at most `MAX_RESUME_GAP`
 * events.
 */
export async function isRecoverable(store: Store, environment: Environment, point: ResumePoint): Promise<boolean> {
  if (point.epoch !== epochOf(store, environment)) return false;
  const stream = streamOf(environment);
  const [oldest, last] = await Promise.all([store.oldestSeq(stream), store.lastSeq(stream)]);
  return point.seq <= last && point.seq >= oldest - 1 && last - point.seq <= MAX_RESUME_GAP;
}

/**
 * Sends a subscriber every event from its `position` up to `feed.delivered`, no faster than the client reads, then
 * attaches it to the feed in the event loop iteration in which the two positions are equal. Closes the socket with 1013
 * if the log no longer holds an event that the client lacks. Rejects if the store cannot be read.
 */
export async function catchUp(store: Store, feed: Feed, subscriber: FeedSubscriber): Promise<void> {
  const { writer } = subscriber;
  let endsWithSkipped = false;
  while (writer.isOpen && subscriber.position < feed.delivered) {
    if (!writer.keepsUp) {
      await writer.drained();
      continue;
    }
    await yieldToEventLoop();
    const events = await reads.run(() => readEvents(store, feed.environment, subscriber.position, PAGE));
    if (!writer.isOpen) return;
    if (events[0]?.seq !== subscriber.position + 1) {
      writer.close(SLOW_CONSUMER.code, SLOW_CONSUMER.reason);
      return;
    }
    endsWithSkipped = sendPage(subscriber, events);
  }
  if (endsWithSkipped) writer.send(seqFrame(subscriber.position));
  feed.attach(subscriber);
}

/**
 * Sends the visible events of a page until the client is full. Returns whether the last events consumed were invisible
 * to it.
 */
function sendPage(subscriber: FeedSubscriber, events: readonly StoredEvent[]): boolean {
  const { writer } = subscriber;
  const { userId, role, rooms } = subscriber;
  const viewer = { userId, moderates: role === 'moderator', rooms };
  const visible = events.filter(({ text }) => isVisibleTo(viewer, text, 'shown'));
  const sent = writer.sendUntilFull(visible.map((event) => withFileUrls(event.text, writer.baseUrl)));
  const last = sent === visible.length ? events.at(-1) : visible[sent - 1];
  if (last !== undefined) subscriber.position = last.seq;
  return last !== visible[sent - 1];
}
