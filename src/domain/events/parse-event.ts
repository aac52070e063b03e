import type { EventEnvelope } from '../../model/event.ts';
import { jsonOrUndefined } from '../input/json.ts';

/**
 * As `parseEvent`; null for a text without the time of an event, as another program or a damaged restore may have
 * written it. For readers that continue after it, such as consumers.
 */
export function eventOrNull(text: string): EventEnvelope | null {
  const value = jsonOrUndefined(text);
  return typeof value === 'object' && value !== null && 'at' in value && typeof value.at === 'string'
    ? (value as EventEnvelope)
    : null;
}

/**
 * The envelope of an event of the log, whose text is what clients receive. The caller has recognised the type by
 * `typeOfEvent`, so that events that do not concern it are not parsed.
 */
export function parseEvent<E extends EventEnvelope = EventEnvelope>(text: string): E {
  return JSON.parse(text) as E;
}
