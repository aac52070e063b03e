import type { Environment } from '../../model/environments/environment.ts';
import type { EventEnvelope, EventType } from '../../model/event.ts';

/** An event as a consumer receives it. */
export interface ConsumedEvent {
  readonly environmentId: string;
  readonly event: EventEnvelope;
}

interface AnyConsumer {
  /** Identifies its cursors, so it must never change. Matches `CONSUMER_NAME`. */
  readonly name: string;
  /** The plugin whose actions it runs: lines of the log about it have the name in `plugin`. */
  readonly plugin?: string;
  /**
   * Called when retention has removed the events from `first` to `last` before they were handled. What it throws is
   * logged.
   */
  onLost?(environmentId: string, first: number, last: number): void;
  /**
   * Whether it handles the events of an environment now. While it does not, they are passed over without being read,
   * and so cost nothing; checked whenever there are new ones. Every event is handled when absent.
   */
  wants?(environment: Environment): Promise<boolean>;
}

/** Something that handles every committed event, one at a time: webhooks, audit. */
export interface Consumer extends AnyConsumer {
  /** Events that are handled at once in one environment, 1 to 64. */
  readonly concurrency: number;
  /** Whether events of one thread are handled one after the other; true if absent. */
  readonly ordered?: boolean;
  /**
   * Milliseconds to wait before each further attempt at an event that failed; after the last one the event is skipped
   * and logged. Null retries forever, with waits that double from one second to a minute; so does an event for which
   * the store refused a write, such as while the disk is full.
   */
  readonly retryDelaysMs: readonly number[] | null;
  /**
   * Handles one event, at least once: after a crash some events come again, with the same `eventId`. Rejects to have it
   * tried again. If `ordered`, events of one thread come in the order of their commits; while one of them waits for a
   * retry, the later ones wait too, and other threads go on.
   *
   * @param signal aborted when the process shuts down: an event that is not finished by then comes again after the next
   *   start
   * @param attempt from 1, counted since the last start
   */
  handle(event: ConsumedEvent, signal: AbortSignal, attempt: number): Promise<void>;
}

/** Something that handles the events of an environment in batches, in order, one batch at a time: notifications. */
export interface BatchConsumer extends AnyConsumer {
  /** The types of events that it handles. Others are passed over without being parsed. */
  readonly types: ReadonlySet<EventType>;
  /**
   * Handles consecutive events of `types`, at most 200, at least once: after a crash or a failure some come again. If
   * it rejects with an error of the store (`isStoreError`), the batch is tried again until it succeeds. After any other
   * error the events are tried one by one, with the waits of `retryDelaysMs`, and one that keeps failing is skipped and
   * logged.
   */
  handleBatch(environment: Environment, events: readonly EventEnvelope[], signal: AbortSignal): Promise<void>;
  /** Milliseconds to wait before each further attempt at an event that fails alone. */
  readonly retryDelaysMs: readonly number[];
}

/** The outcome of an event, or of an attempt at it. */
export type ConsumerOutcome = 'handled' | 'retried' | 'skipped' | 'lost';

/** The form of a consumer's name. */
export const CONSUMER_NAME = /^[a-z][a-z0-9-]{0,63}$/;

const FOREVER_FIRST_MS = 1_000;
const FOREVER_LAST_MS = 60_000;

/** Milliseconds to wait after the failed attempt with this number (from 1); null when there is no further attempt. */
export function retryDelay(retryDelaysMs: readonly number[] | null, attempt: number): number | null {
  if (retryDelaysMs === null) return Math.min(FOREVER_LAST_MS, FOREVER_FIRST_MS * 2 ** (attempt - 1));
  return retryDelaysMs[attempt - 1] ?? null;
}
