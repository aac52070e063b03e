import { BatchQueue } from '../lib/batch-queue.ts';
import { MAX_WAITING, type Publication } from '../ports/bus.ts';
import type { ProcessChannel } from './channel.ts';

/** A worker that takes part, with what the others sent it. */
interface Member {
  readonly channel: ProcessChannel;
  /** Publications of others that are being sent to it. */
  readonly publications: BatchQueue<Publication>;
  /** The highest position announced by others. */
  announcedPosition: number;
  /** The highest position sent to it. */
  sentPosition: number;
  /** A hint is in its channel and has not left this process yet. */
  sending: boolean;
}

/**
 * Passes the messages of each worker on to all others. Hints: at most one per event loop iteration and worker, and never
 * two queued in one channel. Publications: those of one iteration are sent to each worker as one message, and at most as
 * many characters are queued as the bus allows. Every worker is sent the number of the others, so that one that is alone
 * need not send anything.
 */
export class Relay {
  readonly #members = new Set<Member>();
  #scheduled = false;
  /** Adds a worker, until its channel closes. */
  /** Adds a worker until its channel closes. */
  add(channel: ProcessChannel): void {
    const publications = new BatchQueue<Publication>((items, sent) => channel.send({ type: 'publish', data: { publications: items } }, sent), sizeOf, MAX_WAITING);
    const member: Member = { channel, publications, announcedPosition: 0, sentPosition: 0, sending: false };
    this.#members.add(member);
    channel.onMessage((message) => {
      if (message.type === 'announce') this.#announce(member, message.data.position);
      if (message.type === 'publish') this.#publish(member, message.data.publications);
    });
    channel.onClose(() => {
      this.#members.delete(member);
      this.#sendPeerCounts();
    });
    this.#sendPeerCounts();
  }

  #sendPeerCounts(): void {
    for (const { channel } of this.#members) channel.send({ type: 'peers', data: { count: this.#members.size - 1 } });
  }

  #announce(from: Member, position: number): void {
    for (const member of this.#members) if (member !== from) member.announcedPosition = Math.max(member.announcedPosition, position);
    this.#scheduleHints();
  }

  #publish(from: Member, publications: readonly Publication[]): void {
    for (const member of this.#members) {
      if (member !== from) for (const publication of publications) member.publications.add(publication);
    }
  }

  #scheduleHints(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      for (const member of this.#members) if (member.announcedPosition > member.sentPosition && !member.sending) this.#sendHint(member);
    });
  }

  #sendHint(member: Member): void {
    member.sentPosition = member.announcedPosition;
    member.sending = true;
    member.channel.send({ type: 'announce', data: { position: member.sentPosition } }, () => {
      member.sending = false;
      if (member.announcedPosition > member.sentPosition) this.#scheduleHints();
    });
  }
}

const sizeOf = ({ topic, text }: Publication): number => topic.length + text.length;
