import type { EventEnvelope } from '../../model/event.ts';

/** An event as a consumer receives it. */
export interface ConsumedEvent {
  readonly environmentId: string;
  readonly event: EventEnvelope;
}

/** Something that handles every committed event: notifications, webhooks, audit. */
export interface Consumer {
  /** Identifies its cursors, so it must never change. Matches `CONSUMER_NAME`. */
  readonly name: string;
  /** Events that are handled at once in one environment, 1 to 64. Events of one thread are never among them together. */
  readonly concurrency: number;
  /**
   * Milliseconds to wait before each further attempt at an event that failed; after the last one the event is skipped and
   * logged. Null retries forever, with waits that double from one second to a minute.
   */
  readonly retryDelaysMs: readonly number[] | null;
  /**
   * Handles one event, at least once: after a crash some events come again, with the same `eventId`. Rejects to have it
   * tried again. Events of one thread come in the order of their commits; while one of them waits for a retry, the later
   * ones wait too, and other threads go on.
   *
   * @param signal aborted when the process shuts down: an event that is not finished by then comes again after the next start
   */
  handle(event: ConsumedEvent, signal: AbortSignal): Promise<void>;
  /** Called when retention has removed the events from `first` to `last` before they were handled. What it throws is logged. */
  onLost?(environmentId: string, first: number, last: number): void;
}

/** The form of a consumer's name. */
export const CONSUMER_NAME = /^[a-z][a-z0-9-]{0,63}$/;

const FOREVER_FIRST_MS = 1_000;
const FOREVER_LAST_MS = 60_000;

/** Milliseconds to wait after the failed attempt with this number (from 1); null when there is no further attempt. */
export function retryDelay({ retryDelaysMs }: Pick<Consumer, 'retryDelaysMs'>, attempt: number): number | null {
  if (retryDelaysMs === null) return Math.min(FOREVER_LAST_MS, FOREVER_FIRST_MS * 2 ** (attempt - 1));
  return retryDelaysMs[attempt - 1] ?? null;
}
