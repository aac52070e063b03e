import { BatchQueue } from '../../lib/concurrency/batch-queue.ts';
import { MergeQueue } from '../../lib/concurrency/merge-queue.ts';
import { randomSecret } from '../../lib/ids.ts';
import {
  type Announcement,
  type Bus,
  laterPosition,
  MAX_ANNOUNCED,
  MAX_WAITING,
  type Publication,
  type Subscription,
} from '../../ports/bus.ts';
import type { TopicChanges } from '../../ports/bus-messages.ts';
import { announcementText, readAnnouncement, readTexts } from '../ipc/heard-messages.ts';
import { Topics } from '../ipc/topics.ts';
import type { Connection } from './connection.ts';
import { Link } from './link.ts';

/**
 * A bus by publish and subscribe of a Redis or Valkey. It publishes over one connection and hears over another one.
 * While the server cannot be reached, publications and announcements are lost; afterwards every listener gets null: any
 * stream may have grown.
 */
export class RedisBus implements Bus {
  /** Whom messages are from: a process receives its own too, and drops them. */
  readonly #id = randomSecret(9);
  readonly #commands: Link;
  readonly #subscriber: Link;
  readonly #channels: { readonly announce: string; readonly beacon: string; readonly topic: string };
  readonly #announceListeners = new Set<(announcement: Announcement) => void>();
  readonly #topics = new Topics((changes) => void this.#change(changes));
  readonly #announcements: MergeQueue<number | null>;
  readonly #batches: BatchQueue<Publication>;
  readonly #timer: NodeJS.Timeout;
  /** Whether an announcement could not be sent. */
  #unsent = false;
  #wasUp = false;
  /** The number of the last beacon that was sent, and of the last one that was heard. */
  #beacons = { sent: 0, heard: 0 };

  /**
   * @param commands the connection to publish over
   * @param connect makes a connection to hear over
   * @param tag what the names of all channels begin with
   * @param beaconMs how often it publishes something for itself. If it has not heard that by the next time, it connects
   *   again: after a failover, the connection that hears may have stayed at a server that nobody publishes to.
   */
  constructor(commands: Link, connect: () => Promise<Connection>, tag: string, beaconMs: number) {
    this.#commands = commands;
    this.#channels = { announce: `${tag}:a`, beacon: `${tag}:i:${this.#id}`, topic: `${tag}:p:` };
    this.#subscriber = new Link(
      async () => {
        const connection = await connect();
        await connection.subscribe([this.#channels.announce, this.#channels.beacon], this.#receive);
        return connection;
      },
      (error) => {
        if (error === null) this.#onUp();
      },
    );
    this.#announcements = new MergeQueue<number | null>(
      (streams, sent) => void this.#announce(streams).finally(sent),
      laterPosition,
      MAX_ANNOUNCED,
    );
    this.#batches = new BatchQueue<Publication>(
      (publications, sent) => void this.#publish(publications).finally(sent),
      ({ topic, text }) => topic.length + text.length,
      MAX_WAITING,
    );
    this.#timer = setInterval(() => void this.#sendBeacon(), beaconMs).unref();
  }

  /** Connects. Rejects if that fails; afterwards connections are replaced whenever they are lost. */
  async start(): Promise<void> {
    await this.#subscriber.start();
  }

  announce(announcement: Announcement): void {
    this.#announcements.add(announcement);
  }

  onAnnounce(listener: (announcement: Announcement) => void): () => void {
    this.#announceListeners.add(listener);
    return () => void this.#announceListeners.delete(listener);
  }

  publish(publication: Publication): void {
    this.#batches.add(publication);
  }

  subscribe(topic: string, listener: (text: string) => void): Subscription {
    return this.#topics.subscribe(topic, listener);
  }

  /** Called when the connection to publish over was replaced. */
  onCommandsUp(): void {
    if (this.#unsent) this.announce(null);
    this.#unsent = false;
  }

  /** Ends the connection that hears. */
  close(): void {
    clearInterval(this.#timer);
    this.#subscriber.close();
  }

  #onUp(): void {
    this.#beacons = { sent: 0, heard: 0 };
    this.#topics.connect();
    // What was announced while there was no connection is not heard any more.
    if (this.#wasUp) for (const listener of this.#announceListeners) listener(null);
    this.#wasUp = true;
  }

  readonly #receive = (message: string, channel: string): void => {
    if (channel === this.#channels.beacon) {
      this.#beacons.heard = Number(message);
      return;
    }
    const space = message.indexOf(' ');
    if (message.slice(0, space) === this.#id) return;
    const text = message.slice(space + 1);
    if (channel === this.#channels.announce) {
      const announcement = readAnnouncement(text);
      for (const listener of this.#announceListeners) listener(announcement);
      return;
    }
    const topic = channel.slice(this.#channels.topic.length);
    for (const published of readTexts(text)) this.#topics.receive(topic, published);
  };

  /** A failure means that the connection is lost: the next one begins with all topics. */
  async #change({ id, subscribed, unsubscribed }: TopicChanges): Promise<void> {
    const connection = this.#subscriber.current;
    const channelsOf = (topics: readonly string[]): string[] => topics.map((topic) => this.#channels.topic + topic);
    try {
      if (unsubscribed.length > 0) await connection?.unsubscribe(channelsOf(unsubscribed), this.#receive);
      if (subscribed.length > 0) await connection?.subscribe(channelsOf(subscribed), this.#receive);
      if (connection !== undefined) this.#topics.answered(id);
    } catch (error) {
      connection?.end(error);
    }
  }

  async #announce(streams: Announcement): Promise<void> {
    const sent = await this.#send([[this.#channels.announce, announcementText(streams)]]);
    if (!sent) this.#unsent = true;
  }

  async #publish(publications: readonly Publication[]): Promise<void> {
    const topics = new Map<string, string[]>();
    for (const { topic, text } of publications) {
      const texts = topics.get(topic);
      if (texts === undefined) topics.set(topic, [text]);
      else texts.push(text);
    }
    await this.#send([...topics].map(([topic, texts]) => [this.#channels.topic + topic, JSON.stringify(texts)]));
  }

  /** Returns whether the server has taken the messages. */
  async #send(messages: readonly (readonly [channel: string, text: string])[]): Promise<boolean> {
    try {
      const connection = await this.#commands.connection();
      await connection.publish(messages.map(([channel, text]) => [channel, `${this.#id} ${text}`]));
      return true;
    } catch {
      return false;
    }
  }

  async #sendBeacon(): Promise<void> {
    const { sent, heard } = this.#beacons;
    if (this.#subscriber.current === undefined || this.#commands.current === undefined) return;
    if (sent !== heard) return this.#subscriber.drop(new Error('this process does not hear itself'));
    this.#beacons.sent++;
    try {
      const connection = await this.#commands.connection();
      const heardBy = await connection.publish([[this.#channels.beacon, String(sent + 1)]]);
      if (heardBy === 0) this.#subscriber.drop(new Error('the server does not know this process'));
    } catch {
      // The connection that publishes is lost, and says nothing about the other one.
      this.#beacons.sent = this.#beacons.heard;
    }
  }
}
