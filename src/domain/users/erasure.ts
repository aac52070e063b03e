import type { EventEnvelope } from '../../model/event.ts';
import type { User } from '../../model/user.ts';
import type { Reader, StoredEvent } from '../../ports/store.ts';
import { escapeId, usersOf } from '../records/partitions.ts';
import type { UserView } from './users.ts';

/** The start of a user event, and the end of the event of an erasure, as `renderEvent` writes them. No client can write either. */
const USER_EVENT_START = '{"type":"user.updated",';
const ERASURE_END = ',"erased":true}}';

type UserEvent = EventEnvelope & { readonly data: UserView };

/** Whether a rendered event is about a user. */
export function isUserEvent(text: string): boolean {
  return text.startsWith(USER_EVENT_START);
}

/** The id of the user in the rendered event of an erasure; null for any other event. */
export function erasedUserOf(text: string): string | null {
  if (!isUserEvent(text) || !text.endsWith(ERASURE_END)) return null;
  return (JSON.parse(text) as UserEvent).data.userId;
}

/**
 * Removes the personal data of erased users from events about them. If such a user was created again, the events since then keep
 * it. Other events are returned unchanged.
 */
export async function redactErasedUsers(store: Reader, environmentId: string, events: readonly StoredEvent[]): Promise<readonly StoredEvent[]> {
  if (!events.some(({ text }) => isUserEvent(text))) return events;
  const createdAtById = new Map<string, string | null>();
  const redacted: StoredEvent[] = [];
  for (const event of events) {
    if (!isUserEvent(event.text)) {
      redacted.push(event);
      continue;
    }
    const envelope = JSON.parse(event.text) as UserEvent;
    const { userId } = envelope.data;
    if (!createdAtById.has(userId)) createdAtById.set(userId, await createdAtOf(store, environmentId, userId));
    const createdAt = createdAtById.get(userId) ?? null;
    const isCurrent = createdAt !== null && createdAt <= envelope.at;
    redacted.push(isCurrent ? event : { seq: event.seq, text: JSON.stringify({ ...envelope, data: withoutPersonalData(envelope.data) }) });
  }
  return redacted;
}

/** When a user was created, ISO 8601; null for an unknown user. */
async function createdAtOf(store: Reader, environmentId: string, userId: string): Promise<string | null> {
  const stored = await store.get(usersOf(environmentId), escapeId(userId));
  return stored === undefined ? null : (JSON.parse(stored) as User).createdAt;
}

/** Lists the fields to keep, so that a field that is added to users later is not shown by mistake. */
function withoutPersonalData({ id, userId, kind, createdAt, updatedAt, erased }: UserView): UserView {
  const view = { id, userId, name: null, avatarUrl: null, kind, metadata: {}, createdAt, updatedAt, firstSeenAt: null, lastSeenAt: null, online: false };
  return erased === undefined ? view : { ...view, erased };
}
