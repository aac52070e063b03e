import { timestamp } from '../../lib/clock.ts';
import { newId } from '../../lib/ids.ts';
import type { Environment } from '../../model/environments/environment.ts';
import { type EventDraft, type EventType, renderEvent, type Via } from '../../model/event.ts';
import type { Transaction } from '../../ports/store.ts';
import { streamOf } from './streams.ts';

/** A change of which an event is emitted. */
export interface Change {
  readonly type: EventType;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly roomId: string | null;
  readonly threadId: string | null;
  /** The only user who receives the event, besides backends; everyone if absent. */
  readonly receiverId?: string;
  /** The user who made the change; null for a backend that acts as no user. */
  readonly userId: string | null;
  readonly via: Via;
  /** JSON text. */
  readonly data: string;
}

/** Appends the event of a change to the stream of the environment in the commit of `tx`. */
export function emitChange(tx: Transaction, environment: Environment, change: Change): void {
  const draft: EventDraft = {
    type: change.type,
    eventId: newId('evt_', change.at),
    at: timestamp(change.at),
    roomId: change.roomId,
    threadId: change.threadId,
    userId: change.receiverId,
    actor: { userId: change.userId, via: change.via },
    data: change.data,
  };
  tx.emit(streamOf(environment), (seq) => renderEvent(draft, seq));
}
