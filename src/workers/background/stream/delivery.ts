import { eventOrNull } from '../../../domain/events/parse-event.ts';
import type { Environment } from '../../../model/environments/environment.ts';
import type { EventEnvelope } from '../../../model/event.ts';
import type { StoredEvent } from '../../../ports/store.ts';
import type { AttemptDeps } from './event-attempts.ts';
import type { ReadWindow } from './read-window.ts';

/** How the events of a stream are passed to a consumer. */
export interface Delivery {
  /** Begins events that follow those before; returns false if they are to be read again instead, a little later. */
  begin(events: readonly StoredEvent[]): Promise<boolean>;
  /** Resolves once the events that were begun are finished, or the process shuts down. */
  ended(): Promise<void>;
}

/** Dependencies of a delivery. */
export interface DeliveryDeps extends AttemptDeps {
  readonly environment: Environment;
  readonly window: ReadWindow;
}

/** The event in a text of the log. Null for a text that is none, which counts as skipped and is logged. */
export function eventToHandle(
  { log, names, onOutcome }: DeliveryDeps,
  { seq, text }: StoredEvent,
): EventEnvelope | null {
  const event = eventOrNull(text);
  if (typeof event?.type !== 'string') {
    log.error({ ...names, seq }, 'a text of the log is no event, and a consumer skips it; see collab doctor --deep');
    onOutcome('skipped', 1);
    return null;
  }
  return event;
}
