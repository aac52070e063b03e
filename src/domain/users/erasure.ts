import type { EventEnvelope } from '../../model/event.ts';
import type { User } from '../../model/user.ts';
import type { Reader, StoredEvent } from '../../ports/store.ts';
import { escapeId, usersOf } from '../records/partitions.ts';
import type { UserView } from './users.ts';

/** How `renderEvent` begins what tells of a user, and how it ends what tells of an erasure: no caller can write either. */
const USER_EVENT_START = '{"type":"user.updated",';
const ERASURE_END = ',"erased":true}}';

type UserEvent = EventEnvelope & { readonly data: UserView };

/** Whether a rendered event tells of a user. */
export function isUserEvent(text: string): boolean {
  return text.startsWith(USER_EVENT_START);
}

/** The id of the user whose erasure a rendered event tells of; null for any other event. */
export function erasedUserOf(text: string): string | null {
  if (!isUserEvent(text) || !text.endsWith(ERASURE_END)) return null;
  return (JSON.parse(text) as UserEvent).data.userId;
}

/**
 * Events of the log of an environment as they may be read now: those of users who have been erased since come without
 * personal data, and otherwise as they were. Of a user who was made anew that holds for the events before.
 */
export async function redactErasedUsers(store: Reader, environmentId: string, events: readonly StoredEvent[]): Promise<readonly StoredEvent[]> {
  if (!events.some(({ text }) => isUserEvent(text))) return events;
  const known = new Map<string, string | null>();
  const readable: StoredEvent[] = [];
  for (const event of events) {
    if (!isUserEvent(event.text)) {
      readable.push(event);
      continue;
    }
    const told = JSON.parse(event.text) as UserEvent;
    const { userId } = told.data;
    if (!known.has(userId)) known.set(userId, await createdAtOf(store, environmentId, userId));
    const since = known.get(userId) ?? null;
    readable.push(since !== null && since <= told.at ? event : { seq: event.seq, text: JSON.stringify({ ...told, data: withoutPersonalData(told.data) }) });
  }
  return readable;
}

/** Since when a user is known, ISO 8601; null for one who is not. */
async function createdAtOf(store: Reader, environmentId: string, userId: string): Promise<string | null> {
  const stored = await store.get(usersOf(environmentId), escapeId(userId));
  return stored === undefined ? null : (JSON.parse(stored) as User).createdAt;
}

/** Names what stays, so that a field that is added to users one day is not shown by oversight. */
function withoutPersonalData({ id, userId, kind, createdAt, updatedAt, erased }: UserView): UserView {
  const nothing = { name: null, avatarUrl: null, kind, metadata: {} };
  const kept = { id, userId, ...nothing, createdAt, updatedAt, firstSeenAt: null, lastSeenAt: null, online: false };
  return erased === undefined ? kept : { ...kept, erased };
}
