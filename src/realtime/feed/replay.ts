import { withoutErased } from '../../domain/users/erasure.ts';
import { withFileUrls } from '../../domain/files/file-urls.ts';
import { epochOf, streamOf } from '../../domain/events/streams.ts';
import { Semaphore } from '../../lib/semaphore.ts';
import type { Environment } from '../../model/environment.ts';
import { roomOfEvent } from '../../model/event.ts';
import { inScope } from '../../model/room.ts';
import type { Store, StoredEvent } from '../../ports/store.ts';
import type { Connection } from '../session/connection.ts';
import { SLOW_CONSUMER } from '../socket/socket-writer.ts';
import { seqFrame } from '../socket/protocol.ts';

/** Where a client was when it was last connected. */
export interface ResumePoint {
  readonly epoch: string;
  readonly seq: number;
}

/** A client that missed more than this reloads instead of resuming. */
export const MAX_RESUME_GAP = 1_000;
/** Events read from the log at a time. */
const SLICE = 100;

/** A thousand clients that come back at once must not all hold a slice of the log in memory. */
const reads = new Semaphore(32);

/** The resume point in what a client sent; null when there is none that could be used: the client then reloads. */
export function resumePoint(epoch: unknown, seq: unknown): ResumePoint | null {
  if (typeof epoch !== 'string' || epoch === '') return null;
  return Number.isSafeInteger(seq) && (seq as number) >= 0 ? { epoch, seq: seq as number } : null;
}

/** Whether everything that was missed since `point` can be replayed: same stream, still kept, and not too much. */
export async function isRecoverable(store: Store, environment: Environment, point: ResumePoint): Promise<boolean> {
  if (point.epoch !== epochOf(store, environment)) return false;
  const stream = streamOf(environment);
  if (point.seq > (await store.lastSeq(stream))) await store.settle();
  const [oldest, last] = await Promise.all([store.oldestSeq(stream), store.lastSeq(stream)]);
  return point.seq <= last && point.seq >= oldest - 1 && last - point.seq <= MAX_RESUME_GAP;
}

/**
 * Sends a connection every event from its `position` up to what its feed has delivered, then lets it follow live, in
 * the turn in which the two positions are equal. As slow as the client reads. Closes with 1013 when the log has
 * forgotten what the client still lacks. Rejects when the store can't be read.
 */
export async function catchUp(store: Store, connection: Connection): Promise<void> {
  const { feed, writer } = connection;
  let unmarked = false;
  while (writer.isOpen && connection.position < feed.delivered) {
    if (!writer.keepsUp) {
      await writer.drained();
      continue;
    }
    const events = await reads.run(async () => withoutErased(store, feed.environment.id, await store.events(feed.stream, connection.position, SLICE)));
    if (!writer.isOpen) return;
    if (events[0]?.seq !== connection.position + 1) {
      writer.close(SLOW_CONSUMER.code, SLOW_CONSUMER.reason);
      return;
    }
    unmarked = replaySlice(connection, events);
  }
  if (unmarked) writer.send(seqFrame(connection.position));
  feed.attach(connection);
}

/** Sends what of a slice the client may see and takes. Returns whether the last events of it were not for the client. */
function replaySlice(connection: Connection, events: readonly StoredEvent[]): boolean {
  const { writer, rooms } = connection;
  const visible = events.filter((event) => isVisible(event, rooms));
  const sent = writer.sendAtItsPace(visible.map((event) => withFileUrls(event.text, writer.baseUrl)));
  const last = sent === visible.length ? events.at(-1) : visible[sent - 1];
  if (last !== undefined) connection.position = last.seq;
  return last !== visible[sent - 1];
}

function isVisible(event: StoredEvent, rooms: Connection['rooms']): boolean {
  if (rooms === null) return true;
  const room = roomOfEvent(event.text);
  return room === null || inScope(rooms, room);
}
