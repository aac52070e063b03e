import type { Environment } from '../../../model/environments/environment.ts';
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
