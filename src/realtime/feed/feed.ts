import { epochOf, streamOf } from '../../domain/events/streams.ts';
import { isRoomVisible } from '../../domain/events/visibility.ts';
import { containsFileUrls, withFileUrls } from '../../domain/files/file-urls.ts';
import type { Environment } from '../../model/environments/environment.ts';
import { receiverOfEvent, roomOfEvent } from '../../model/event.ts';
import type { RoomScope } from '../../model/room.ts';
import type { CoreApp } from '../../net/core.ts';
import { wireText } from '../../net/wire-text.ts';
import type { Store, StoredEvent } from '../../ports/store.ts';
import { BacklogCheck } from '../socket/backlog-check.ts';
import { seqFrame } from '../socket/protocol.ts';
import { SLOW_CONSUMER, type SocketLimits, type SocketWriter } from '../socket/socket-writer.ts';
import { MAX_RESUME_GAP } from './resume-point.ts';
import { type UserSocket, UserSockets } from './user-sockets.ts';

/**
 * Minimum delay, in milliseconds, before an audience is sent the position of an event in a room that it does not see.
 * `sendSkippedPositions` adds up to a second.
 */
const ROOM_POSITION_DELAY_MS = 0;
/** The same for an event that one user receives: each notification would otherwise send a frame to every socket. */
const USER_POSITION_DELAY_MS = 5_000;
/** An audience that is this many events behind receives the position earlier, so that its clients can still resume. */
const MAX_SKIPPED_EVENTS = MAX_RESUME_GAP / 2;

/**
 * Subscribers of one feed that see the same rooms and reach the server at the same address. They share a native topic,
 * so that an event is published once for all of them.
 */
export interface FeedAudience {
  readonly topic: string;
  readonly rooms: RoomScope;
  /** See `SocketWriter.baseUrl`. */
  readonly baseUrl: string;
  readonly key: string;
  members: number;
  /** Position of the last event or `seq` frame that was sent to this audience. */
  sentSeq: number;
  /**
   * When a `seq` frame must tell the clients that the audience skipped events after `sentSeq`, by `SocketLimits.now`;
   * Infinity if it skipped none.
   */
  positionDueAt: number;
  /** Time of the last publication, by `SocketLimits.now`. */
  publishedAt: number;
}

/** A socket that receives the events of a feed. */
export interface FeedSubscriber extends UserSocket {
  rooms: RoomScope;
  /** Position up to which the client has every event, while `audience` is null. */
  position: number;
  /** The audience that delivers its events once it has caught up; null before. */
  audience: FeedAudience | null;
}

/** What a feed needs of its worker. */
export interface FeedHost {
  readonly app: CoreApp;
  readonly store: Store;
  readonly limits: SocketLimits;
  /** Returns a topic name that was never used in this process. */
  nextTopic(): string;
  /** Called when the last subscriber has left. */
  forget(feed: Feed): void;
}

/**
 * The live events of one environment in this worker. Every audience has received all events up to `delivered`. A
 * subscriber enters an audience in the same event loop iteration in which its own position equals `delivered`, so it
 * neither misses an event nor receives one twice.
 */
export class Feed {
  /**
   * The environment as of the last check. Its settings and name may have changed since; its id and stream never change.
   */
  environment: Environment;
  /** Name of the stream in the store. */
  readonly stream: string;
  /** Epoch of the stream, as clients know it. */
  readonly epoch: string;
  /** Resolves once `delivered` is known; rejects if the store cannot be read. */
  readonly ready: Promise<void>;
  readonly #host: FeedHost;
  /** All subscribers, including those that have not caught up. */
  readonly #subscribers = new Set<FeedSubscriber>();
  readonly #audiences = new Map<string, FeedAudience>();
  /** The subscribers in audiences. */
  readonly #userSockets = new UserSockets();
  /**
   * Subscribers that resumed from a position beyond `delivered`, because another worker has read further in the log.
   */
  readonly #ahead = new Set<FeedSubscriber>();
  #delivered = -1;
  /** Last position delivered before `ready` resolved. */
  #seenEarly = 0;
  readonly #backlogs: BacklogCheck;

  constructor(host: FeedHost, environment: Environment) {
    this.#host = host;
    this.#backlogs = new BacklogCheck(host.limits, () => this.#writers());
    this.environment = environment;
    this.stream = streamOf(environment);
    this.epoch = epochOf(host.store, environment);
    this.ready = host.store.lastSeq(this.stream).then((seq) => {
      this.#delivered = Math.max(seq, this.#seenEarly);
    });
    this.ready.catch(() => undefined);
  }

  /** Position up to which every audience has received all events; -1 until `ready` resolves. */
  get delivered(): number {
    return this.#delivered;
  }

  /** Adds a subscriber. It receives nothing until `attach` is called. */
  join(subscriber: FeedSubscriber): void {
    this.#subscribers.add(subscriber);
  }

