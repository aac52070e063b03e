import type { Comment } from '../../model/comment.ts';
import type { CursorPosition, RoomFrame, StreamEvent } from '../../model/frames.ts';
import type { PresenceState } from '../../model/presence.ts';
import type { Reaction } from '../../model/reaction.ts';
import type { Position, Thread } from '../../model/thread.ts';
import { Emitter, Observable } from '../emitter.ts';
import { asCollabError, CollabError } from '../errors.ts';
import { newId } from '../ids.ts';
import type { Unsubscribe } from '../platform.ts';
import type { SessionLink } from '../session/link.ts';
import { type UserDirectory, usersOfEvent } from '../users.ts';
import { type BaseThread, commentIn, firstCommentId } from './base.ts';
import { loadRoom } from './loader.ts';
import {
  pendingComment,
  pendingDeletion,
  pendingMove,
  pendingReaction,
  pendingReactionId,
  pendingResolve,
  pendingThread,
  pendingUnreaction,
  pendingUpdate,
  type PendingWrite,
  type Writer,
} from './pending-writes.ts';
import type { CollabRoom, NewComment, NewThread, RoomEvents } from './room.ts';
import { RoomPresence } from './room-presence.ts';
import type { RoomSnapshot } from './snapshot.ts';
import { RoomThreads } from './threads.ts';

/** Dependencies of a room. */
export interface RoomDeps extends SessionLink {
  readonly users: UserDirectory;
  readonly writer: () => Writer;
}

