import type { TemplatedApp } from 'uWebSockets.js';
import { holdsFileUrls, withFileUrls } from '../../domain/files/file-urls.ts';
import { epochOf, streamOf } from '../../domain/events/streams.ts';
import type { Environment } from '../../model/environment.ts';
import { wireText } from '../../net/wire-text.ts';
import { roomOfEvent } from '../../model/event.ts';
import { inScope, type RoomScope } from '../../model/room.ts';
import type { Store, StoredEvent } from '../../ports/store.ts';
import type { Connection } from '../session/connection.ts';
import type { SocketLimits } from '../socket/socket-writer.ts';
import { seqFrame } from '../socket/protocol.ts';

/** Connections of one environment that see the same rooms and know the server by the same address: one native topic, one publish an event. */
export interface FeedChannel {
  readonly topic: string;
  readonly rooms: RoomScope;
  /** As `Line.baseUrl`. */
  readonly baseUrl: string;
  readonly key: string;
  members: number;
  /** Whether the last event was of a room that this channel does not see. */
  skipped: boolean;
  /** When something was last published, by `LineTerms.now`. */
  publishedAt: number;
}

/**
 * The live events of one environment in this worker. `delivered` is the position up to which every channel has
 * everything; a connection enters a channel in the very turn in which its own position equals it, so nothing is missed
 * and nothing comes twice.
 */
export class Feed {
  /** As of the last look: settings and name may have changed since, id and stream never do. */
  environment: Environment;
  /** The name of its stream in the store. */
  readonly stream: string;
  /** What clients know its stream by. */
  readonly epoch: string;
  /** Resolves once `delivered` is known; rejects when the store can't tell. */
  readonly ready: Promise<void>;
  /** Every authenticated connection of the environment, caught up or not. */
  readonly members = new Set<Connection>();
  readonly #hub: Hub;
  readonly #channels = new Map<string, FeedChannel>();
  /** Resumed from a position that this worker has not seen yet: another one is ahead. */
  readonly #ahead = new Set<Connection>();
  #delivered = -1;
  #seenEarly = 0;
  #unchecked = 0;

  constructor(hub: Hub, environment: Environment) {
    this.#hub = hub;
    this.environment = environment;
    this.stream = streamOf(environment);
    this.epoch = epochOf(hub.store, environment);
    this.ready = hub.store.lastSeq(this.stream).then((seq) => {
      this.#delivered = Math.max(seq, this.#seenEarly);
    });
    this.ready.catch(() => undefined);
  }

  get delivered(): number {
    return this.#delivered;
  }

  join(connection: Connection): void {
    this.members.add(connection);
  }

  leave(connection: Connection): void {
    this.#detach(connection);
    this.members.delete(connection);
    if (this.members.size === 0) this.#hub.forget(this);
  }

  /** Puts a connection into its channel. Its `position` must not be less than `delivered`. */
  attach(connection: Connection): void {
    if (!connection.writer.isOpen) return;
    if (connection.position > this.#delivered) {
      this.#ahead.add(connection);
      return;
    }
    const channel = this.#channelOf(connection.rooms, connection.writer.baseUrl);
    channel.members++;
    connection.channel = channel;
    connection.writer.subscribe(channel.topic);
  }

  /** Gives a connection other rooms, from the next event on. */
  rescope(connection: Connection, rooms: RoomScope): void {
    const settled = connection.channel !== null || this.#ahead.has(connection);
    if (connection.channel !== null) connection.position = this.#delivered;
    this.#detach(connection);
    connection.rooms = rooms;
    if (settled) this.attach(connection);
  }

