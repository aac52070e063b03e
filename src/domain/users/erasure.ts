import { type EventEnvelope, typeOfEvent } from '../../model/event.ts';
import type { ContentHeld, ContentReported } from '../../model/moderation.ts';
import type { User } from '../../model/user.ts';
import type { Reader, StoredEvent } from '../../ports/store.ts';
import { parseEvent } from '../events/parse-event.ts';
import { escapeId, usersOf } from '../records/partitions.ts';
import { readRecord } from '../records/record.ts';
import type { UserView } from './users.ts';

type UserEvent = EventEnvelope & { readonly type: 'user.updated'; readonly data: UserView };
type HeldEvent = EventEnvelope & {
  readonly type: 'moderation.held' | 'moderation.reported';
  readonly data: ContentHeld & Partial<ContentReported>;
};
/** An event with personal data, or with what moderators held of a user or users reported. */
type PersonalEvent = UserEvent | HeldEvent;

/** The types of `PersonalEvent`. */
const personalTypes: ReadonlySet<string> = new Set<PersonalEvent['type']>([
  'user.updated',
  'moderation.held',
  'moderation.reported',
]);

const isPersonal = (text: string): boolean => personalTypes.has(typeOfEvent(text));

/** Whether a rendered event is about a user. */
export function isUserEvent(text: string): boolean {
  return typeOfEvent(text) === 'user.updated';
}

/** The id of the user in the rendered event of an erasure; null for any other event. */
export function erasedUserOf(text: string): string | null {
  if (!isUserEvent(text)) return null;
  const { userId, erased } = parseEvent<UserEvent>(text).data;
  return erased === true ? userId : null;
}

/**
 * Removes the personal data of erased users from events about them, and what moderators held of them or users reported.
 * If such a user was created again, the events since then keep it. Other events are returned unchanged.
 */
export async function redactErasedUsers(
  store: Reader,
  environmentId: string,
  events: readonly StoredEvent[],
): Promise<readonly StoredEvent[]> {
  if (!events.some(({ text }) => isPersonal(text))) return events;
  const createdAtById = new Map<string, string | null>();
  const redacted: StoredEvent[] = [];
  for (const event of events) {
    if (!isPersonal(event.text)) {
      redacted.push(event);
      continue;
    }
    const envelope = parseEvent<PersonalEvent>(event.text);
    const { userId } = envelope.data;
    if (!createdAtById.has(userId)) createdAtById.set(userId, await createdAtOf(store, environmentId, userId));
    const createdAt = createdAtById.get(userId) ?? null;
    const isCurrent = createdAt !== null && createdAt <= envelope.at;
    redacted.push(
      isCurrent
        ? event
        : { seq: event.seq, text: JSON.stringify({ ...envelope, data: withoutPersonalData(envelope) }) },
    );
  }
  return redacted;
}

/** When a user was created, ISO 8601; null for an unknown user. */
async function createdAtOf(store: Reader, environmentId: string, userId: string): Promise<string | null> {
  return (await readRecord<User>(store, usersOf(environmentId), escapeId(userId)))?.createdAt ?? null;
}

function withoutPersonalData(event: PersonalEvent): unknown {
  if (event.type === 'user.updated') return withoutProfile(event.data);
  const { comment: _, thread: __, ...notice } = event.data;
  return notice;
}

/** Lists the fields to keep, so that a field that is added to users later is not shown by mistake. */
function withoutProfile({ id, userId, kind, createdAt, updatedAt, erased }: UserView): UserView {
  const view = {
    id,
    userId,
    name: null,
    avatarUrl: null,
    kind,
    metadata: {},
    createdAt,
    updatedAt,
    firstSeenAt: null,
    lastSeenAt: null,
    online: false,
  };
  return erased === undefined ? view : { ...view, erased };
}
