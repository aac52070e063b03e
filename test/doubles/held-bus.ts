import type { Announcement, Bus, Publication, Subscription } from '../../src/ports/bus.ts';

/** A bus whose publications a test can hold back, and then send late, in another order or never. */
export class HeldBus implements Bus {
  /** While true, publications are held back. */
  holding = false;
  readonly #bus: Bus;
  readonly #held: Publication[] = [];

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  announce(announcement: Announcement): void {
    this.#bus.announce(announcement);
  }

  onAnnounce(listener: (announcement: Announcement) => void): () => void {
    return this.#bus.onAnnounce(listener);
  }

  publish(publication: Publication): void {
    if (this.holding) this.#held.push(publication);
    else this.#bus.publish(publication);
  }

  subscribe(topic: string, listener: (text: string) => void): Subscription {
    return this.#bus.subscribe(topic, listener);
  }

  /** Removes the publications that are held back and returns them. */
  take(): Publication[] {
    return this.#held.splice(0);
  }

  /** Stops holding back, and sends these publications. */
  release(publications: readonly Publication[] = this.take()): void {
    this.holding = false;
    for (const publication of publications) this.#bus.publish(publication);
  }
}