  /** Hands on the next event of the log. */
  deliver(event: StoredEvent): void {
    if (this.#delivered < 0) {
      this.#seenEarly = event.seq;
      return;
    }
    if (event.seq <= this.#delivered) return;
    this.#delivered = event.seq;
    this.#publish(event);
    for (const connection of this.#ahead) {
      if (connection.position > event.seq) continue;
      this.#ahead.delete(connection);
      this.attach(connection);
    }
    this.#watchBacklogs(event.text.length);
  }

  /** Tells channels that skipped events where the log stands. Called at most once a second. */
  mark(): void {
    for (const channel of this.#channels.values()) {
      if (!channel.skipped) continue;
      channel.skipped = false;
      const frame = seqFrame(this.#delivered);
      this.#send(channel, frame, frame);
    }
  }

  #publish(event: StoredEvent): void {
    const holdsFiles = holdsFileUrls(event.text);
    const encoded = wireText(event.text);
    let room: string | null | undefined;
    for (const channel of this.#channels.values()) {
      if (channel.rooms !== null) room ??= roomOfEvent(event.text);
      channel.skipped = channel.rooms !== null && room !== null && room !== undefined && !inScope(channel.rooms, room);
      if (channel.skipped) continue;
      const text = holdsFiles ? withFileUrls(event.text, channel.baseUrl) : event.text;
      this.#send(channel, text, holdsFiles ? wireText(text) : encoded);
    }
  }

  /** `encoded` is `text` as `wireText` gives it. */
  #send(channel: FeedChannel, text: string, encoded: string | Uint8Array): void {
    channel.publishedAt = this.#hub.limits.now;
    this.#hub.limits.meter?.sent(text, channel.members);
    this.#hub.app.publish(channel.topic, encoded, false, false);
  }

  /** A publish tells nobody about slow sockets, so they are looked for whenever a part of the limit was published. */
  #watchBacklogs(length: number): void {
    this.#unchecked += length;
    if (this.#unchecked * 8 < this.#hub.limits.maxBacklog) return;
    this.#unchecked = 0;
    for (const connection of this.members) connection.writer.checkBacklog();
  }

  #channelOf(rooms: RoomScope, baseUrl: string): FeedChannel {
    const key = `${baseUrl} ${rooms === null ? '' : JSON.stringify(rooms)}`;
    let channel = this.#channels.get(key);
    if (channel === undefined) {
      channel = { topic: this.#hub.nextTopic(), rooms, baseUrl, key, members: 0, skipped: false, publishedAt: 0 };
      this.#channels.set(key, channel);
    }
    return channel;
  }

  #detach(connection: Connection): void {
    this.#ahead.delete(connection);
    const channel = connection.channel;
    if (channel === null) return;
    connection.channel = null;
    connection.writer.unsubscribe(channel.topic);
    if (--channel.members === 0) this.#channels.delete(channel.key);
  }
}

/** Delivers the committed events of every environment to the sockets of this worker. */
export class Hub {
  readonly app: TemplatedApp;
  readonly store: Store;
  readonly limits: SocketLimits;
  /** By the names of their streams. */
  readonly feeds = new Map<string, Feed>();
  readonly #stop: () => void;
  #topics = 0;

  constructor(app: TemplatedApp, store: Store, limits: SocketLimits) {
    this.app = app;
    this.store = store;
    this.limits = limits;
    this.#stop = store.follow((stream, event) => {
      if (event !== null) this.feeds.get(stream)?.deliver(event);
    });
  }

  /** The feed of an environment. Whoever takes it joins it in the same turn. */
  feed(environment: Environment): Feed {
    const stream = streamOf(environment);
    let feed = this.feeds.get(stream);
    if (feed === undefined) {
      feed = new Feed(this, environment);
      this.feeds.set(stream, feed);
    }
    return feed;
  }

  forget(feed: Feed): void {
    if (this.feeds.get(feed.stream) === feed) this.feeds.delete(feed.stream);
  }

  /** A topic name that was never used in this process. */
  nextTopic(): string {
    return `feed/${++this.#topics}`;
  }

  /** Stops following the log. */
  stop(): void {
    this.#stop();
  }
}
