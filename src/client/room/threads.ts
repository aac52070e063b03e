import type { Comment } from '../../model/comment.ts';
import type { StreamEvent } from '../../model/frames.ts';
import type { Reaction } from '../../model/reaction.ts';
import { type BaseThread, type ListedThread, RoomBase } from './base.ts';
import type { PendingWrite } from './pending-writes.ts';
import type { RoomComment, RoomThread } from './snapshot.ts';

interface Tracked {
  readonly write: PendingWrite;
  confirmed: boolean;
  /** Whether the server's state has shown the change since it was made. */
  shown: boolean;
}

interface Rendered {
  readonly entry: BaseThread | undefined;
  readonly writes: readonly Tracked[];
  readonly view: RoomThread | null;
}

const none: readonly Tracked[] = [];

/**
 * The threads of a room as the page sees them: those of the server, with the pending writes on top. A write stays on
 * top until the server has confirmed it and its state has shown it, in either order; a refused one is taken away.
 */
export class RoomThreads {
  #base = new RoomBase();
  /** By thread, in the order in which they were made. Arrays are replaced, never changed. */
  readonly #writes = new Map<string, readonly Tracked[]>();
  #rendered = new Map<string, Rendered>();
  readonly #comments = new WeakMap<Comment, RoomComment>();
  #list: readonly RoomThread[] = [];
  #current = true;

  /** The id of the thread that has a comment, pending ones included. */
  threadIdOf(commentId: string): string | undefined {
    const loaded = this.#base.threadOf(commentId);
    return loaded?.thread.id ?? this.list.find(({ comments }) => comments.some(({ id }) => id === commentId))?.id;
  }

  /** The reaction with this id, pending ones included. */
  reaction(reactionId: string): Reaction | undefined {
    return this.list
      .flatMap(({ comments }) => comments.flatMap(({ reactions }) => reactions))
      .find(({ id }) => id === reactionId);
  }

  /** All threads, newest first: the same array until something changes. */
  get list(): readonly RoomThread[] {
    if (!this.#current) this.#render();
    return this.#list;
  }

  /** Replaces the state of the server by a list and the events that arrived while it was loaded. */
  replace(threads: readonly ListedThread[], events: readonly StreamEvent[]): void {
    this.#base = new RoomBase();
    this.#base.load(threads);
    for (const event of events) this.#base.apply(event);
    // The list was loaded after these writes were confirmed, so it has them, or what came after them.
    for (const [threadId, writes] of this.#writes)
      this.#setWrites(
        threadId,
        writes.filter(({ confirmed }) => !confirmed),
      );
    this.#check();
    this.#current = false;
  }

  /** Applies an event of the room. Returns whether something changed. */
  apply(event: StreamEvent): boolean {
    if (!this.#base.apply(event)) return false;
    this.#check();
    this.#current = false;
    return true;
  }

  /** Shows a write from now on. Report its outcome to `confirm` or `cancel`. */
  add(write: PendingWrite): void {
    const tracked: Tracked = { write, confirmed: false, shown: write.isShownBy(this.#base) };
    this.#setWrites(write.threadId, [...(this.#writes.get(write.threadId) ?? none), tracked]);
  }

  /** The server has confirmed a write. */
  confirm(write: PendingWrite, record: unknown): void {
    const tracked = this.#writes.get(write.threadId)?.find((one) => one.write === write);
    if (!tracked) return;
    write.confirm?.(record);
    tracked.confirmed = true;
    this.#check();
  }

  /** The server has refused a write: it disappears. */
  cancel(write: PendingWrite): void {
    this.#setWrites(
      write.threadId,
      (this.#writes.get(write.threadId) ?? none).filter((one) => one.write !== write),
    );
  }

  #setWrites(threadId: string, writes: readonly Tracked[]): void {
    if (writes.length === 0) this.#writes.delete(threadId);
    else this.#writes.set(threadId, writes);
    this.#current = false;
  }

  /** Takes away the writes that the server's state now stands for. */
  #check(): void {
    for (const [threadId, writes] of this.#writes) {
      for (const tracked of writes) tracked.shown ||= tracked.write.isShownBy(this.#base);
      if (writes.some(({ confirmed, shown }) => confirmed && shown))
        this.#setWrites(
          threadId,
          writes.filter(({ confirmed, shown }) => !confirmed || !shown),
        );
    }
  }

  #render(): void {
    this.#current = true;
    const rendered = new Map<string, Rendered>();
    const views: (RoomThread | null)[] = [];
    const add = (threadId: string, entry: BaseThread | undefined): void => {
      const writes = this.#writes.get(threadId) ?? none;
      const earlier = this.#rendered.get(threadId);
      const same = earlier && earlier.entry === entry && earlier.writes === writes;
      const now = same ? earlier : { entry, writes, view: this.#view(entry, writes) };
      rendered.set(threadId, now);
      views.push(now.view);
    };
    const created = [...this.#writes.keys()].filter((threadId) => !this.#base.get(threadId));
    for (const threadId of created.reverse()) add(threadId, undefined);
    for (const entry of this.#base.threads) add(entry.thread.id, entry);
    this.#rendered = rendered;
    const list = views.filter((view) => view !== null);
    if (list.length !== this.#list.length || list.some((view, at) => view !== this.#list[at])) this.#list = list;
  }

  #view(entry: BaseThread | undefined, writes: readonly Tracked[]): RoomThread | null {
    let view: RoomThread | null = entry
      ? { ...entry.thread, comments: entry.comments.map((comment) => this.#comment(comment)), pending: null }
      : null;
    for (const { write } of writes) view = write.apply(view);
    return view;
  }

  #comment(comment: Comment): RoomComment {
    const known = this.#comments.get(comment);
    if (known) return known;
    const view: RoomComment = { ...comment, pending: null };
    this.#comments.set(comment, view);
    return view;
  }
}
