import { setTimeout as delay } from 'node:timers/promises';
import type { Context } from '../../../domain/context.ts';
import type { BatchConsumer, Consumer, ConsumerOutcome } from '../../../domain/events/consumer.ts';
import { readConsumerCursor, writeConsumerCursor } from '../../../domain/events/consumer-cursors.ts';
import { readEvents } from '../../../domain/events/read-events.ts';
import { streamOf } from '../../../domain/events/streams.ts';
import type { CpuWatch } from '../../../lib/process/cpu-contention.ts';
import type { Environment } from '../../../model/environments/environment.ts';
import type { Logger } from '../../../observability/log.ts';
import type { Delivery, DeliveryDeps } from './delivery.ts';
import { EventBatches } from './event-batches.ts';
import { ReadWindow } from './read-window.ts';
import { SingleEvents } from './single-events.ts';

/**
 * Events per read. A read decodes whole chunks of events, so after a full window the next one waits until there is room
 * for so many.
 */
const READ_LIMIT = 200;
/** Characters per read, which bound the memory of long events. */
const READ_CHARS = 4 * 1024 * 1024;
const READ_RETRY_MS = 1_000;
/**
 * How long events collect, in milliseconds, after a batch consumer has handled all: under load it then needs fewer
 * commits.
 */
const COLLECT_MS = 100;
/** Pause of a batch consumer while the CPU is contended, in milliseconds. */
const YIELD_MS = 1_000;

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
  /** What lines of the log name. */
  readonly #names: { consumer: string; plugin: string | undefined; environment: string };
  readonly #window: ReadWindow;
  readonly #delivery: Delivery;
  readonly #stop = new AbortController();
  /** Whether the window was full, and has had no room for a whole read since. */
  #isFull = false;
  #signalled = true;
  #wakeUp: (() => void) | null = null;
  #running: Promise<void> | null = null;

  /** @param start position after which the consumer begins */
  constructor(consumer: Consumer | BatchConsumer, environment: Environment, start: number, deps: StreamReaderDeps) {
    this.consumer = consumer;
    this.environment = environment;
    this.#deps = deps;
    const { ctx, log, cpu } = deps;
    const { signal } = this.#stop;
    const names = { consumer: consumer.name, plugin: consumer.plugin, environment: environment.slug };
    this.#names = names;
    this.#window = new ReadWindow(start, {
      store: ctx.store,
      log,
      consumer: consumer.name,
      environment,
      names,
      signal,
    });
    const delivery: DeliveryDeps = {
      environment,
      window: this.#window,
      log,
      names,
      signal,
      onOutcome: (outcome, count) => deps.onOutcome(consumer.name, outcome, count),
    };
    this.#delivery =
      'handleBatch' in consumer
        ? new EventBatches(consumer, { ...delivery, clock: ctx.clock, cpu })
        : new SingleEvents(consumer, delivery, () => this.#goOn());
  }

  /** The position up to which every event is finished. */
  get cursor(): number {
    return this.#window.cursor;
  }

  /** The position that is stored, up to which no process reads again. */
  get savedCursor(): number {
    return this.#window.savedCursor;
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
    await this.#delivery.ended();
    await this.#window.close();
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
          { err: error, ...this.#names },
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
    // The cursor moves, too; otherwise, after a crash, the consumer could receive events that it skipped.
    if (last > this.#window.last) this.#window.passOver(last);
    return true;
  }

  /**
   * Reads to the end of the stream, or until the window is full. Then the event that makes room for a whole read
   * signals.
   */
  async #readOn(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const limit = Math.min(READ_LIMIT, this.#window.room);
      if (limit <= 0) this.#isFull = true;
      if (this.#isFull) return;
      const page = { limit, maxChars: READ_CHARS };
      const events = await readEvents(this.#deps.ctx.store, this.environment, this.#window.last, page);
      const [first] = events;
      if (first === undefined) return;
      if (limit < READ_LIMIT && events.length === limit) this.#isFull = true;
      if (first.seq > this.#window.last + 1) this.#skipLost(first.seq - 1);
      if (!(await this.#delivery.begin(events))) await this.#pause(YIELD_MS);
    }
  }

  /** Reads on once the window was full and has room for a whole read. */
  #goOn(): void {
    if (!this.#isFull || this.#window.room < READ_LIMIT) return;
    this.#isFull = false;
    this.notify();
  }

  /** Reports the events up to `last` that retention has removed, and continues after them. */
  #skipLost(last: number): void {
    const first = this.#window.last + 1;
    this.#window.passOver(last);
    this.#deps.log.error(
      { ...this.#names, from: first, to: last },
      'events were removed by retention before a consumer had handled them; raise events.retentionCount or find out why it is slow',
    );
    this.#deps.onOutcome(this.consumer.name, 'lost', last - first + 1);
    try {
      this.consumer.onLost?.(this.environment.id, first, last);
    } catch (error) {
      this.#deps.log.error({ err: error, ...this.#names }, 'a consumer failed to handle the loss of events');
    }
  }

  /** Waits, but not beyond `stop`. */
  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#stop.signal }).catch(() => undefined);
  }
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
