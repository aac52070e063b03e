import type { RoomThread } from '../../client/room/snapshot.ts';
import type { NotificationCreated } from '../../model/notification.ts';
import type { StringKey } from '../strings/en.ts';
import type { App } from './app.ts';

/** Something that another user did; a text with `{name}`. */
interface Change {
  readonly key: StringKey;
  /** Empty for a backend that named no user. */
  readonly userId: string;
}

/** How long a change waits for the name of its user, in milliseconds. */
const NAME_MS = 3_000;
/** More changes at once than this, as after a long absence, are counted only. */
const MAX_CHANGES = 5;

/** Tells a screen reader what others do in the room: each change once, in order, with names. */
export class Announcements {
  readonly #app: App;
  #waiting: readonly Change[] = [];
  #timer = 0;

  constructor(app: App) {
    this.#app = app;
    app.onStop(() => window.clearTimeout(this.#timer));
    app.onStop(
      app.session.on('event', ({ type, data }) => {
        // Those of this room are announced as changes of its threads.
        if (type === 'notification.created' && data.inApp && data.roomId !== app.room.roomId) void this.#notified(data);
      }),
    );
  }

  async #notified({ kind, actorId }: NotificationCreated): Promise<void> {
    await this.#app.session.users([actorId]).catch(() => undefined);
    this.#say(kind === 'mention' ? 'inboxMention' : 'announceReplied', { name: this.#nameOf(actorId) });
  }

  /** Tells the changes between two states of the threads, and those that have waited for a name. */
  follow(before: readonly RoomThread[], after: readonly RoomThread[], userId: string | null): void {
    this.#waiting = [...this.#waiting, ...(before === after ? [] : changesBetween(before, after, userId))];
    if (this.#waiting.length > MAX_CHANGES) {
      this.#say('announceMany', { count: this.#waiting.length });
      this.#waiting = [];
    }
    this.#tell(false);
  }

  #tell(late: boolean): void {
    window.clearTimeout(this.#timer);
    for (const [index, { key, userId }] of this.#waiting.entries()) {
      const isKnown = userId === '' || userId in this.#app.snapshot.users;
      if (!isKnown && !late) {
        this.#waiting = this.#waiting.slice(index);
        this.#timer = window.setTimeout(() => this.#tell(true), NAME_MS);
        return;
      }
      this.#say(key, { name: this.#nameOf(userId) });
    }
    this.#waiting = [];
  }

  /** Never the id, which says nothing when it is read out. */
  #nameOf(userId: string): string {
    const { snapshot, language } = this.#app;
    return snapshot.users[userId]?.name ? this.#app.person(userId).name : language.text('someone');
  }

  #say(key: StringKey, values: Readonly<Record<string, string | number>>): void {
    this.#app.host.announce(this.#app.language.text(key, values));
  }
}

/**
 * What other users than this one did between two states: new threads and replies, edited comments, resolved threads.
 */
export function changesBetween(
  before: readonly RoomThread[],
  after: readonly RoomThread[],
  userId: string | null,
): Change[] {
  const earlier = new Map(before.map((thread) => [thread.id, thread]));
  const changes = after.toReversed().flatMap((thread): Change[] => {
    const old = earlier.get(thread.id);
    if (old === thread) return [];
    const known = new Map(old?.comments.map((comment) => [comment.id, comment]));
    const written = thread.comments.flatMap((comment): Change[] => {
      const had = known.get(comment.id);
      if (had === undefined)
        return [
          {
            key: old === undefined && comment === thread.comments[0] ? 'announceCreated' : 'announceReplied',
            userId: comment.userId,
          },
        ];
      // An edit by this user is pending at first, also of a comment by another user.
      return comment.editedAt !== had.editedAt && comment.body !== had.body && comment.pending === null
        ? [{ key: 'announceEdited', userId: comment.userId }]
        : [];
    });
    const resolved = old !== undefined && thread.resolved && !old.resolved;
    return resolved ? [...written, { key: 'announceResolved', userId: thread.resolvedBy ?? '' }] : written;
  });
  return changes.filter((change) => change.userId !== userId);
}
