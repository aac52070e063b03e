import type { Comment } from '../../model/comment.ts';
import type { CursorPosition, RoomFrame, StreamEvent } from '../../model/frames.ts';
import type { PresenceState } from '../../model/presence.ts';
import type { Reaction } from '../../model/reaction.ts';
import type { Position, Thread } from '../../model/thread.ts';
import { Emitter, Observable } from '../emitter.ts';
import { asCollabError, CollabError } from '../errors.ts';
import { newId } from '../ids.ts';
import type { Unsubscribe } from '../platform.ts';
import type { RequestOptions, Requests } from '../session/requests.ts';
import type { UserDirectory } from '../users.ts';
import { loadRoom } from './loader.ts';
import { pendingComment, pendingDeletion, pendingMove, pendingReaction, pendingResolve, pendingThread, pendingUnreaction, pendingUpdate, type PendingWrite, type Writer } from './pending-writes.ts';
import type { CollabRoom, NewComment, NewThread, RoomEvents } from './room.ts';
import { RoomPresence } from './room-presence.ts';
import { emptySnapshot, type RoomSnapshot } from './snapshot.ts';
import { RoomThreads } from './threads.ts';

/** What a room needs of its session. */
export interface RoomDeps {
  readonly requests: Requests;
  readonly users: UserDirectory;
  readonly writer: () => Writer;
  /** Whether there is a connection. */
  readonly isLive: () => boolean;
  /** Why there will be none; null unless the session has ended. */
  readonly ended: () => CollabError | null;
  /** The room has a subscriber: connect. */
  readonly wake: () => void;
}

/** How long a room without subscribers stays loaded: frameworks unsubscribe and subscribe again at once. */
const LINGER_MS = 1_000;
/** The pause before a room is loaded again that the server was too busy for. */
const RELOAD_MS = 3_000;
/** The refusals after which loading a room again has no chance. */
const lasting = new Set(['forbidden', 'invalid_request', 'payload_too_large', 'closed']);

/** The room of a session, see `CollabRoom`. */
export class LiveRoom implements CollabRoom {
  readonly roomId: string;
  readonly #deps: RoomDeps;
  readonly #threads = new RoomThreads();
  readonly #presence: RoomPresence;
  readonly #observers = new Observable();
  readonly #events = new Emitter<RoomEvents>();
  #active = false;
  #status: RoomSnapshot['status'] = 'loading';
  #error: CollabError | null = null;
  /** The events that arrived since the load began; null while nothing is being loaded. */
  #buffer: StreamEvent[] | null = null;
  #load = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #snapshot: RoomSnapshot;
  #current = true;