  /** Removes a subscriber. */
  leave(subscriber: FeedSubscriber): void {
    this.#detach(subscriber);
    this.#subscribers.delete(subscriber);
    if (this.#subscribers.size === 0) this.#host.forget(this);
  }

  /** Puts a subscriber into its audience. Its `position` must not be less than `delivered`. */
  attach(subscriber: FeedSubscriber): void {
    if (!subscriber.writer.isOpen) return;
    if (subscriber.position > this.#delivered) {
      this.#ahead.add(subscriber);
      return;
    }
    const audience = this.#audienceOf(subscriber.rooms, subscriber.writer.baseUrl);
    audience.members++;
    subscriber.audience = audience;
    subscriber.writer.subscribe(audience.topic);
    this.#userSockets.add(subscriber);
  }

  /** Changes the rooms that a subscriber sees, and applies its role, from the next event on. */
  rescope(subscriber: FeedSubscriber, rooms: RoomScope): void {
    const attached = subscriber.audience !== null || this.#ahead.has(subscriber);
    if (subscriber.audience !== null) subscriber.position = this.#delivered;
    this.#detach(subscriber);
    subscriber.rooms = rooms;
    if (attached) this.attach(subscriber);
  }

  /**
   * Delivers the next event of the log. An event that was delivered before is ignored. Sockets are closed with 1013 if
   * events before it have been deleted unseen: their clients reload.
   */
  deliver(event: StoredEvent): void {
    if (this.#delivered < 0) {
      this.#seenEarly = event.seq;
      return;
    }
    if (event.seq <= this.#delivered) return;
    if (event.seq > this.#delivered + 1) this.#closeOvertaken(event.seq);
    this.#delivered = event.seq;
    this.#publish(event);
    this.#attachAhead();
    this.#backlogs.published(event.text.length);
  }

  /** Sends a `seq` frame to the audiences that have skipped events for long enough. Called at most once a second. */
  sendSkippedPositions(): void {
    this.#userSockets.flush();
    for (const audience of this.#audiences.values()) {
      if (audience.positionDueAt === Number.POSITIVE_INFINITY) continue;
      if (audience.positionDueAt > this.#host.limits.now && this.#delivered - audience.sentSeq < MAX_SKIPPED_EVENTS)
        continue;
      const frame = seqFrame(this.#delivered);
      this.#send(audience, frame, frame);
    }
  }

  /**
   * Closes the sockets that have missed events before `next`, which this worker did not see before they were deleted:
   * it was stopped, or busy, for longer than they were kept. Sockets that are catching up notice it by themselves.
   */
  #closeOvertaken(next: number): void {
    for (const subscriber of this.#subscribers) {
      const isLive = subscriber.audience !== null || (this.#ahead.has(subscriber) && subscriber.position < next - 1);
      if (isLive) subscriber.writer.close(SLOW_CONSUMER.code, SLOW_CONSUMER.reason);
    }
    this.#delivered = next - 1;
    this.#attachAhead();
  }

  /** Puts the subscribers that resumed from `delivered` into their audiences. */
  #attachAhead(): void {
    for (const subscriber of this.#ahead) {
      if (subscriber.position > this.#delivered) continue;
      this.#ahead.delete(subscriber);
      this.attach(subscriber);
    }
  }

  #publish(event: StoredEvent): void {
    const receiver = receiverOfEvent(event.text);
    if (receiver !== null) {
      for (const audience of this.#audiences.values()) this.#skip(audience, USER_POSITION_DELAY_MS);
      if (receiver !== undefined) this.#userSockets.send(receiver, event.text);
      return;
    }
    this.#userSockets.flush();
    const hasFileUrls = containsFileUrls(event.text);
    const encoded = wireText(event.text);
    let room: string | null | undefined;
    for (const audience of this.#audiences.values()) {
      if (audience.rooms !== null) room ??= roomOfEvent(event.text);
      if (audience.rooms !== null && !isRoomVisible(audience.rooms, room ?? null, 'shown')) {
        this.#skip(audience, ROOM_POSITION_DELAY_MS);
        continue;
      }
      const text = hasFileUrls ? withFileUrls(event.text, audience.baseUrl) : event.text;
      this.#send(audience, text, hasFileUrls ? wireText(text) : encoded);
    }
  }

  #skip(audience: FeedAudience, withinMs: number): void {
    audience.positionDueAt = Math.min(audience.positionDueAt, this.#host.limits.now + withinMs);
  }

  /** Sends a frame that brings the audience up to `delivered`. `encoded` is `wireText(text)`. */
  #send(audience: FeedAudience, text: string, encoded: string | Uint8Array): void {
    audience.publishedAt = this.#host.limits.now;
    audience.sentSeq = this.#delivered;
    audience.positionDueAt = Number.POSITIVE_INFINITY;
    this.#host.limits.meter?.sent(text, audience.members);
    this.#host.app.publish(audience.topic, encoded, false, false);
  }

  *#writers(): Iterable<SocketWriter> {
    for (const { writer } of this.#subscribers) yield writer;
  }

  #audienceOf(rooms: RoomScope, baseUrl: string): FeedAudience {
    const key = `${baseUrl} ${rooms === null ? '' : JSON.stringify(rooms)}`;
    let audience = this.#audiences.get(key);
    if (audience === undefined) {
      audience = {
        topic: this.#host.nextTopic(),
        rooms,
        baseUrl,
        key,
        members: 0,
        sentSeq: this.#delivered,
        positionDueAt: Number.POSITIVE_INFINITY,
        publishedAt: 0,
      };
      this.#audiences.set(key, audience);
    }
    return audience;
  }

  #detach(subscriber: FeedSubscriber): void {
    this.#ahead.delete(subscriber);
    const { audience } = subscriber;
    if (audience === null) return;
    subscriber.audience = null;
    subscriber.writer.unsubscribe(audience.topic);
    this.#userSockets.delete(subscriber);
    if (--audience.members === 0) this.#audiences.delete(audience.key);
  }
}
