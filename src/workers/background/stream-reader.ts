import { setTimeout as delay } from 'node:timers/promises';
import type { Context } from '../../domain/context.ts';
import { readCursor, writeCursor } from '../../domain/events/cursors.ts';
import { streamOf } from '../../domain/events/streams.ts';
import { redactErasedUsers } from '../../domain/users/erasure.ts';
import { Semaphore } from '../../lib/semaphore.ts';
import type { Environment } from '../../model/environment.ts';
import type { EventEnvelope } from '../../model/event.ts';
import type { Logger } from '../../observability/log.ts';
import { type Consumer, retryDelay } from './consumer.ts';

/** Events that may be read ahead of the cursor: bounds what one event that keeps failing holds in memory, and what a crash repeats. */
const WINDOW = 1_000;
const READ_LIMIT = 200;
/** How often a cursor that moved is stored: a flushed commit each. */
const SAVE_MS = 250;
const READ_RETRY_MS = 1_000;

/** How an event ended for a consumer. */
export type ConsumerOutcome = 'handled' | 'retried' | 'skipped' | 'lost';

export interface StreamReaderDeps {
  readonly ctx: Context;
  readonly log: Logger;
  /** Called for every outcome of `count` events. */
  readonly onOutcome: (consumer: string, outcome: ConsumerOutcome, count: number) => void;
}

/** Feeds the events of one environment to one consumer, from its cursor on. */
export class StreamReader {
  readonly consumer: Consumer;
  readonly environment: Environment;
  readonly #deps: StreamReaderDeps;
  readonly #semaphore: Semaphore;
  readonly #stop = new AbortController();
  /** Of each thread with events under way, the end of its last one. */
  readonly #lastOf = new Map<string, Promise<void>>();
  /** Positions past the cursor that are finished, while an earlier one is not. */
  readonly #finished = new Set<number>();
  /** Up to here every event is finished. */
  #cursor: number;
  /** Up to here the cursor is stored. */
  #saved: number;
  /** Up to here events have been read. */
  #read: number;
  #signalled = true;
  #wakeUp: (() => void) | null = null;
  #running: Promise<void> | null = null;
  #saving: Promise<void> | null = null;

  /** @param start position up to which the consumer has handled everything, or does not want to */
  constructor(consumer: Consumer, environment: Environment, start: number, deps: StreamReaderDeps) {
    this.consumer = consumer;
    this.environment = environment;
    this.#deps = deps;
    this.#semaphore = new Semaphore(consumer.concurrency);
    this.#cursor = this.#saved = this.#read = start;
  }

  /** The position up to which every event is finished. */
  get cursor(): number {
    return this.#cursor;
  }

  /** Begins to read, until `stop`. */
  start(): void {
    this.#running ??= this.#loop();
  }

  /** Says that the stream has grown. */
  notify(): void {
    this.#signalled = true;
    this.#wakeUp?.();
  }