  constructor(roomId: string, deps: RoomDeps) {
    this.roomId = roomId;
    this.#deps = deps;
    this.#snapshot = emptySnapshot(roomId);
    this.#presence = new RoomPresence({
      roomId,
      requests: deps.requests,
      events: this.#events,
      userId: () => deps.writer().userId,
      changed: () => {
        deps.users.present(this.#presence.rows);
        this.changed();
      },
    });
  }

  subscribe(listener: () => void): Unsubscribe {
    const unsubscribe = this.#observers.subscribe(listener);
    this.#activate();
    return () => {
      unsubscribe();
      if (!this.#observers.hasListeners) this.#later(LINGER_MS, () => this.#deactivate());
    };
  }

  getSnapshot(): RoomSnapshot {
    if (this.#current) return this.#snapshot;
    this.#current = true;
    const { rows: presence, typing } = this.#presence;
    this.#snapshot = { roomId: this.roomId, status: this.#status, error: this.#error, threads: this.#threads.list, users: this.#deps.users.all, presence, typing };
    return this.#snapshot;
  }

  ready(): Promise<RoomSnapshot> {
    return new Promise((resolve, reject) => {
      const stop = this.subscribe(() => settle());
      const settle = (): void => {
        if (this.#status === 'loading') return;
        stop();
        if (this.#error === null) resolve(this.getSnapshot());
        else reject(this.#error);
      };
      settle();
    });
  }

  reload(): void {
    if (this.#active && this.#deps.isLive()) void this.#reload();
  }

  async createThread(thread: NewThread): Promise<Thread> {
    const id = thread.id ?? newId('th');
    const write = pendingThread(this.#deps.writer(), this.roomId, id, thread);
    const { thread: created } = await this.#write<{ thread: Thread }>(write, 'thread.create', { ...thread, id, roomId: this.roomId }, ['id_taken'], () => ({ thread: this.#required(id) }));
    return created;
  }

  async setResolved(threadId: string, resolved: boolean): Promise<void> {
    await this.#write(pendingResolve(this.#deps.writer(), threadId, resolved), resolved ? 'thread.resolve' : 'thread.reopen', { threadId });
  }

  async moveThread(threadId: string, position: Position): Promise<void> {
    await this.#write(pendingMove(threadId, position), 'thread.update', { threadId, position });
  }

  async createComment(threadId: string, comment: NewComment): Promise<Comment> {
    const id = comment.id ?? newId('cm');
    const write = pendingComment(this.#deps.writer(), threadId, id, comment);
    const { comment: created } = await this.#write<{ comment: Comment }>(write, 'comment.create', { ...comment, id, threadId }, ['id_taken'], () => ({ comment: this.#requiredComment(id) }));
    return created;
  }

  async updateComment(commentId: string, change: Omit<NewComment, 'id'>): Promise<Comment> {
    const write = pendingUpdate(this.#deps.writer(), this.#threadIdOf(commentId), commentId, change);
    return (await this.#write<{ comment: Comment }>(write, 'comment.update', { ...change, commentId })).comment;
  }

  async deleteComment(commentId: string): Promise<void> {
    await this.#write(pendingDeletion(this.#threadIdOf(commentId), commentId), 'comment.delete', { commentId }, ['comment_not_found', 'thread_not_found']);
  }

  async addReaction(commentId: string, emoji: string): Promise<Reaction> {
    const write = pendingReaction(this.#deps.writer(), this.#threadIdOf(commentId), commentId, emoji);
    return (await this.#write<{ reaction: Reaction }>(write, 'reaction.add', { commentId, emoji })).reaction;
  }

  async removeReaction(reactionId: string): Promise<void> {
    const comment = this.#threads.commentOfReaction(reactionId);
    if (comment === undefined) throw new CollabError('reaction_not_found', 'The reaction is not in this room any more.');
    await this.#write(pendingUnreaction(comment.threadId, comment.id, reactionId), 'reaction.remove', { reactionId }, ['reaction_not_found']);
  }

  setPresence(state: PresenceState): void {
    this.#presence.setState(state);
  }

  setTyping(threadId: string | null, typing: boolean): void {
    this.#presence.setTyping(threadId, typing);
  }

  sendCursor(position: CursorPosition): void {
    this.#presence.sendCursor(position);
  }

  broadcast(data: unknown): void {
    this.#deps.requests.post('room.broadcast', { roomId: this.roomId, data });
  }

  signal(connectionId: string, data: unknown): void {
    this.#deps.requests.post('p2p.signal', { roomId: this.roomId, to: connectionId, data });
  }

  on<T extends keyof RoomEvents>(type: T, listener: (event: RoomEvents[T]) => void): Unsubscribe {
    return this.#events.on(type, listener);
  }

  /** The session has a new connection. */
  connected(recovered: boolean): void {
    if (!this.#active) return;
    this.#presence.join();
    if (!recovered || this.#buffer !== null || this.#status !== 'ready') void this.#reload();
  }

  /** The session ended: a room that is not loaded will not be. */
  ended(error: CollabError): void {
    if (this.#status === 'loading') this.#fail(error);
  }

  /** An event of the environment. */
  receive(event: StreamEvent): void {
    if (!this.#active || event.roomId !== this.roomId) return;
    this.#buffer?.push(event);
    if (!this.#threads.apply(event)) return;
    this.#deps.users.want(usersOf(event));
    this.changed();
  }

  /** A frame of this room. */
  receiveFrame(frame: RoomFrame): void {
    if (this.#active) this.#presence.receive(frame);
  }

  /** Something that the snapshot contains has changed. */
  changed(): void {
    this.#current = false;
    this.#observers.changed();
  }

  #activate(): void {
    clearTimeout(this.#timer);
    if (this.#active) return;
    this.#active = true;
    if (this.#deps.isLive()) this.connected(false);
    else this.#deps.wake();
    const ended = this.#deps.ended();
    if (ended !== null) this.ended(ended);
  }

  #deactivate(): void {
    this.#active = false;
    this.#buffer = null;
    this.#load++;
    this.#presence.leave();
    this.#status = 'loading';
    this.#error = null;
    this.changed();
  }

  async #reload(): Promise<void> {
    const load = ++this.#load;
    const events: StreamEvent[] = [];
    this.#buffer = events;
    if (this.#status === 'failed') this.#status = 'loading';
    try {
      const { threads, users } = await loadRoom(this.#deps.requests, this.roomId);
      if (load !== this.#load) return;
      this.#buffer = null;
      this.#threads.replace(threads, events);
      this.#status = 'ready';
      this.#error = null;
      this.#deps.users.add(users);
      for (const event of events) this.#deps.users.want(usersOf(event));
      this.changed();
    } catch (thrown) {
      if (load !== this.#load) return;
      const error = asCollabError(thrown, 'Loading the comments');
      if (lasting.has(error.code)) this.#fail(error);
      // A lost connection is followed by another one, which loads the room.
      else if (error.code !== 'network') this.#later(RELOAD_MS, () => this.reload());
    }
  }

  #fail(error: CollabError): void {
    this.#buffer = null;
    this.#status = 'failed';
    this.#error = error;
    this.changed();
  }

  #later(ms: number, run: () => void): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(run, ms);
  }

  /** Shows a write at once, sends it, and takes it back if it is refused. `repeated` are the codes of `RequestOptions`. */
  async #write<T>(write: PendingWrite, type: string, data: object, repeated: RequestOptions['repeated'] = [], recordOf: () => unknown = () => null): Promise<T> {
    this.#threads.add(write);
    this.changed();
    try {
      const record = (await this.#deps.requests.request(type, data, { durable: true, repeated })) ?? recordOf();
      // A held record is shown to nobody until a moderator approves it, and then by its event.
      if (isHeld(record)) this.#threads.cancel(write);
      else this.#threads.confirm(write, record);
      return record as T;
    } catch (error) {
      this.#threads.cancel(write);
      throw error;
    } finally {
      this.changed();
    }
  }

  #threadIdOf(commentId: string): string {
    const threadId = this.#threads.threadIdOf(commentId);
    if (threadId === undefined) throw new CollabError('comment_not_found', 'The comment is not in this room any more.');
    return threadId;
  }

  /** The thread that a repeated `thread.create` has made. */
  #required(threadId: string): Thread {
    const thread = this.#threads.list.find(({ id }) => id === threadId);
    if (thread === undefined) throw new CollabError('thread_not_found', 'The thread was created, and deleted since.');
    return thread;
  }

  #requiredComment(commentId: string): Comment {
    const comment = this.#threads.list.flatMap(({ comments }) => comments).find(({ id }) => id === commentId);
    if (comment === undefined) throw new CollabError('comment_not_found', 'The comment was created, and deleted since.');
    return comment;
  }
}

/** Whether the answer of a write holds a thread or comment that waits for a moderator. */
function isHeld(record: unknown): boolean {
  const { thread, comment } = (record ?? {}) as { thread?: { status?: string }; comment?: { status?: string } };
  return thread?.status === 'held' || comment?.status === 'held';
}

/** The users that an event names. */
function usersOf(event: StreamEvent): string[] {
  switch (event.type) {
    case 'thread.created':
      return [event.data.comment.userId, ...event.data.comment.mentions];
    case 'comment.created':
    case 'comment.updated':
      return [event.data.userId, ...event.data.mentions];
    case 'reaction.created':
      return [event.data.userId];
    default:
      return [];
  }
}
