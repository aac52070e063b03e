import { Listeners } from '../../../lib/listeners.ts';
import type { EventListener, StoredEvent } from '../../../ports/store.ts';

/** Queues new events and calls the followers with them. */
export class EventDelivery {
  readonly #followers: Listeners<Parameters<EventListener>>;
  #queue: [stream: string, event: StoredEvent | null][] = [];

  /** @param report called with what a follower throws */
  constructor(report: (error: unknown) => void) {
    this.#followers = new Listeners(report);
  }

  /** Whether events have to be queued at all. */
  get hasFollowers(): boolean {
    return this.#followers.size > 0;
  }

  /** Whether followers are yet to be called. */
  get isBehind(): boolean {
    return this.#queue.length > 0;
  }

  /** As `Store.follow`. */
  follow(listener: EventListener): () => void {
    return this.#followers.add(listener);
  }

  /** Queues an event of a stream; null for its end. */
  add(stream: string, event: StoredEvent | null): void {
    this.#queue.push([stream, event]);
  }

  /** Calls the followers with the queued events. Not inside a write transaction, which would keep other writers waiting. */
  deliver(): void {
    if (this.#queue.length === 0) return;
    const queue = this.#queue;
    this.#queue = [];
    for (const [stream, event] of queue) this.#followers.call(stream, event);
  }
}
