import type { StoredEvent } from '../../../ports/store.ts';

/** Consecutive events that are read together, bounded in number and characters. */
export class EventPage {
  readonly events: StoredEvent[] = [];
  readonly #limit: number;
  readonly #maxChars: number;
  #chars = 0;
  #isFull: boolean;

  constructor(limit: number, maxChars: number) {
    this.#limit = limit;
    this.#maxChars = maxChars;
    this.#isFull = limit <= 0;
  }

  /** Whether it takes no further event. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /**
   * Adds the next event, unless it is too long and not the first; then the page is full. Do not call it for a page that
   * is full.
   */
  add(seq: number, text: string): void {
    this.#chars += text.length;
    if (this.#chars > this.#maxChars && this.events.length > 0) {
      this.#isFull = true;
      return;
    }
    this.events.push({ seq, text });
    this.#isFull = this.events.length >= this.#limit || this.#chars >= this.#maxChars;
  }
}
