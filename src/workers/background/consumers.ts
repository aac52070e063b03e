import type { Context } from '../../domain/context.ts';
import { listEnvironments } from '../../domain/environments/environments.ts';
import { registerConsumer } from '../../domain/events/cursors.ts';
import { streamOf } from '../../domain/events/streams.ts';
import { timestamp } from '../../lib/clock.ts';
import type { Environment } from '../../model/environment.ts';
import type { Logger } from '../../observability/log.ts';
import type { Metrics } from '../../observability/metrics.ts';
import { type Consumer, CONSUMER_NAME } from './consumer.ts';
import { openReader, type StreamReader, type StreamReaderDeps } from './stream-reader.ts';

const MAX_CONCURRENCY = 64;

/**
 * Feeds the events of every environment to durable consumers: at least once, in order per thread, each consumer from a
 * cursor of its own. A consumer that is new begins with the events after its first start.
 */
export class Consumers {
  readonly #consumers: readonly Consumer[];
  readonly #deps: StreamReaderDeps;
  /** By stream. */
  readonly #readers = new Map<string, readonly StreamReader[]>();
  /** Position of the last event of each stream. */
  readonly #lastSeqs = new Map<string, number>();
  #since = new Map<string, string>();
  #unfollow: () => void = () => {};
  #finding: Promise<void> = Promise.resolve();
  #stopped = false;

  /** @throws {Error} for a name or a concurrency out of bounds, and for two consumers of one name */
  constructor(consumers: readonly Consumer[], { ctx, log, metrics }: { ctx: Context; log: Logger; metrics?: Metrics | undefined }) {
    const names = new Set<string>();
    for (const { name, concurrency } of consumers) {
      if (!CONSUMER_NAME.test(name)) throw new Error(`the name of a consumer must match ${CONSUMER_NAME.source}, which "${name}" does not`);
      if (names.has(name)) throw new Error(`two consumers are named ${name}`);
      if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > MAX_CONCURRENCY) throw new Error(`the concurrency of consumer ${name} must be from 1 to ${MAX_CONCURRENCY}`);
      names.add(name);
    }
    this.#consumers = consumers;
    this.#deps = {
      ctx,
      log,
      onOutcome: (consumer, outcome, count) => {
        if (metrics !== undefined) metrics.counter('consumer_events_total', { consumer, outcome }).value += count;
      },
    };
  }

  /** Registers the consumers, and reads until `stop`. Does nothing without consumers. */
  async start(): Promise<void> {
    if (this.#consumers.length === 0) return;
    const { store, clock } = this.#deps.ctx;
    const now = timestamp(clock.now());
    for (const { name } of this.#consumers) this.#since.set(name, await registerConsumer(store, name, now));
    // Before the environments are listed: one that is created in between is found by its first event.
    this.#unfollow = store.follow((stream, event) => {
      if (event === null) this.#close(stream);
      else this.#notify(stream, event.seq);
    });
    for (const environment of await listEnvironments(this.#deps.ctx)) await this.#open(environment, false);
  }

  /** Starts no further event, and stores the cursors once those under way have ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#unfollow();
    await this.#finding;
    await Promise.all([...this.#readers.values()].flat().map((reader) => reader.stop()));
  }

  /** The lowest position in a stream that a consumer still stands at; Infinity when no consumer reads the stream. */
  lowestCursor(stream: string): number {
    return Math.min(...(this.#readers.get(stream) ?? []).map(({ cursor }) => cursor));
  }

  /** How many events each consumer has yet to handle, over all environments. */
  lags(): ReadonlyMap<string, number> {
    const lags = new Map(this.#consumers.map(({ name }) => [name, 0]));
    for (const [stream, readers] of this.#readers) {
      const last = this.#lastSeqs.get(stream) ?? 0;
      for (const { consumer, cursor } of readers) lags.set(consumer.name, (lags.get(consumer.name) ?? 0) + Math.max(0, last - cursor));
    }
    return lags;
  }

  #notify(stream: string, seq: number): void {
    this.#lastSeqs.set(stream, seq);
    const readers = this.#readers.get(stream);
    if (readers !== undefined) for (const reader of readers) reader.notify();
    else this.#findNew();
  }

  /** Opens the streams of environments that were created or imported since. */
  #findNew(): void {
    this.#finding = this.#finding.then(async () => {
      if (this.#stopped) return;
      try {
        const environments = await listEnvironments(this.#deps.ctx);
        for (const environment of environments) if (!this.#readers.has(streamOf(environment))) await this.#open(environment, true);
      } catch (error) {
        this.#deps.log.error({ err: error }, 'a new environment could not be opened for consumers; its next event tries again');
      }
    });
  }

  /** @param isNew whether the environment came while this process ran: then all of its events are to be handled */
  async #open(environment: Environment, isNew: boolean): Promise<void> {
    const stream = streamOf(environment);
    const last = await this.#deps.ctx.store.lastSeq(stream);
    this.#lastSeqs.set(stream, Math.max(last, this.#lastSeqs.get(stream) ?? 0));
    const readers = await Promise.all(
      this.#consumers.map((consumer) => {
        const startsAtZero = isNew || environment.createdAt > (this.#since.get(consumer.name) ?? '');
        return openReader(consumer, environment, startsAtZero ? 0 : last, this.#deps);
      }),
    );
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
