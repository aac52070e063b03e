import { setTimeout as delay } from 'node:timers/promises';
import { writeConsumerCursor } from '../../../domain/events/consumer-cursors.ts';
import type { Environment } from '../../../model/environments/environment.ts';
import type { Logger } from '../../../observability/log.ts';
import type { Store } from '../../../ports/store.ts';

/**
 * Events that may be read ahead of the cursor. Bounds the memory while one event keeps failing, and what a crash
 * repeats.
 */
const SIZE = 1_000;
/** How often a cursor that moved is stored, in milliseconds: each time costs a flushed commit. */
const SAVE_MS = 250;

/** Dependencies of a window. */
export interface ReadWindowDeps {
  readonly store: Store;
  readonly log: Logger;
  readonly consumer: string;
  readonly environment: Environment;
  /** What lines of the log name. */
  readonly names: object;
  /** Aborted when nothing more is stored but by `close`. */
  readonly signal: AbortSignal;
}

/** The events of one stream that a consumer has begun and not finished, and its stored cursor before them. */
export class ReadWindow {
  readonly #deps: ReadWindowDeps;
  /** The positions of the unfinished events, ascending. */
  readonly #unfinished = new Set<number>();
  /** The stored cursor. */
  #saved: number;
  /** Position of the last event that was begun or passed over. */
  #last: number;
  #saving: Promise<void> | null = null;

  /** @param start the stored cursor */
  constructor(start: number, deps: ReadWindowDeps) {
    this.#deps = deps;
    this.#saved = this.#last = start;
  }

  /** The position up to which every event is finished. */
  get cursor(): number {
    for (const first of this.#unfinished) return first - 1;
    return this.#last;
  }

  /** The position that is stored, up to which no process reads again. */
  get savedCursor(): number {
    return this.#saved;
  }

  /** Position of the last event that was begun or passed over. */
  get last(): number {
    return this.#last;
  }

  /** How many more events may be begun. */
  get room(): number {
    return this.cursor + SIZE - this.#last;
  }

  /** Begins the events from `first` to `last`, which are finished together by `finish(first)`. */
  begin(first: number, last = first): void {
    this.#unfinished.add(first);
    this.#last = last;
  }

  finish(first: number): void {
    this.#unfinished.delete(first);
    this.#scheduleSave();
  }

  /** Finishes the events up to `seq`, none of which was begun. */
  passOver(seq: number): void {
    this.#last = seq;
    this.#scheduleSave();
  }

  /** Stores the cursor for the last time. */
  async close(): Promise<void> {
    await this.#saving;
    await this.#save();
  }

  /** Stores the cursor in a moment, and again for as long as it moves or cannot be stored. */
  #scheduleSave(): void {
    const { signal } = this.#deps;
    this.#saving ??= delay(SAVE_MS, undefined, { signal })
      .catch(() => undefined)
      .then(() => this.#save())
      .then(() => {
        this.#saving = null;
        if (this.cursor > this.#saved && !signal.aborted) this.#scheduleSave();
      });
  }

  async #save(): Promise<void> {
    const seq = this.cursor;
    if (seq === this.#saved) return;
    const { store, log, consumer, environment, names } = this.#deps;
    try {
      await writeConsumerCursor(store, environment, consumer, seq);
      this.#saved = seq;
    } catch (error) {
      log.warn({ err: error, ...names, seq }, 'the position of a consumer could not be stored; it is tried again');
    }
  }
}