  /** Starts no further event, aborts those under way, waits for them and stores the cursor. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.notify();
    await this.#running;
    await Promise.all(this.#lastOf.values());
    await this.#saving;
    await this.#save();
  }

  async #loop(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await this.#waitUntilSignalled();
      try {
        await this.#readOn();
      } catch (error) {
        this.#deps.log.error({ err: error, ...this.#names() }, 'events could not be read for a consumer; they are tried again');
        this.#signalled = true;
        await this.#pause(READ_RETRY_MS);
      }
    }
  }

  async #waitUntilSignalled(): Promise<void> {
    if (!this.#signalled) {
      await new Promise<void>((resolve) => {
        this.#wakeUp = resolve;
      });
    }
    this.#wakeUp = null;
    this.#signalled = false;
  }

  /** Reads until the end of the stream, or until the window is full: then the next event that finishes signals. */
  async #readOn(): Promise<void> {
    const { store } = this.#deps.ctx;
    const stream = streamOf(this.environment);
    while (!this.#stop.signal.aborted) {
      const limit = Math.min(READ_LIMIT, this.#cursor + WINDOW - this.#read);
      if (limit <= 0) return;
      const events = await redactErasedUsers(store, this.environment.id, await store.events(stream, this.#read, limit));
      if (events.length === 0) return;
      this.#noteGap(events[0]?.seq ?? 0);
      for (const { seq, text } of events) {
        this.#read = seq;
        this.#begin(seq, JSON.parse(text) as EventEnvelope);
      }
    }
  }

  #noteGap(first: number): void {
    const lost = first - this.#read - 1;
    if (lost <= 0) return;
    const from = this.#read + 1;
    this.#deps.log.error({ ...this.#names(), from, to: first - 1 }, 'events were removed by retention before a consumer had handled them; raise events.retentionCount or find out why it is slow');
    this.#deps.onOutcome(this.consumer.name, 'lost', lost);
    this.consumer.onLost?.(this.environment.id, from, first - 1);
    for (let seq = from; seq < first; seq++) this.#finished.add(seq);
    this.#advance();
  }

  #begin(seq: number, event: EventEnvelope): void {
    const key = event.threadId ?? '';
    const before = key === '' ? undefined : this.#lastOf.get(key);
    const work = (before ?? Promise.resolve()).then(() => this.#handle(seq, event));
    // Events of no thread are independent: each waits under a key of its own.
    const kept = key === '' ? `#${seq}` : key;
    const last = work.then(() => {
      if (this.#lastOf.get(kept) === last) this.#lastOf.delete(kept);
    });
    this.#lastOf.set(kept, last);
  }

  /** Handles an event until it succeeds, its attempts are used up, or the process shuts down. */
  async #handle(seq: number, event: EventEnvelope): Promise<void> {
    const { signal } = this.#stop;
    for (let attempt = 1; !signal.aborted; attempt++) {
      try {
        await this.#semaphore.run(async () => {
          signal.throwIfAborted();
          await this.consumer.handle({ environmentId: this.environment.id, event }, signal);
        });
        return this.#finish(seq, 'handled');
      } catch (error) {
        if (signal.aborted) return;
        const wait = retryDelay(this.consumer, attempt);
        const about = { err: error, ...this.#names(), seq, eventId: event.eventId, attempt };
        if (wait === null) {
          this.#deps.log.error(about, 'a consumer could not handle an event and skips it');
          return this.#finish(seq, 'skipped');
        }
        this.#deps.log.warn({ ...about, waitMs: wait }, 'a consumer failed to handle an event; it is tried again');
        this.#deps.onOutcome(this.consumer.name, 'retried', 1);
        await this.#pause(wait);
      }
    }
  }

  #finish(seq: number, outcome: ConsumerOutcome): void {
    this.#finished.add(seq);
    this.#deps.onOutcome(this.consumer.name, outcome, 1);
    const wasFull = this.#read - this.#cursor >= WINDOW;
    this.#advance();
    if (wasFull) this.notify();
  }

  #advance(): void {
    while (this.#finished.delete(this.#cursor + 1)) this.#cursor++;
    this.#saving ??= this.#pause(SAVE_MS)
      .then(() => this.#save())
      .finally(() => {
        this.#saving = null;
        if (this.#cursor > this.#saved && !this.#stop.signal.aborted) this.#advance();
      });
  }

  async #save(): Promise<void> {
    const seq = this.#cursor;
    if (seq === this.#saved) return;
    try {
      await writeCursor(this.#deps.ctx.store, this.environment, this.consumer.name, seq);
      this.#saved = seq;
    } catch (error) {
      this.#deps.log.warn({ err: error, ...this.#names(), seq }, 'the position of a consumer could not be stored; it is tried again');
    }
  }

  /** Waits; less when the process shuts down. */
  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#stop.signal }).catch(() => undefined);
  }

  #names(): { consumer: string; environment: string } {
    return { consumer: this.consumer.name, environment: this.environment.slug };
  }
}

/** The reader of an environment's stream for a consumer, from where it stands. `fallback` is where it starts without a cursor. */
export async function openReader(consumer: Consumer, environment: Environment, fallback: number, deps: StreamReaderDeps): Promise<StreamReader> {
  const cursor = await readCursor(deps.ctx.store, environment, consumer.name);
  if (cursor === undefined) await writeCursor(deps.ctx.store, environment, consumer.name, fallback);
  return new StreamReader(consumer, environment, cursor ?? fallback, deps);
}
