import type { BatchConsumer } from '../../../domain/events/consumer.ts';
import { eventOrNull } from '../../../domain/events/parse-event.ts';
import type { CpuWatch } from '../../../lib/process/cpu-contention.ts';
import type { Clock } from '../../../lib/clock.ts';
import { type EventEnvelope, type EventType, typeOfEvent } from '../../../model/event.ts';
import type { StoredEvent } from '../../../ports/store.ts';
import { type Delivery, type DeliveryDeps, eventToHandle } from './delivery.ts';
import { attempt } from './event-attempts.ts';

/** Minimum number of waiting events to pause for. */
const MIN_YIELD_EVENTS = 50;
/** Age of the first waiting event, in milliseconds, from which there is no pause. */
const MAX_YIELD_AGE_MS = 5_000;

/** Dependencies of batches. */
export interface EventBatchesDeps extends DeliveryDeps {
  readonly clock: Clock;
  readonly cpu: Pick<CpuWatch, 'isContended'>;
}

/** Passes consecutive events to a consumer as one batch, one batch at a time. */
export class EventBatches implements Delivery {
  readonly #consumer: BatchConsumer;
  readonly #deps: EventBatchesDeps;

  constructor(consumer: BatchConsumer, deps: EventBatchesDeps) {
    this.#consumer = consumer;
    this.#deps = deps;
  }

  async begin(events: readonly StoredEvent[]): Promise<boolean> {
    if (this.#shouldYield(events)) return false;
    const { window, onOutcome } = this.#deps;
    const [first, last] = [events[0]?.seq ?? 0, events.at(-1)?.seq ?? 0];
    const wanted = events.filter(({ text }) => this.#consumer.types.has(typeOfEvent(text) as EventType));
    const handled = wanted.map((event) => eventToHandle(this.#deps, event)).filter((event) => event !== null);
    window.begin(first, last);
    const skipped = handled.length === 0 ? 0 : await this.#handle(handled);
    if (skipped === null) return true;
    window.finish(first);
    onOutcome('handled', events.length - skipped - (wanted.length - handled.length));
    return true;
  }

  ended(): Promise<void> {
    return Promise.resolve();
  }

  /**
   * Whether to pause before handling events, so that requests go first. For few events the check costs more than
   * handling them.
   */
  #shouldYield(events: readonly StoredEvent[]): boolean {
    const [first] = events;
    const { clock, cpu } = this.#deps;
    return first !== undefined && events.length >= MIN_YIELD_EVENTS && isRecent(first, clock.now()) && cpu.isContended;
  }

  /**
   * Returns how many events were skipped because they kept failing; null if the process shuts down before all are
   * finished.
   */
  async #handle(events: readonly EventEnvelope[]): Promise<number | null> {
    const { environment, signal, onOutcome } = this.#deps;
    const { retryDelaysMs } = this.#consumer;
    const handle = (): Promise<void> => this.#consumer.handleBatch(environment, events, signal);
    const outcome = await attempt(this.#deps, events, handle, events.length > 1 ? [] : retryDelaysMs);
    if (outcome !== 'failed') return outcome === 'handled' ? 0 : null;
    if (events.length > 1) return this.#handleSingly(events);
    onOutcome('skipped', 1);
    return 1;
  }

  async #handleSingly(events: readonly EventEnvelope[]): Promise<number | null> {
    let skipped = 0;
    for (const event of events) {
      const outcome = await this.#handle([event]);
      if (outcome === null) return null;
      skipped += outcome;
    }
    return skipped;
  }
}

/** Whether an event may still wait. One from the future, after the clock was set back, may not. */
function isRecent({ text }: StoredEvent, now: number): boolean {
  const age = now - Date.parse(eventOrNull(text)?.at ?? '');
  return age >= 0 && age < MAX_YIELD_AGE_MS;
}
