import { setTimeout as delay } from 'node:timers/promises';
import type { Context } from '../../domain/context.ts';
import { listEnvironments } from '../../domain/environments/environments.ts';
import { registerConsumer } from '../../domain/events/consumer-cursors.ts';
import { positionBefore } from '../../domain/events/position-before.ts';
import { streamOf } from '../../domain/events/streams.ts';
import { timestamp } from '../../lib/clock.ts';
import { CpuWatch } from '../../lib/process/cpu-contention.ts';
import type { Environment } from '../../model/environments/environment.ts';
import { isStoreError } from '../../model/errors.ts';
import type { Logger } from '../../observability/log.ts';
import type { Metrics } from '../../observability/metrics.ts';
import { type BatchConsumer, type Consumer, CONSUMER_NAME, retryDelay } from '../../domain/events/consumer.ts';
import { openReader, type StreamReader, type StreamReaderDeps } from './stream/stream-reader.ts';

const MAX_CONCURRENCY = 64;

/** Options of `Consumers`. */
export interface ConsumersOptions {
  readonly ctx: Context;
  readonly log: Logger;
  readonly metrics?: Metrics | undefined;
  /**
   * When the server was started, in milliseconds since the epoch: web workers may have served before the consumers were
   * loaded.
   */
  readonly startedAt: number;
  /**
   * Called with true when a consumer begins to want events as soon as they are committed, and with false when none does
   * any more. Consumers of batches can wait for the next poll of the store.
   */
  readonly onDemand?: ((isWanted: boolean) => void) | undefined;
  /** A `CpuWatch` if absent; for tests. */
  readonly cpu?: Pick<CpuWatch, 'isContended' | 'stop'>;
}

/**
 * Feeds the events of every environment to durable consumers: at least once, in order per thread, each consumer from
 * its own cursor. A new consumer begins with the events since the start of the server (decision 29).
 */
export class Consumers {
  readonly #consumers: readonly (Consumer | BatchConsumer)[];
  readonly #deps: StreamReaderDeps;
  /** Since when new consumers handle events, as an ISO 8601 time. */
  readonly #startedAt: string;
  /** By stream. */
  readonly #readers = new Map<string, readonly StreamReader[]>();
  /** Position of the last event of each stream. */
  readonly #lastSeqs = new Map<string, number>();
  /** Since when each consumer is registered, as an ISO 8601 time. */
  readonly #since = new Map<string, string>();
  readonly #cpu: Pick<CpuWatch, 'isContended' | 'stop'>;
  readonly #onDemand: (isWanted: boolean) => void;
  /** The readers whose consumers wait for each event. */
  readonly #waiting = new Set<StreamReader>();
  /** Ends following the store; undefined before that begins. */
  #unfollow: (() => void) | undefined;
  /** Ends when the last opening of streams does. Never rejects. */
  #opening: Promise<void> = Promise.resolve();
  /** Ends when the consumers have started after the store refused that. Never rejects. */
  #retrying: Promise<void> = Promise.resolve();
  /** Whether the streams could not be opened at the start. */
  #hasFailed = false;
  readonly #stop = new AbortController();

