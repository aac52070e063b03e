import type { Comment } from '../../model/comment.ts';
import type { SubscriptionState } from '../../model/notification.ts';
import type { Transaction } from '../../ports/store.ts';
import type { Context } from '../context.ts';
import { COMMENT_PREFIX, escapeId, followersOf, threadRecordsOf, unescapeId } from '../records/partitions.ts';
import { parseRecord, putRecord, scanRecords } from '../records/record.ts';
import { scanEntries } from '../records/scan.ts';

// Who follows a thread is kept up to date event by event, so that a new comment does not read all earlier ones.

const PARTICIPANT_PREFIX = 'p/';
/** Prefix of the keys of the users' choices. */
export const SUBSCRIPTION_PREFIX = 's/';
/**
 * Exists once all participants are recorded: threads of imports and of earlier versions have comments without such
 * records.
 */
const COMPLETE_KEY = 'complete';

/** That a user has commented in a thread. */
export interface Participation {
  /** Position of the event of their first comment; 0 if the record was made from the comment and not from its event. */
  readonly seq: number;
  /** ISO time of that comment. */
  readonly at: string;
}

/** The choice of a user for a thread. */
export interface ThreadSubscription {
  readonly state: SubscriptionState;
  /** ISO time of the choice. */
  readonly at: string;
}

/** The followers of one thread, by user id. */
export interface Followers {
  /** Whether every author of a comment has a record, as by `markComplete`; otherwise read `findParticipants` too. */
  readonly isComplete: boolean;
  readonly participants: ReadonlyMap<string, Participation>;
  readonly choices: ReadonlyMap<string, ThreadSubscription>;
}

/** The recorded followers of a thread, read once per change. */
export function readFollowers({ store }: Context, environmentId: string, threadId: string): Promise<Followers> {
  const partition = followersOf(environmentId, threadId);
  return store.cached(`followers ${partition}`, [partition], async () => {
    const participants = new Map<string, Participation>();
    const choices = new Map<string, ThreadSubscription>();
    let isComplete = false;
    for await (const { key, value } of scanEntries(store, partition)) {
      if (key === COMPLETE_KEY) isComplete = true;
      else if (key.startsWith(PARTICIPANT_PREFIX))
        participants.set(unescapeId(key.slice(PARTICIPANT_PREFIX.length)), parseParticipation(value));
      else choices.set(unescapeId(key.slice(SUBSCRIPTION_PREFIX.length)), parseRecord<ThreadSubscription>(value));
    }
    return { isComplete, participants, choices };
  });
}

/**
 * The authors of the comments of a thread up to a time (ISO), with the times of their first ones. Reads all its
 * comments.
 */
export async function findParticipants(
  { store }: Context,
  environmentId: string,
  threadId: string,
  until: string,
): Promise<Map<string, Participation>> {
  const participants = new Map<string, Participation>();
  const partition = threadRecordsOf(environmentId, threadId);
  for await (const { value } of scanRecords<Comment>(store, partition, COMMENT_PREFIX)) {
    const { userId, createdAt } = value;
    if (createdAt <= until && !participants.has(userId)) participants.set(userId, { seq: 0, at: createdAt });
  }
  return participants;
}

/** Records that a user has commented. */
export function putParticipant(
  tx: Transaction,
  environmentId: string,
  threadId: string,
  userId: string,
  { seq, at }: Participation,
): void {
  tx.put(followersOf(environmentId, threadId), PARTICIPANT_PREFIX + escapeId(userId), `${seq} ${at}`);
}

/** Marks the participants of a thread as complete: each author of one of its comments has a record. */
export function markComplete(tx: Transaction, environmentId: string, threadId: string): void {
  tx.put(followersOf(environmentId, threadId), COMPLETE_KEY, '1');
}

/** Stores the choice of a user for a thread. */
export function putThreadSubscription(
  tx: Transaction,
  environmentId: string,
  threadId: string,
  userId: string,
  choice: ThreadSubscription,
): void {
  putRecord(tx, followersOf(environmentId, threadId), SUBSCRIPTION_PREFIX + escapeId(userId), choice);
}

function parseParticipation(text: string): Participation {
  const space = text.indexOf(' ');
  return { seq: Number(text.slice(0, space)), at: text.slice(space + 1) };
}
