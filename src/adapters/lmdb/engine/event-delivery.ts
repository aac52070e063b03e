import { Listeners } from '../../../lib/listeners.ts';
import type { EventListener, StoredEvent } from '../../../ports/store.ts';
import { type EncodedText, textOf } from './batch.ts';

/** Queues new events and calls the followers with them. */
export class EventDelivery {
  readonly #followers: Listeners<Parameters<EventListener>>;
  /** The events that followers have not received; during `deliver` also those that they have. */
  #queue: { readonly stream: string; readonly event: StoredEvent | null }[] = [];
  #delivering = false;

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
    this.#queue.push({ stream, event });
  }

  /** Queues an event with its encoded text. Call `decode` before the bytes of that are freed. */
  addEncoded(stream: string, seq: number, encoded: EncodedText): void {
    this.add(stream, new EncodedEvent(seq, encoded));
  }

  /** Decodes the texts of what is queued, so that the bytes of their encoded texts may be freed. */
  decode(): void {
    for (const { event } of this.#queue) if (event instanceof EncodedEvent) event.decode();
  }

  /**
   * Calls the followers with the queued events, in order; also with those that are queued meanwhile. Not inside a write
   * transaction, which would keep other writers waiting. No effect if a follower calls it.
   */
  deliver(): void {
    if (this.#queue.length === 0 || this.#delivering) return;
    this.#delivering = true;
    try {
      // Grows while a follower reads the store.
      for (const { stream, event } of this.#queue) {
        this.#followers.call(stream, event);
        if (event instanceof EncodedEvent) event.expire();
      }
    } finally {
      this.#queue = [];
      this.#delivering = false;
    }
  }
}

/** An event whose text is decoded when it is first read: most followers need the texts of few events. */
class EncodedEvent implements StoredEvent {
  readonly seq: number;
  #encoded: EncodedText | undefined;
  #text: string | undefined;

  constructor(seq: number, encoded: EncodedText) {
    this.seq = seq;
    this.#encoded = encoded;
  }

  /**
   * Throws once the followers have been called, unless it was read before: the bytes of the encoded text may be freed
   * then.
   */
  get text(): string {
    this.decode();
    if (this.#text === undefined)
      throw new Error('The text of a new event can be read only while its follower is called');
    return this.#text;
  }

  /** Keeps the text, so that the bytes of the encoded text are no longer needed. */
  decode(): void {
    if (this.#encoded !== undefined) this.#text = textOf(this.#encoded) ?? '';
    this.#encoded = undefined;
  }

  /** Ends the time in which the encoded text may be read. */
  expire(): void {
    this.#encoded = undefined;
  }
}