  /** @throws {Error} for a name or a concurrency out of bounds, and for two consumers of one name */
  constructor(
    consumers: readonly (Consumer | BatchConsumer)[],
    { ctx, log, metrics, startedAt, onDemand, cpu = new CpuWatch() }: ConsumersOptions,
  ) {
    this.#startedAt = timestamp(startedAt);
    this.#onDemand = onDemand ?? (() => {});
    this.#cpu = cpu;
    const names = new Set<string>();
    for (const consumer of consumers) {
      const { name } = consumer;
      const concurrency = 'concurrency' in consumer ? consumer.concurrency : 1;
      if (!CONSUMER_NAME.test(name))
        throw new Error(`the name of a consumer must match ${CONSUMER_NAME.source}, which "${name}" does not`);
      if (names.has(name)) throw new Error(`two consumers are named ${name}`);
      if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > MAX_CONCURRENCY)
        throw new Error(`the concurrency of consumer ${name} must be from 1 to ${MAX_CONCURRENCY}`);
      names.add(name);
    }
    this.#consumers = consumers;
    this.#deps = {
      ctx,
      log,
      cpu,
      onOutcome: (consumer, outcome, count) => {
        if (metrics !== undefined) metrics.counter('consumer_events_total', { consumer, outcome }).value += count;
      },
      onWants: (reader, wants) => this.#setWaiting(reader, wants),
    };
  }

  /**
   * Registers the consumers, and reads until `stop`. Does nothing without consumers. While the store refuses writes, it
   * resolves all the same, and tries again until they are accepted. Rejects for any other error; then nothing is read.
   */
  async start(): Promise<void> {
    if (this.#consumers.length === 0) return;
    try {
      await this.#open();
    } catch (error) {
      if (!isStoreError(error)) {
        this.#unfollow?.();
        throw error;
      }
      this.#deps.log.warn(
        { err: error },
        'the store refuses writes, so the consumers of events cannot start; they are tried again',
      );
      this.#retrying = this.#openLater();
    }
  }

  async #openLater(): Promise<void> {
    for (let attempt = 1; !this.#stopped; attempt++) {
      await delay(retryDelay(null, attempt) ?? 0, undefined, { signal: this.#stop.signal }).catch(() => undefined);
      if (this.#stopped) return;
      try {
        return await this.#open();
      } catch (error) {
        if (isStoreError(error)) continue;
        this.#unfollow?.();
        return this.#deps.log.error(
          { err: error },
          'the consumers of events could not be started; restart the server after fixing the cause',
        );
      }
    }
  }

  /** Registers the consumers, and opens the streams of all environments. */
  async #open(): Promise<void> {
    const { store } = this.#deps.ctx;
    for (const { name } of this.#consumers) this.#since.set(name, await registerConsumer(store, name, this.#startedAt));
    // Subscribe before listing environments, so that the first event of a new environment is not missed.
    // A retry after a refusal goes on following: the streams that were opened have readers already.
    this.#unfollow ??= store.follow((stream, event) => {
      if (event === null) this.#close(stream);
      else this.#notify(stream, event.seq);
    });
    this.#hasFailed = false;
    // Later openings wait for this one, so that they see every environment that it opens.
    const opening = this.#openMissing(false);
    this.#opening = opening.catch(() => {
      // Open nothing more: a stream opened after this failure would be treated as new, and its whole history handled.
      this.#hasFailed = true;
    });
    await opening;
  }

  get #stopped(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Starts no further event, and stores the cursors once those under way have ended. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#cpu.stop();
    this.#unfollow?.();
    await this.#retrying;
    await this.#opening;
    await Promise.all([...this.#readers.values()].flat().map((reader) => reader.stop()));
  }

  /** The lowest of the stored cursors of the consumers in a stream; Infinity if no consumer reads it. */
  lowestConsumerCursor(stream: string): number {
    return Math.min(...(this.#readers.get(stream) ?? []).map(({ savedCursor }) => savedCursor));
  }

  /** How many events each consumer has yet to handle, over all environments. */
  lags(): ReadonlyMap<string, number> {
    const lags = new Map(this.#consumers.map(({ name }) => [name, 0]));
    for (const [stream, readers] of this.#readers) {
      const last = this.#lastSeqs.get(stream) ?? 0;
      for (const { consumer, cursor } of readers)
        lags.set(consumer.name, (lags.get(consumer.name) ?? 0) + Math.max(0, last - cursor));
    }
    return lags;
  }

  /** Records whether a reader waits for each event, and reports the first one that does, and the end of the last. */
  #setWaiting(reader: StreamReader, wants: boolean): void {
    if ('handleBatch' in reader.consumer) return;
    const before = this.#waiting.size;
    if (wants) this.#waiting.add(reader);
    else this.#waiting.delete(reader);
    if (before === 0 && wants) this.#onDemand(true);
    if (before > 0 && this.#waiting.size === 0) this.#onDemand(false);
  }

  #notify(stream: string, seq: number): void {
    this.#lastSeqs.set(stream, seq);
    const readers = this.#readers.get(stream);
    if (readers !== undefined) for (const reader of readers) reader.notify();
    else if (!this.#hasFailed) this.#opening = this.#opening.then(() => this.#openCreated());
  }

  /** Opens the streams of environments that were created or imported since the start. */
  async #openCreated(): Promise<void> {
    try {
      await this.#openMissing(true);
    } catch (error) {
      this.#deps.log.error(
        { err: error },
        'a new environment could not be opened for consumers; its next event tries again',
      );
    }
  }

  /** @param created as for `#openStream` */
  async #openMissing(created: boolean): Promise<void> {
    for (const environment of await listEnvironments(this.#deps.ctx)) {
      if (this.#stopped || this.#hasFailed) return;
      if (!this.#readers.has(streamOf(environment))) await this.#openStream(environment, created);
    }
  }

  /**
   * @param created whether the environment was created or imported while this process ran: then all of its events are
   *   handled
   */
  async #openStream(environment: Environment, created: boolean): Promise<void> {
    const { store } = this.#deps.ctx;
    const stream = streamOf(environment);
    this.#lastSeqs.set(stream, Math.max(await store.lastSeq(stream), this.#lastSeqs.get(stream) ?? 0));
    let atStart: Promise<number> | null = null;
    const positionAtStart = (): Promise<number> => (atStart ??= positionBefore(store, stream, this.#startedAt));
    const readers = await Promise.all(
      this.#consumers.map((consumer) => {
        const startsAtZero = created || environment.createdAt > (this.#since.get(consumer.name) ?? '');
        return openReader(consumer, environment, startsAtZero ? () => Promise.resolve(0) : positionAtStart, this.#deps);
      }),
    );
    // The environment may have been deleted meanwhile.
    if (this.#stopped || !this.#lastSeqs.has(stream)) return;
    this.#readers.set(stream, readers);
    for (const reader of readers) reader.start();
  }

  #close(stream: string): void {
    const readers = this.#readers.get(stream) ?? [];
    this.#readers.delete(stream);
    this.#lastSeqs.delete(stream);
    for (const reader of readers) void reader.stop();
  }
}
