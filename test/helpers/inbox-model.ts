import type { NotificationKind } from '../../src/model/notification.ts';

/** A notification of the model. */
export interface ModelItem {
  readonly commentId: string;
  readonly threadId: string;
  kind: NotificationKind;
  shown: boolean;
  read: boolean;
  readonly at: number;
  updatedAt: number;
}

interface ModelUser {
  readonly since: number;
  rooms: readonly string[] | null;
  inApp: Record<NotificationKind, boolean>;
}

interface ModelComment {
  readonly id: string;
  readonly userId: string;
  readonly at: number;
  readonly told: Set<string>;
}

interface ModelThread {
  readonly roomId: string;
  /** All comments ever, also deleted ones. */
  readonly history: ModelComment[];
  readonly choices: Map<string, { readonly action: string; readonly at: number }>;
}

/**
 * The rules of docs/notifications.md, as simply as they can be written: it remembers everything, and searches all of
 * it.
 */
export class InboxModel {
  readonly users = new Map<string, ModelUser>();
  readonly threads = new Map<string, ModelThread>();
  readonly inboxes = new Map<string, ModelItem[]>();

  addUser(userId: string, since: number): void {
    this.users.set(userId, { since, rooms: null, inApp: { mention: true, reply: true } });
  }

  erase(userId: string): void {
    this.users.delete(userId);
    this.inboxes.delete(userId);
  }

  addThread(threadId: string, roomId: string): void {
    this.threads.set(threadId, { roomId, history: [], choices: new Map() });
  }

  addComment(threadId: string, id: string, userId: string, mentions: readonly string[], at: number): void {
    const thread = this.#thread(threadId);
    const comment: ModelComment = { id, userId, at, told: new Set() };
    for (const candidate of new Set([...mentions, ...this.users.keys()])) {
      if (candidate === userId) continue;
      const user = this.users.get(candidate);
      const choice = this.#choice(thread, candidate);
      const follows =
        user !== undefined &&
        (choice === 'subscribe' ||
          (choice !== 'unsubscribe' &&
            thread.history.some((earlier) => earlier.userId === candidate && earlier.at >= user.since)));
      if (mentions.includes(candidate)) this.#tell(thread, threadId, comment, candidate, 'mention', at);
      else if (follows) this.#tell(thread, threadId, comment, candidate, 'reply', at);
    }
    thread.history.push(comment);
  }

  edit(threadId: string, id: string, mentions: readonly string[], at: number): void {
    const thread = this.#thread(threadId);
    const comment = thread.history.find((candidate) => candidate.id === id);
    if (comment === undefined) throw new Error(`the model has no comment ${id}`);
    for (const userId of this.inboxes.keys())
      if (!mentions.includes(userId)) this.#withdraw(thread, comment, userId, at);
    for (const userId of mentions) {
      if (userId === comment.userId) continue;
      if (!comment.told.has(userId)) {
        this.#tell(thread, threadId, comment, userId, 'mention', at);
        continue;
      }
      const items = this.inbox(userId).filter(({ commentId }) => commentId === id);
      if (items.length > 0 && items.every(({ kind, read }) => kind === 'reply' && read)) {
        this.#tell(thread, threadId, comment, userId, 'mention', at);
        continue;
      }
      const item = items.find(({ read }) => !read);
      if (item === undefined || !this.#mayTell(thread, userId)) continue;
      item.kind = 'mention';
      item.updatedAt = at;
      item.shown ||= this.users.get(userId)?.inApp.mention ?? true;
    }
  }

  choose(threadId: string, userId: string, action: string, at: number): void {
    this.#thread(threadId).choices.set(userId, { action, at });
  }

  deleteComment(id: string): void {
    for (const [userId, items] of this.inboxes)
      this.inboxes.set(
        userId,
        items.filter(({ commentId }) => commentId !== id),
      );
  }

  deleteThread(id: string): void {
    this.threads.delete(id);
    for (const [userId, items] of this.inboxes)
      this.inboxes.set(
        userId,
        items.filter(({ threadId }) => threadId !== id),
      );
  }

  inbox(userId: string): ModelItem[] {
    const items = this.inboxes.get(userId) ?? [];
    this.inboxes.set(userId, items);
    return items;
  }

  /** Takes back what an edit no longer mentions, unless the user follows the thread: then it is a reply. */
  #withdraw(thread: ModelThread, comment: ModelComment, userId: string, at: number): void {
    for (const item of this.inbox(userId)) {
      if (item.commentId !== comment.id || item.kind !== 'mention' || item.read) continue;
      if (item.at === comment.at && this.#mayTell(thread, userId) && this.#follows(thread, comment, userId)) {
        item.kind = 'reply';
        item.updatedAt = at;
        item.shown &&= this.users.get(userId)?.inApp.reply ?? true;
      } else {
        this.inboxes.set(
          userId,
          this.inbox(userId).filter((other) => other !== item),
        );
        comment.told.delete(userId);
      }
    }
  }

  /** Whether a user followed the thread when the comment was written, by the choices of now. */
  #follows(thread: ModelThread, { at }: ModelComment, userId: string): boolean {
    const user = this.users.get(userId);
    if (user === undefined) return false;
    const choice = this.#choice(thread, userId);
    if (choice === 'subscribe' && (thread.choices.get(userId)?.at ?? Infinity) <= at) return true;
    return (
      choice !== 'unsubscribe' &&
      thread.history.some((earlier) => earlier.userId === userId && earlier.at < at && earlier.at >= user.since)
    );
  }

  #tell(
    thread: ModelThread,
    threadId: string,
    comment: ModelComment,
    userId: string,
    kind: NotificationKind,
    at: number,
  ): void {
    if (!this.#mayTell(thread, userId)) return;
    comment.told.add(userId);
    this.inbox(userId).push({
      commentId: comment.id,
      threadId,
      kind,
      shown: this.users.get(userId)?.inApp[kind] ?? true,
      read: false,
      at,
      updatedAt: at,
    });
  }

  #mayTell(thread: ModelThread, userId: string): boolean {
    const rooms = this.users.get(userId)?.rooms ?? null;
    return this.#choice(thread, userId) !== 'mute' && (rooms === null || rooms.includes(thread.roomId));
  }

  #choice({ choices }: ModelThread, userId: string): string | null {
    const user = this.users.get(userId);
    const choice = choices.get(userId);
    return user === undefined || choice === undefined || choice.at < user.since ? null : choice.action;
  }

  #thread(threadId: string): ModelThread {
    const thread = this.threads.get(threadId);
    if (thread === undefined) throw new Error(`the model has no thread ${threadId}`);
    return thread;
  }
}
