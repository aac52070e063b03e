import type { Environment } from '../../model/environments/environment.ts';
import type { Store, StoredEvent } from '../../ports/store.ts';
import { redactErasedUsers } from '../users/erasure.ts';
import { streamOf } from './streams.ts';

/** The bounds of one read. */
export interface EventsPage {
  /** Maximum number of events. */
  readonly limit: number;
  /** As for `Store.events`. */
  readonly maxChars?: number;
}

/**
 * The events of an environment after a position, as every reader of its log gets them: lists, event streams, sockets
 * that resume, consumers, plugins and `collab tail`. Personal data of erased users is removed. In order and without
 * gaps, but the first one is not at `since + 1` if those before it are no longer stored. Empty at the end of the log.
 */
export async function readEvents(
  store: Store,
  environment: Environment,
  since: number,
  { limit, maxChars }: EventsPage,
): Promise<readonly StoredEvent[]> {
  return redactErasedUsers(store, environment.id, await store.events(streamOf(environment), since, limit, maxChars));
}
