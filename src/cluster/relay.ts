import type { Channel } from './channel.ts';

interface Member {
  readonly channel: Channel;
  /** The highest position that others announced. */
  announced: number;
  /** The highest position that it was told. */
  told: number;
  /** A hint has been handed to the line and has not left yet. */
  underWay: boolean;
}

/** Passes the hints of one worker on to all others: one a tick to each, and never two waiting in one line. */
export class AnnounceRelay {
  readonly #members = new Set<Member>();
  #planned = false;

  /** Lets a worker take part until its line closes. */
  add(channel: Channel): void {
    const member: Member = { channel, announced: 0, told: 0, underWay: false };
    this.#members.add(member);
    channel.onMessage((message) => {
      if (message.type === 'announce') this.#announce(member, message.data.position);
    });
    channel.onClose(() => this.#members.delete(member));
  }

  #announce(from: Member, position: number): void {
    for (const member of this.#members) if (member !== from) member.announced = Math.max(member.announced, position);
    this.#plan();
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

/** The worker's end: hints through its line to the primary, as a bus needs it. */
export function hintLine(channel: Channel): { send(position: number, sent: () => void): void; listen(listener: (position: number) => void): () => void } {
  return {
    send: (position, sent) => channel.send({ type: 'announce', data: { position } }, sent),
    listen: (listener) =>
      channel.onMessage((message) => {
        if (message.type === 'announce') listener(message.data.position);
      }),
  };
}