/** The property of a request that names a record, and the id of that. */
type Target = readonly [key: string, id: string];

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
  /** Null if something has changed since it was made. */
  #snapshot: RoomSnapshot | null = null;
  /** Loads a record that this session created, by its final or its pending id. */
  readonly #created = new Map<string, () => Promise<{ readonly id: string }>>();
  /** Resolves when it is the turn of the next write. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(roomId: string, deps: RoomDeps) {
    this.roomId = roomId;
    this.#deps = deps;
    this.#presence = new RoomPresence({
      roomId,
      requests: deps.requests,
      events: this.#events,
      userId: () => deps.writer().userId,
      changed: () => {
        deps.users.update(this.#presence.rows);
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
    const { rows: presence, typing } = this.#presence;
    return (this.#snapshot ??= {
      roomId: this.roomId,
      status: this.#status,
      error: this.#error,
      threads: this.#threads.list,
      users: this.#deps.users.all,
      presence,
      typing,
    });
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

  createThread(thread: NewThread): Promise<Thread> {
    const id = thread.id ?? newId('th');
    const firstId = firstCommentId(id);
    const created = this.#write<Thread>(
      pendingThread(this.#deps.writer(), this.roomId, id, thread),
      'thread.create',
      ['roomId', this.roomId],
      { ...thread, id },
      ['id_taken'],
      () => this.#stored('thread', id, id),
    );
    this.#created.set(id, () => created).set(firstId, () => created.then(() => this.#stored('comment', id, firstId)));
    return created;
  }

  setResolved(id: string, resolved: boolean): Promise<void> {
    return this.#write(
      pendingResolve(this.#deps.writer(), id, resolved),
      resolved ? 'thread.resolve' : 'thread.reopen',
      ['threadId', id],
    );
  }

  moveThread(id: string, position: Position): Promise<void> {
    return this.#write(pendingMove(id, position), 'thread.update', ['threadId', id], { position });
  }

  createComment(threadId: string, comment: NewComment): Promise<Comment> {
    const id = comment.id ?? newId('cm');
    const created = this.#write<Comment>(
      pendingComment(this.#deps.writer(), threadId, id, comment),
      'comment.create',
      ['threadId', threadId],
      { ...comment, id },
      ['id_taken'],
      () => this.#stored('comment', threadId, id),
    );
    this.#created.set(id, () => created);
    return created;
  }

  async updateComment(id: string, change: Omit<NewComment, 'id'>): Promise<Comment> {
    return this.#write<Comment>(
      pendingUpdate(this.#deps.writer(), this.#threadOf('comment', id), id, change),
      'comment.update',
      ['commentId', id],
      change,
    );
  }

  async deleteComment(id: string): Promise<void> {
    await this.#write(pendingDeletion(this.#threadOf('comment', id), id), 'comment.delete', ['commentId', id], {}, [
      'comment_not_found',
      'thread_not_found',
    ]);
  }

  async addReaction(id: string, emoji: string): Promise<Reaction> {
    const created = this.#write<Reaction>(
      pendingReaction(this.#deps.writer, this.#threadOf('comment', id), id, emoji),
      'reaction.add',
      ['commentId', id],
      { emoji },
    );
    this.#created.set(pendingReactionId(id, emoji), () => created);
    return created;
  }

  async removeReaction(id: string): Promise<void> {
    this.#threadOf('reaction', id);
    await this.#write(
      pendingUnreaction(this.#deps.writer, this.#threads.reaction(id)),
      'reaction.remove',
      ['reactionId', id],
      {},
      ['reaction_not_found'],
    );
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
    // A moderator hears of the content of others, too: nobody but its author sees it in the room.
    if (event.userId && event.userId !== this.#deps.writer().userId) return;
    this.#buffer?.push(event);
    if (!this.#threads.apply(event)) return;
    this.#deps.users.want(usersOfEvent(event));
    this.changed();
  }

  /** A frame of this room. */
  receiveFrame(frame: RoomFrame): void {
    if (this.#active) this.#presence.receive(frame);
  }

  /** Something that the snapshot contains has changed. */
  changed(): void {
    this.#snapshot = null;
    this.#observers.changed();
  }

  #activate(): void {
    clearTimeout(this.#timer);
    if (this.#active) return;
    this.#active = true;
    if (this.#deps.isLive()) this.connected(false);
    else this.#deps.wake();
    this.#deps.notifyEnd(this);
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
      for (const event of events) this.#deps.users.want(usersOfEvent(event));
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

  /**
   * Shows a write at once, sends it, and takes it back if it is refused.
   *
   * @param target the record that the request is about: the name of the property and its id, for whose creation it
   *   waits
   * @param data the other properties of the request
   * @param repeated the codes of a refusal that mean that an earlier attempt has succeeded
   * @param stored reads the record after such a refusal
   */
  async #write<T>(
    write: PendingWrite,
    type: string,
    [key, id]: Target,
    data: object = {},
    repeated: readonly string[] = [],
    stored?: () => Promise<unknown>,
  ): Promise<T> {
    this.#deps.wake();
    this.#threads.add(write);
    this.changed();
    try {
      const reply = (await this.#deps.requests.request(
        type,
        { ...data, [key]: await this.#idOf(id) },
        { durable: true, repeated },
      )) as Record<string, unknown> | null;
      const record = reply === null ? await stored?.() : reply[type.replace(/\..*/, '')];
      // Without subscribers there are no events.
      if (!this.#active || write.threadId === '') this.#threads.cancel(write);
      else this.#threads.confirm(write, record);
      return record as T;
    } catch (error) {
      this.#threads.cancel(write);
      throw error;
    } finally {
      this.changed();
    }
  }

  /**
   * The id of a record on the server, once it is created. Resolves in the order of the calls, which is that of the
   * writes.
   */
  #idOf(id: string): Promise<string> {
    const created = this.#created.get(id);
    const found = this.#turn.then(() => created?.()).then((record) => record?.id ?? id);
    this.#turn = found.catch(() => {});
    return found;
  }

  /** The thread of a record; '' if it is not known. Throws if a loaded room does not have it. */
  #threadOf(what: 'comment' | 'reaction', id: string): string {
    const threadId = this.#threads.threadIdOf(id) ?? this.#threads.reaction(id)?.threadId ?? '';
    if (threadId === '' && this.#status === 'ready' && !this.#created.has(id))
      throw new CollabError(`${what}_not_found`, `The ${what} is not in this room any more.`);
    return threadId;
  }

  /** Loads a thread or comment that this session created. */
  async #stored(what: 'thread' | 'comment', threadId: string, id: string): Promise<Thread | Comment> {
    const entry = (await this.#deps.requests
      .request('thread.get', { threadId }, { durable: true })
      .catch((error: CollabError) => {
        if (error.code !== 'thread_not_found') throw error;
      })) as BaseThread | undefined;
    const found = what === 'thread' ? entry?.thread : commentIn(entry, id);
    if (!found) throw new CollabError(`${what}_not_found`, `The ${what} was created, and deleted since.`);
    return found;
  }
}
