import { setTimeout as delay } from 'node:timers/promises';
import type { Context } from '../../domain/context.ts';
import { readConsumerCursor, writeConsumerCursor } from '../../domain/events/consumer-cursors.ts';
import { parseEvent } from '../../domain/events/parse-event.ts';
import { readEvents } from '../../domain/events/read-events.ts';
import { streamOf } from '../../domain/events/streams.ts';
import type { CpuWatch } from '../../lib/process/cpu-contention.ts';
import { Semaphore } from '../../lib/concurrency/semaphore.ts';
import type { Environment } from '../../model/environments/environment.ts';
import { isStoreError } from '../../model/errors.ts';
import { type EventEnvelope, type EventType, typeOfEvent } from '../../model/event.ts';
import type { StoredEvent } from '../../ports/store.ts';
import type { Logger } from '../../observability/log.ts';
import { type BatchConsumer, type Consumer, type ConsumerOutcome, retryDelay } from '../../domain/events/consumer.ts';

/**
 * Events that may be read ahead of the cursor. Bounds the memory while one event keeps failing, and what a crash
 * repeats.
 */
const WINDOW = 1_000;
/**
 * Events per read. A read decodes whole chunks of events, so after a full window the next one waits until there is room
 * for so many.
 */
const READ_LIMIT = 200;
/** Characters per read, which bound the memory of long events. */
const READ_CHARS = 4 * 1024 * 1024;
/** How often a cursor that moved is stored, in milliseconds: each time costs a flushed commit. */
const SAVE_MS = 250;
const READ_RETRY_MS = 1_000;
/**
 * How long events collect, in milliseconds, after a batch consumer has handled all: under load it then needs fewer
 * commits.
 */
const COLLECT_MS = 100;
/** Pause of a batch consumer while the CPU is contended, in milliseconds. */
const YIELD_MS = 1_000;
/** Minimum number of waiting events to pause for. */
const MIN_YIELD_EVENTS = 50;
/** Age of the first waiting event, in milliseconds, from which there is no pause. */
const MAX_YIELD_AGE_MS = 5_000;

/** Dependencies of a stream reader. */
export interface StreamReaderDeps {
  readonly ctx: Context;
  readonly log: Logger;
  /** Called for every outcome of `count` events. */
  readonly onOutcome: (consumer: string, outcome: ConsumerOutcome, count: number) => void;
  readonly cpu: Pick<CpuWatch, 'isContended'>;
  /**
   * Called with whether the consumer of a reader wants events, each time when that is known; with false once it has
   * stopped.
   */
  readonly onWants: (reader: StreamReader, wants: boolean) => void;
}

/** Feeds the events of one environment to one consumer, from its cursor on. */
export class StreamReader {
  readonly consumer: Consumer | BatchConsumer;
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
  /** Whether the window was full, and has had no room for a whole read since. */
  #isFull = false;
  #signalled = true;
  #wakeUp: (() => void) | null = null;
  #running: Promise<void> | null = null;
  #saving: Promise<void> | null = null;

  /** @param start position after which the consumer begins */
  constructor(consumer: Consumer | BatchConsumer, environment: Environment, start: number, deps: StreamReaderDeps) {
    this.consumer = consumer;
    this.environment = environment;
    this.#deps = deps;
    this.#semaphore = new Semaphore('concurrency' in consumer ? consumer.concurrency : 1);
    this.#saved = this.#read = start;
  }

