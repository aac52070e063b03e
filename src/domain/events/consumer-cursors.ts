import type { Environment } from '../../model/environments/environment.ts';
import type { Reader, Store } from '../../ports/store.ts';
import { consumerCursorsOf, CONSUMERS, ENVIRONMENTS } from '../records/partitions.ts';
import { putRecord, readRecord } from '../records/record.ts';
import { streamOf } from './streams.ts';

/** The position of a consumer in the stream of an environment. */
interface StoredConsumerCursor {
  /** The stream of the position. An environment that was deleted and imported again has a new stream. */
  readonly stream: string;
  readonly seq: number;
}

/**
 * The position up to which a consumer has handled all events of the current stream of an environment; undefined if it
 * has not handled any.
 */
export async function readConsumerCursor(
  reader: Pick<Reader, 'get'>,
  environment: Environment,
  consumer: string,
): Promise<number | undefined> {
  const stored = await readRecord<StoredConsumerCursor>(reader, consumerCursorsOf(environment.id), consumer);
  return stored?.stream === streamOf(environment) ? stored.seq : undefined;
}

/** Stores the position of a consumer. No effect if the environment was deleted. */
export async function writeConsumerCursor(
  store: Store,
  environment: Environment,
  consumer: string,
  seq: number,
): Promise<void> {
  await store.transact(async (tx) => {
    if ((await tx.get(ENVIRONMENTS, environment.id)) === undefined) return;
    const cursor: StoredConsumerCursor = { stream: streamOf(environment), seq };
    putRecord(tx, consumerCursorsOf(environment.id), consumer, cursor);
  });
}

/**
 * Registers a consumer, unless it is registered already. `now` and the result, the time of its registration, are ISO
 * 8601 times.
 */
export async function registerConsumer(store: Store, consumer: string, now: string): Promise<string> {
  return store.transact(async (tx) => {
    const since = await tx.get(CONSUMERS, consumer);
    if (since === undefined) tx.put(CONSUMERS, consumer, now);
    return since ?? now;
  });
}
