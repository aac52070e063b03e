import { BatchQueue } from '../lib/batch-queue.ts';
import { MAX_WAITING, type Publication } from '../ports/bus.ts';
import type { ProcessChannel } from './channel.ts';

interface Member {
  readonly channel: ProcessChannel;
  /** What others published, on its way to it. */
  readonly publications: BatchQueue<Publication>;
  /** The highest position that others announced. */
  announced: number;
  /** The highest position that it was told. */
  told: number;
  /** A hint has been handed to the line and has not left yet. */
  underWay: boolean;
}

/**
 * Passes what one worker says on to all others. Hints: one a tick to each, and never two waiting in one line.
 * Publications: what came in a tick goes as one message to each, and as many characters may wait as the bus lets wait.
 * Every worker is told how many others there are: one that is alone needs to say nothing.
 */
export class Relay {
  readonly #members = new Set<Member>();
  #planned = false;

  /** Lets a worker take part until its line closes. */
  add(channel: ProcessChannel): void {
    const publications = new BatchQueue<Publication>((items, sent) => channel.send({ type: 'publish', data: { publications: items } }, sent), sizeOf, MAX_WAITING);
    const member: Member = { channel, publications, announced: 0, told: 0, underWay: false };
    this.#members.add(member);
    channel.onMessage((message) => {
      if (message.type === 'announce') this.#announce(member, message.data.position);
      if (message.type === 'publish') this.#publish(member, message.data.publications);
    });
    channel.onClose(() => {
      this.#members.delete(member);
      this.#tellCompany();
    });
    this.#tellCompany();
  }

  #tellCompany(): void {
    for (const { channel } of this.#members) channel.send({ type: 'company', data: { others: this.#members.size - 1 } });
  }

  #announce(from: Member, position: number): void {
    for (const member of this.#members) if (member !== from) member.announced = Math.max(member.announced, position);
    this.#plan();
  }

  #publish(from: Member, publications: readonly Publication[]): void {
    for (const member of this.#members) {
      if (member !== from) for (const publication of publications) member.publications.add(publication);
    }
  }

  #plan(): void {
    if (this.#planned) return;
    this.#planned = true;
    setImmediate(() => {
      this.#planned = false;
      for (const member of this.#members) if (member.announced > member.told && !member.underWay) this.#tell(member);
    });
  }

  #tell(member: Member): void {
    member.told = member.announced;
    member.underWay = true;
    member.channel.send({ type: 'announce', data: { position: member.told } }, () => {
      member.underWay = false;
      if (member.announced > member.told) this.#plan();
    });
  }
}

const sizeOf = ({ topic, text }: Publication): number => topic.length + text.length;