  /** The position up to which every event is finished. */
  get cursor(): number {
    for (const first of this.#unfinished) return first - 1;
    return this.#read;
  }

  /** The position that is stored, up to which no process reads again. */
  get savedCursor(): number {
    return this.#saved;
  }

  /** How many more events may be read ahead of the cursor. */
  get #room(): number {
    return this.cursor + WINDOW - this.#read;
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
    this.#deps.onWants(this, false);
    await Promise.all(this.#tasks.values());
    await this.#saving;
    await this.#save();
  }

  async #loop(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await this.#waitUntilSignalled();
      try {
        const isPassedOver = await this.#passOver();
        this.#deps.onWants(this, !isPassedOver);
        if (isPassedOver) continue;
        await this.#readOn();
        if ('handleBatch' in this.consumer) await this.#pause(COLLECT_MS);
      } catch (error) {
        this.#deps.log.error(
          { err: error, ...this.#names() },
          'events could not be read for a consumer; they are tried again',
        );
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

  /** Passes over the events up to now if the consumer does not want them. Returns whether it does not. */
  async #passOver(): Promise<boolean> {
    if (this.consumer.wants === undefined || (await this.consumer.wants(this.environment))) return false;
    const last = await this.#deps.ctx.store.lastSeq(streamOf(this.environment));
    // Check again: the consumer may have started to want events after `lastSeq` was read.
    if (await this.consumer.wants(this.environment)) return false;
    if (last > this.#read) {
      this.#read = last;
      // Save the cursor; otherwise, after a crash, the consumer could receive events that it skipped.
      this.#scheduleSave();
    }
    return true;
  }

  /**
   * Reads to the end of the stream, or until the window is full. Then the event that makes room for a whole read
   * signals.
   */
  async #readOn(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const limit = Math.min(READ_LIMIT, this.#room);
      if (limit <= 0) this.#isFull = true;
      if (this.#isFull) return;
      const page = { limit, maxChars: READ_CHARS };
      const events = await readEvents(this.#deps.ctx.store, this.environment, this.#read, page);
      if (events.length === 0) return;
      if (limit < READ_LIMIT && events.length === limit) this.#isFull = true;
      const { consumer } = this;
      if ('handleBatch' in consumer) {
        // More may have come meanwhile, so they are read again.
        if (this.#shouldYield(events)) await this.#pause(YIELD_MS);
        else await this.#handlePage(consumer, events);
        continue;
      }
      for (const { seq, text } of events) {
        if (seq > this.#read + 1) this.#skipLost(seq - 1);
        this.#begin(consumer, seq, parseEvent(text));
      }
    }
  }

  /**
   * Whether to pause before handling events, so that requests go first. For few events the check costs more than
   * handling them.
   */
  #shouldYield(events: readonly StoredEvent[]): boolean {
    const [first] = events;
    return (
      first !== undefined &&
      events.length >= MIN_YIELD_EVENTS &&
      isRecent(first, this.#deps.ctx.clock.now()) &&
      this.#deps.cpu.isContended
    );
  }

  /** Handles consecutive events as one batch. */
  async #handlePage(consumer: BatchConsumer, events: readonly StoredEvent[]): Promise<void> {
    const [first, last] = [events[0]?.seq ?? 0, events.at(-1)?.seq ?? 0];
    if (first > this.#read + 1) this.#skipLost(first - 1);
    // Parsed before the page counts as read, so that one that cannot be parsed is tried again.
    const handled = events
      .filter(({ text }) => consumer.types.has(typeOfEvent(text) as EventType))
      .map(({ text }) => parseEvent(text));
    this.#unfinished.add(first);
    this.#read = last;
    const skipped = handled.length === 0 ? 0 : await this.#handleBatch(consumer, handled);
    if (skipped === null) return;
    this.#unfinished.delete(first);
    this.#deps.onOutcome(consumer.name, 'handled', events.length - skipped);
    this.#scheduleSave();
  }

  /**
   * Returns how many events were skipped because they kept failing; null if the process shuts down before all are
   * finished.
   */
  async #handleBatch(consumer: BatchConsumer, events: readonly EventEnvelope[]): Promise<number | null> {
    const { signal } = this.#stop;
    const handle = (): Promise<void> => consumer.handleBatch(this.environment, events, signal);
    const outcome = await this.#attempts(events, handle, events.length > 1 ? [] : consumer.retryDelaysMs);
    if (outcome !== 'failed') return outcome === 'handled' ? 0 : null;
    if (events.length > 1) return this.#handleSingly(consumer, events);
    this.#deps.onOutcome(consumer.name, 'skipped', 1);
    return 1;
  }

  async #handleSingly(consumer: BatchConsumer, events: readonly EventEnvelope[]): Promise<number | null> {
    let skipped = 0;
    for (const event of events) {
      const outcome = await this.#handleBatch(consumer, [event]);
      if (outcome === null) return null;
      skipped += outcome;
    }
    return skipped;
  }

  /** Reports the events up to `last` that retention has removed, and continues after them. */
  #skipLost(last: number): void {
    const first = this.#read + 1;
    this.#read = last;
    this.#scheduleSave();
    this.#deps.log.error(
      { ...this.#names(), from: first, to: last },
      'events were removed by retention before a consumer had handled them; raise events.retentionCount or find out why it is slow',
    );
    this.#deps.onOutcome(this.consumer.name, 'lost', last - first + 1);
    try {
      this.consumer.onLost?.(this.environment.id, first, last);
    } catch (error) {
      this.#deps.log.error({ err: error, ...this.#names() }, 'a consumer failed to handle the loss of events');
    }
  }

