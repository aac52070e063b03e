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

/** Events that may be read ahead of the cursor. Bounds the memory while one event keeps failing, and what a crash repeats. */
const WINDOW = 1_000;
const READ_LIMIT = 200;
/** How often a cursor that moved is stored, in milliseconds: each time costs a flushed commit. */
const SAVE_MS = 250;
const READ_RETRY_MS = 1_000;

/** What became of an event, or of an attempt at it. */
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
  /** The last task of each thread that has unfinished events; tasks of events without a thread by position. */
  readonly #tasks = new Map<string, Promise<void>>();
  /** The positions of the unfinished events, ascending. */
  readonly #unfinished = new Set<number>();
  /** The stored cursor. */
  #saved: number;
  /** Position of the last event that was read. */
  #read: number;
  #signalled = true;
  #wakeUp: (() => void) | null = null;
  #running: Promise<void> | null = null;
  #saving: Promise<void> | null = null;

  /** @param start position after which the consumer begins */
  constructor(consumer: Consumer, environment: Environment, start: number, deps: StreamReaderDeps) {
    this.consumer = consumer;
    this.environment = environment;
    this.#deps = deps;
    this.#semaphore = new Semaphore(consumer.concurrency);
    this.#saved = this.#read = start;
  }

  /** The position up to which every event is finished. */
  get cursor(): number {
    for (const first of this.#unfinished) return first - 1;
    return this.#read;
  }

  /** Reads until `stop`. */
  start(): void {
    this.#running ??= this.#loop();
  }

  /** Must be called when the stream has grown. */
  notify(): void {
    this.#signalled = true;
    this.#wakeUp?.();
  }

  /** Starts no more events, aborts and awaits the running ones, and stores the cursor. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.notify();
    await this.#running;
    await Promise.all(this.#tasks.values());
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

  /** Reads to the end of the stream, or until the window is full. Then the next event that finishes signals. */
  async #readOn(): Promise<void> {
    const { store } = this.#deps.ctx;
    const stream = streamOf(this.environment);
    while (!this.#stop.signal.aborted) {
      const limit = Math.min(READ_LIMIT, this.cursor + WINDOW - this.#read);
      if (limit <= 0) return;
      const events = await redactErasedUsers(store, this.environment.id, await store.events(stream, this.#read, limit));
      if (events.length === 0) return;
      for (const { seq, text } of events) {
        if (seq > this.#read + 1) this.#skipLost(seq - 1);
        this.#begin(seq, JSON.parse(text) as EventEnvelope);
      }
    }
  }

  /** Reports the events up to `last` that retention has removed, and continues after them. */
  #skipLost(last: number): void {
    const first = this.#read + 1;
    this.#read = last;
    this.#scheduleSave();
    this.#deps.log.error({ ...this.#names(), from: first, to: last }, 'events were removed by retention before a consumer had handled them; raise events.retentionCount or find out why it is slow');
    this.#deps.onOutcome(this.consumer.name, 'lost', last - first + 1);
    try {
      this.consumer.onLost?.(this.environment.id, first, last);
    } catch (error) {
      this.#deps.log.error({ err: error, ...this.#names() }, 'a consumer failed to handle the loss of events');
    }
  }

  /** Handles an event once the earlier ones of its thread are finished; at once if it has no thread. */
  #begin(seq: number, event: EventEnvelope): void {
    this.#unfinished.add(seq);
    this.#read = seq;
    const key = event.threadId ?? `#${seq}`;
    const task = (this.#tasks.get(key) ?? Promise.resolve())
      .then(() => this.#handle(seq, event))
      .then(() => {
        if (this.#tasks.get(key) === task) this.#tasks.delete(key);
      });
    this.#tasks.set(key, task);
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
    const wasFull = this.#read - this.cursor >= WINDOW;
    this.#unfinished.delete(seq);
    this.#deps.onOutcome(this.consumer.name, outcome, 1);
    this.#scheduleSave();
    if (wasFull) this.notify();
  }

  /** Stores the cursor in a moment, and again for as long as it moves or cannot be stored. */
  #scheduleSave(): void {
    this.#saving ??= this.#pause(SAVE_MS)
      .then(() => this.#save())
      .then(() => {
        this.#saving = null;
        if (this.cursor > this.#saved && !this.#stop.signal.aborted) this.#scheduleSave();
      });
  }

  async #save(): Promise<void> {
    const seq = this.cursor;
    if (seq === this.#saved) return;
    try {
      await writeCursor(this.#deps.ctx.store, this.environment, this.consumer.name, seq);
      this.#saved = seq;
    } catch (error) {
      this.#deps.log.warn({ err: error, ...this.#names(), seq }, 'the position of a consumer could not be stored; it is tried again');
    }
  }

  /** Waits, but not beyond `stop`. */
  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#stop.signal }).catch(() => undefined);
  }

  #names(): { consumer: string; environment: string } {
    return { consumer: this.consumer.name, environment: this.environment.slug };
  }
}

/**
 * Opens the stream of an environment for a consumer at its stored cursor.
 *
 * @param fallback the position to start after, and to store, if there is no cursor
 */
export async function openReader(consumer: Consumer, environment: Environment, fallback: number, deps: StreamReaderDeps): Promise<StreamReader> {
  const cursor = await readCursor(deps.ctx.store, environment, consumer.name);
  if (cursor === undefined) await writeCursor(deps.ctx.store, environment, consumer.name, fallback);
  return new StreamReader(consumer, environment, cursor ?? fallback, deps);
}
