import type { Environment } from '../../model/environment.ts';
import type { Reader, Store } from '../../ports/store.ts';
import { cursorsOf, CONSUMERS, ENVIRONMENTS } from '../records/partitions.ts';
import { streamOf } from './streams.ts';

/** How far a consumer has come in the stream of an environment. */
interface StoredCursor {
  /** The stream that the position is of: a deleted and imported environment has a new one. */
  readonly stream: string;
  readonly seq: number;
}

/**
 * The position up to which a consumer has handled every event of the current stream of an environment; undefined when it
 * has never handled one.
 */
export async function readCursor(reader: Pick<Reader, 'get'>, environment: Environment, consumer: string): Promise<number | undefined> {
  const stored = await reader.get(cursorsOf(environment.id), consumer);
  if (stored === undefined) return undefined;
  const { stream, seq } = JSON.parse(stored) as StoredCursor;
  return stream === streamOf(environment) ? seq : undefined;
}

/** Stores the position of a consumer. Does nothing once the environment has been deleted. */
export async function writeCursor(store: Store, environment: Environment, consumer: string, seq: number): Promise<void> {
  await store.transact(async (tx) => {
    if ((await tx.get(ENVIRONMENTS, environment.id)) === undefined) return;
    const cursor: StoredCursor = { stream: streamOf(environment), seq };
    tx.put(cursorsOf(environment.id), consumer, JSON.stringify(cursor));
  });
}

/** Records that a consumer exists, unless it is recorded. Returns since when it does, as an ISO 8601 time. */
export async function registerConsumer(store: Store, consumer: string, now: string): Promise<string> {
  return store.transact(async (tx) => {
    const since = await tx.get(CONSUMERS, consumer);
    if (since === undefined) tx.put(CONSUMERS, consumer, now);
    return since ?? now;
  });
}
