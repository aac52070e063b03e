import { BatchQueue } from '../lib/concurrency/batch-queue.ts';
import { MergeQueue } from '../lib/concurrency/merge-queue.ts';
import { laterPosition, type Listening, MAX_ANNOUNCED, MAX_WAITING, type Publication } from '../ports/bus.ts';
import type { ProcessChannel } from './channel.ts';

/** A worker that takes part, with what the others sent it. */
interface Member {
  readonly channel: ProcessChannel;
  /** Publications of others that are being sent to it. */
  readonly publications: BatchQueue<Publication>;
  /** Announcements of others that are being sent to it. */
  readonly announcements: MergeQueue<number | null>;
  /** The messages that it listens to: everything, until it has said otherwise. */
  listens: Listening;
  /** The topics that it has subscribed to. */
  readonly topics: Set<string>;
  /** The last message to it about the others; null before the first one. */
  others: Listening | null;
}

/**
 * Passes the messages of each worker on to all others. Announcements: those of one event loop iteration are merged into
 * one for each worker, and never two are queued in one channel. Publications: those of one iteration are sent to each
 * worker as one message, and at most as many characters are queued as the bus allows. A worker receives what it listens
 * to, of the publications those on its topics, and learns what the others listen to, so that it need not send the rest.
 */
export class Relay {
  readonly #members = new Set<Member>();

  /** Adds a worker until its channel closes. */
  add(channel: ProcessChannel): void {
    const publications = new BatchQueue<Publication>(
      (items, sent) => channel.send({ type: 'publish', data: { publications: items } }, sent),
      sizeOf,
      MAX_WAITING,
    );
    const sendAnnouncement = (streams: ReadonlyMap<string, number | null> | null, sent: () => void): void =>
      channel.send({ type: 'announce', data: { streams: streams === null ? null : [...streams] } }, sent);
    const member: Member = {
      channel,
      publications,
      announcements: new MergeQueue(sendAnnouncement, laterPosition, MAX_ANNOUNCED),
      listens: { announcements: true, publications: true },
      topics: new Set(),
      others: null,
    };
    this.#members.add(member);
    channel.onMessage((message) => {
      if (message.type === 'listens') {
        member.listens = message.data;
        this.#sendPeers();
      }
      if (message.type === 'topics') {
        const { id, subscribed, unsubscribed } = message.data;
        for (const topic of subscribed) member.topics.add(topic);
        for (const topic of unsubscribed) member.topics.delete(topic);
        channel.send({ type: 'subscribed', data: { id } });
      }
      if (message.type === 'announce') this.#announce(member, message.data.streams);
      if (message.type === 'publish') this.#publish(member, message.data.publications);
    });
    channel.onClose(() => {
      this.#members.delete(member);
      this.#sendPeers();
    });
    this.#sendPeers();
  }

  /** Sends each worker what the others listen to, if that has changed. */
  #sendPeers(): void {
    for (const member of this.#members) {
      const listened = [...this.#members].filter((other) => other !== member).map(({ listens }) => listens);
      const others = {
        announcements: listened.some(({ announcements }) => announcements),
        publications: listened.some(({ publications }) => publications),
      };
      if (others.announcements === member.others?.announcements && others.publications === member.others.publications)
        continue;
      member.others = others;
      member.channel.send({ type: 'peers', data: others });
    }
  }

  #announce(from: Member, streams: readonly (readonly [stream: string, seq: number | null])[] | null): void {
    for (const member of this.#members)
      if (member !== from && member.listens.announcements) member.announcements.add(streams);
  }

  #publish(from: Member, publications: readonly Publication[]): void {
    for (const member of this.#members) {
      if (member === from || member.topics.size === 0) continue;
      for (const publication of publications)
        if (member.topics.has(publication.topic)) member.publications.add(publication);
    }
  }
}

const sizeOf = ({ topic, text }: Publication): number => topic.length + text.length;