  /**
   * Handles an event once the earlier ones of its thread are finished; at once if it has no thread, or the order does
   * not matter.
   */
  #begin(consumer: Consumer, seq: number, event: EventEnvelope): void {
    this.#unfinished.add(seq);
    this.#read = seq;
    const key = (consumer.ordered === false ? undefined : event.threadId) ?? `#${seq}`;
    const task = (this.#tasks.get(key) ?? Promise.resolve())
      .then(() => this.#handle(consumer, seq, event))
      .then(() => {
        if (this.#tasks.get(key) === task) this.#tasks.delete(key);
      });
    this.#tasks.set(key, task);
  }

  async #handle(consumer: Consumer, seq: number, event: EventEnvelope): Promise<void> {
    const { signal } = this.#stop;
    const handle = (attempt: number): Promise<void> =>
      this.#semaphore.run(async () => {
        signal.throwIfAborted();
        await consumer.handle({ environmentId: this.environment.id, event }, signal, attempt);
      });
    const outcome = await this.#attempts([event], handle, consumer.retryDelaysMs);
    if (outcome !== 'aborted') this.#finish(seq, outcome === 'failed' ? 'skipped' : 'handled');
  }

  /**
   * Handles events until that succeeds, the attempts are used up, or the process shuts down. An attempt that the store
   * refused does not count.
   *
   * @param retryDelaysMs as in `Consumer`
   * @returns `failed` when the attempts are used up, which is logged for a single event: several are tried singly then
   */
  async #attempts(
    events: readonly EventEnvelope[],
    handle: (attempt: number) => Promise<void>,
    retryDelaysMs: readonly number[] | null,
  ): Promise<'handled' | 'failed' | 'aborted'> {
    const { signal } = this.#stop;
    for (let attempt = 1, storeErrors = 0; !signal.aborted;) {
      try {
        await handle(attempt);
        return 'handled';
      } catch (error) {
        if (signal.aborted) break;
        const isStoreFailure = isStoreError(error);
        const wait = isStoreFailure ? retryDelay(null, ++storeErrors) : retryDelay(retryDelaysMs, attempt);
        const [first, ...others] = events;
        const about = { err: error, ...this.#names(), seq: first?.seq, eventId: first?.eventId, attempt };
        if (wait === null) {
          if (others.length === 0) this.#deps.log.error(about, 'a consumer could not handle an event and skips it');
          return 'failed';
        }
        const what = others.length === 0 ? 'an event; it is' : 'events; they are';
        this.#deps.log.warn({ ...about, waitMs: wait }, `a consumer failed to handle ${what} tried again`);
        this.#deps.onOutcome(this.consumer.name, 'retried', events.length);
        if (!isStoreFailure) attempt++;
        await this.#pause(wait);
      }
    }
    return 'aborted';
  }

  #finish(seq: number, outcome: ConsumerOutcome): void {
    this.#unfinished.delete(seq);
    this.#deps.onOutcome(this.consumer.name, outcome, 1);
    this.#scheduleSave();
    if (!this.#isFull || this.#room < READ_LIMIT) return;
    this.#isFull = false;
    this.notify();
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
      await writeConsumerCursor(this.#deps.ctx.store, this.environment, this.consumer.name, seq);
      this.#saved = seq;
    } catch (error) {
      this.#deps.log.warn(
        { err: error, ...this.#names(), seq },
        'the position of a consumer could not be stored; it is tried again',
      );
    }
  }

  /** Waits, but not beyond `stop`. */
  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#stop.signal }).catch(() => undefined);
  }

  #names(): { consumer: string; plugin?: string | undefined; environment: string } {
    return { consumer: this.consumer.name, plugin: this.consumer.plugin, environment: this.environment.slug };
  }
}

/** Whether an event may still wait. One from the future, after the clock was set back, may not. */
function isRecent({ text }: StoredEvent, now: number): boolean {
  const age = now - Date.parse(parseEvent(text).at);
  return age >= 0 && age < MAX_YIELD_AGE_MS;
}

/**
 * Opens the stream of an environment for a consumer at its stored cursor.
 *
 * @param fallback returns the position to start after, and to store; called if there is no cursor
 */
export async function openReader(
  consumer: Consumer | BatchConsumer,
  environment: Environment,
  fallback: () => Promise<number>,
  deps: StreamReaderDeps,
): Promise<StreamReader> {
  const { store } = deps.ctx;
  let cursor = await readConsumerCursor(store, environment, consumer.name);
  if (cursor === undefined) {
    cursor = await fallback();
    await writeConsumerCursor(store, environment, consumer.name, cursor);
  }
  return new StreamReader(consumer, environment, cursor, deps);
}
