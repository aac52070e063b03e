import type { Context } from '../../../domain/context.ts';
import { roomRecordsOf, roomsOf, STATS_KEY, unescapeId, usersOf } from '../../../domain/records/partitions.ts';
import { streamOf } from '../../../domain/events/streams.ts';
import type { Environment } from '../../../model/environments/environment.ts';

/** How many things an environment contains. */
export interface Counts {
  readonly rooms: number;
  readonly threads: number;
  readonly users: number;
  /** The position of its last event. */
  readonly seq: number;
}

/** Counts the contents of an environment. Reads a record per room. */
export async function countEnvironment({ store }: Context, environment: Environment): Promise<Counts> {
  const { id } = environment;
  const rooms = await store.range(roomsOf(id));
  const users = await store.range(usersOf(id));
  let threads = 0;
  for (const { value } of rooms) {
    const stats = await store.get(roomRecordsOf(id, unescapeId(value)), STATS_KEY);
    if (stats !== undefined) threads += (JSON.parse(stats) as { threadCount: number }).threadCount;
  }
  return { rooms: rooms.length, threads, users: users.length, seq: await store.lastSeq(streamOf(environment)) };
}
