import type { Consumer } from '../../../domain/events/consumer.ts';
import { Semaphore } from '../../../lib/concurrency/semaphore.ts';
import type { EventEnvelope } from '../../../model/event.ts';
import type { StoredEvent } from '../../../ports/store.ts';
import { type Delivery, type DeliveryDeps, eventToHandle } from './delivery.ts';
import { attempt } from './event-attempts.ts';

/** Passes each event to a consumer: several at once, those of one thread in order. */
export class SingleEvents implements Delivery {
  readonly #consumer: Consumer;
  readonly #deps: DeliveryDeps;
  readonly #onFinished: () => void;
  readonly #semaphore: Semaphore;
  /** The last task of each thread that has unfinished events; tasks of events without a thread by position. */
  readonly #tasks = new Map<string, Promise<void>>();

  /** @param onFinished called after each event that is finished */
  constructor(consumer: Consumer, deps: DeliveryDeps, onFinished: () => void) {
    this.#consumer = consumer;
    this.#deps = deps;
    this.#onFinished = onFinished;
    this.#semaphore = new Semaphore(consumer.concurrency);
  }

  begin(events: readonly StoredEvent[]): Promise<boolean> {
    for (const stored of events) {
      const event = eventToHandle(this.#deps, stored);
      if (event !== null) this.#begin(stored.seq, event);
      else this.#pass(stored.seq);
    }
    return Promise.resolve(true);
  }

  async ended(): Promise<void> {
    await Promise.all(this.#tasks.values());
  }

  #pass(seq: number): void {
    this.#deps.window.begin(seq);
    this.#deps.window.finish(seq);
    this.#onFinished();
  }

  /**
   * Handles an event once the earlier ones of its thread are finished; at once if it has no thread, or the order does
   * not matter.
   */
  #begin(seq: number, event: EventEnvelope): void {
    this.#deps.window.begin(seq);
    const key = (this.#consumer.ordered === false ? undefined : event.threadId) ?? `#${seq}`;
    const task = (this.#tasks.get(key) ?? Promise.resolve())
      .then(() => this.#handle(seq, event))
      .then(() => {
        if (this.#tasks.get(key) === task) this.#tasks.delete(key);
      });
    this.#tasks.set(key, task);
  }

  async #handle(seq: number, event: EventEnvelope): Promise<void> {
    const { signal, window, environment, onOutcome } = this.#deps;
    const handle = (attempts: number): Promise<void> =>
      this.#semaphore.run(async () => {
        signal.throwIfAborted();
        await this.#consumer.handle({ environmentId: environment.id, event }, signal, attempts);
      });
    const outcome = await attempt(this.#deps, [event], handle, this.#consumer.retryDelaysMs);
    if (outcome === 'aborted') return;
    window.finish(seq);
    onOutcome(outcome === 'failed' ? 'skipped' : 'handled', 1);
    this.#onFinished();
  }
}
