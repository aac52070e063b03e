import type { EventEnvelope } from '../../model/event.ts';

/**
 * The envelope of an event of the log, whose text is what clients receive. The caller has recognised the type by
 * `typeOfEvent`, so that events that do not concern it are not parsed.
 */
export function parseEvent<E extends EventEnvelope = EventEnvelope>(text: string): E {
  return JSON.parse(text) as E;
}
