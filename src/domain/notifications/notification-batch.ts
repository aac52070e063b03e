import type { Comment } from '../../model/comment.ts';
import type { Environment } from '../../model/environments/environment.ts';
import type { EventEnvelope } from '../../model/event.ts';
import type { Transaction } from '../../ports/store.ts';
import type { Context } from '../context.ts';
import {
  findParticipants,
  type Followers,
  markComplete,
  type Participation,
  putParticipant,
  readFollowers,
} from './followers.ts';
import { isShown, readCurrent, readyNotifications, type Recipient } from './create-notifications.ts';
import { decideNotification, readRecipient, type RecipientUser } from './recipients.ts';

/** Notifications after which a batch is written. */
const FULL = 1_000;

/** The followers of a thread, and those whom events of this batch add. */
interface ThreadFollowers {
  readonly recorded: Followers;
  readonly added: Map<string, Participation>;
}

/** A comment, and the users to notify of it. */
interface Group {
  readonly event: EventEnvelope;
  readonly comment: Comment;
  readonly recipients: readonly Recipient[];
}

/**
 * Collects the notifications of consecutive events, and writes them in one commit. What is known of users and followers
 * is read once per batch.
 */
export class NotificationBatch {
  readonly #ctx: Context;
  readonly #environment: Environment;
  readonly #followers = new Map<string, ThreadFollowers>();
  /** The recorded followers that `prepare` has read, by thread. */
  readonly #recorded = new Map<string, Followers>();
  readonly #users = new Map<string, RecipientUser>();
  #groups: Group[] = [];
  #writes: ((tx: Transaction) => void)[] = [];
  #size = 0;

  constructor(ctx: Context, environment: Environment) {
    this.#ctx = ctx;
    this.#environment = environment;
  }

  /** Whether the batch should be written before more events are added. */
  get isFull(): boolean {
    return this.#size >= FULL || this.#writes.length >= FULL;
  }

  /**
   * Reads what `add` needs to know for these comments, all at once: from a store on another machine, one after another
   * would take longer than everything else.
   */
  async prepare(comments: readonly Comment[]): Promise<void> {
    const threads = [...new Set(comments.map(({ threadId }) => threadId))];
    const users = new Set(comments.flatMap(({ userId, mentions }) => [userId, ...mentions]));
    const read = async (threadId: string): Promise<void> => {
      const recorded = await readFollowers(this.#ctx, this.#environment.id, threadId);
      this.#recorded.set(threadId, recorded);
      for (const userId of recorded.participants.keys()) users.add(userId);
      for (const [userId, { state }] of recorded.choices) if (state === 'subscribed') users.add(userId);
    };
    await Promise.all(threads.map(read));
    await Promise.all([...users].map((userId) => this.#userOf(userId)));
  }

  /** Adds what the creation of a comment causes. `isFirst` says whether the comment begins its thread. */
  async add(event: EventEnvelope, comment: Comment, isFirst: boolean): Promise<void> {
    const followers = await this.#followersOf(comment, isFirst);
    const recipients = await this.#recipients(event, comment, followers);
    if (recipients.length > 0) {
      this.#groups.push({ event, comment, recipients });
      this.#size += recipients.length;
    }
    await this.#userOf(comment.userId);
    this.#addParticipant(followers, comment.threadId, comment.userId, { seq: event.seq, at: comment.createdAt });
  }

  /** Writes everything that was added, and empties the batch. */
  async commit(): Promise<void> {
    const groups = this.#groups;
    const writes = this.#writes;
    this.#groups = [];
    this.#writes = [];
    this.#size = 0;
    if (groups.length === 0 && writes.length === 0) return;
    await this.#ctx.store.transact(async (tx) => {
      for (const write of writes) write(tx);
      const ready = await Promise.all(
        groups.map(async ({ event, comment, recipients }) => {
          const current = await readCurrent(tx, this.#environment.id, comment);
          if (current === undefined) return undefined;
          return readyNotifications(tx, this.#environment, event, current, comment.userId, recipients);
        }),
      );
      // In the order of the comments, as their events are.
      for (const create of ready) create?.();
    });
  }

  async #followersOf({ threadId, createdAt }: Comment, isFirst: boolean): Promise<ThreadFollowers> {
    const known = this.#followers.get(threadId);
    if (known !== undefined) return known;
    const followers = {
      recorded: this.#recorded.get(threadId) ?? (await readFollowers(this.#ctx, this.#environment.id, threadId)),
      added: new Map<string, Participation>(),
    };
    this.#followers.set(threadId, followers);
    if (followers.recorded.isComplete) return followers;
    this.#writes.push((tx) => markComplete(tx, this.#environment.id, threadId));
    if (isFirst) return followers;
    for (const [userId, participation] of await findParticipants(
      this.#ctx,
      this.#environment.id,
      threadId,
      createdAt,
    )) {
      // Comments of the same millisecond may be later ones.
      if (participation.at < createdAt) this.#addParticipant(followers, threadId, userId, participation);
    }
    return followers;
  }

  #addParticipant(
    { recorded, added }: ThreadFollowers,
    threadId: string,
    userId: string,
    participation: Participation,
  ): void {
    const current = added.get(userId) ?? recorded.participants.get(userId);
    // One from before an erasure does not count for a user who came back: the next comment replaces it.
    if (current !== undefined && !this.#isOutdated(userId, current, participation)) return;
    added.set(userId, participation);
    this.#writes.push((tx) => putParticipant(tx, this.#environment.id, threadId, userId, participation));
  }

  #isOutdated(userId: string, current: Participation, next: Participation): boolean {
    const createdAt = this.#users.get(userId)?.user?.createdAt;
    return createdAt !== undefined && current.at < createdAt && createdAt <= next.at;
  }

  async #recipients(
    event: EventEnvelope,
    comment: Comment,
    { recorded, added }: ThreadFollowers,
  ): Promise<Recipient[]> {
    const mentions = new Set(comment.mentions);
    const candidates = new Set(mentions);
    for (const participants of [recorded.participants, added])
      for (const [userId, { seq }] of participants) if (seq < event.seq) candidates.add(userId);
    for (const [userId, { state }] of recorded.choices) if (state === 'subscribed') candidates.add(userId);
    const recipients: Recipient[] = [];
    for (const userId of candidates) {
      const { user, inApp } = await this.#userOf(userId);
      const participation = added.get(userId) ?? recorded.participants.get(userId);
      const decision = decideNotification({
        user,
        roomId: event.roomId ?? '',
        isActor: userId === comment.userId,
        isMentioned: mentions.has(userId),
        participation: participation !== undefined && participation.seq < event.seq ? participation : undefined,
        choice: recorded.choices.get(userId),
        at: event.at,
      });
      if (!('kind' in decision)) continue;
      const recipient = { userId, kind: decision.kind, inApp: inApp[decision.kind] };
      recipients.push({
        ...recipient,
        inApp: await isShown(this.#ctx, this.#environment, event, comment.id, comment.userId, recipient),
      });
    }
    return recipients;
  }

  async #userOf(userId: string): Promise<RecipientUser> {
    let user = this.#users.get(userId);
    if (user === undefined) {
      user = await readRecipient(this.#ctx.store, this.#environment.id, userId);
      this.#users.set(userId, user);
    }
    return user;
  }
}
