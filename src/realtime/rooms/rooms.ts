import { presenceKey } from '../../domain/rooms/presence.ts';
import { isUserEvent } from '../../domain/users/erasure.ts';
import { CollabError } from '../../model/errors.ts';
import type { PresenceState } from '../../model/presence.ts';
import { inScope } from '../../model/room.ts';
import type { StoredEvent } from '../../ports/store.ts';
import type { Connection } from '../session/connection.ts';
import type { Member } from './member.ts';
import { Room, type RoomDeps } from './room.ts';

/** Most rooms that one socket may have joined at a time. */
export const MAX_ROOMS = 50;

/** A room that a connection has joined, and its member there. */
export interface JoinedRoom {
  readonly room: Room;
  readonly member: Member;
}

/** The rooms that sockets of this worker have joined. */
export class Rooms {
  readonly #deps: RoomDeps;
  readonly #rooms = new Map<string, Room>();
  /** By connection, then by room id. Connections that have joined no room are absent. */
  readonly #joined = new Map<Connection, Map<string, JoinedRoom>>();
  readonly #unfollow: () => void;

  constructor(deps: RoomDeps) {
    this.#deps = deps;
    this.#unfollow = deps.ctx.store.follow((_stream, event) => event !== null && this.#onEvent(event));
  }

  /**
   * Puts a connection into a room and sends it a snapshot. A connection that is already there receives another
   * snapshot. The caller has checked that the room exists and that the token gives access to it. Throws
   * `invalid_request` if the connection is in too many rooms.
   *
   * @param state the new state of the user; undefined leaves it unchanged
   */
  async join(connection: Connection, roomId: string, state: PresenceState | undefined): Promise<void> {
    if (!connection.writer.isOpen) return;
    const existing = this.find(connection, roomId);
    if (existing !== undefined) {
      if (state !== undefined) await existing.room.setState(existing.member, state);
      return this.#snapshot(existing);
    }
    if (this.joinedBy(connection).length >= MAX_ROOMS)
      throw new CollabError('invalid_request', `A socket may be in at most ${MAX_ROOMS} rooms: leave one first`);
    const room = this.#room(connection, roomId);
    const joined = { room, member: room.add(connection, state) };
    this.#remember(connection, joined);
    try {
      // Before the room is read: what was published earlier would make it be read again.
      await room.subscribed();
      await room.enter(joined.member);
      await this.#snapshot(joined);
    } catch (error) {
      await this.leave(joined);
      throw error;
    }
  }

  /** The rooms that a connection has joined. */
  joinedBy(connection: Connection): readonly JoinedRoom[] {
    return [...(this.#joined.get(connection)?.values() ?? [])];
  }

  /** The room with this id if the connection has joined it. */
  find(connection: Connection, roomId: string): JoinedRoom | undefined {
    return this.#joined.get(connection)?.get(roomId);
  }

  /** Removes a connection from a room on its request. The others see it leave at once. Never rejects. */
  leave(joined: JoinedRoom): Promise<void> {
    return this.#remove(joined, false);
  }

  /** Removes a connection from all its rooms, like `leave`. */
  leaveAll(connection: Connection): void {
    for (const joined of this.joinedBy(connection)) void this.leave(joined);
  }

  /** Removes a connection whose socket has closed from its rooms. The others see it leave after the grace period. */
  lost(connection: Connection): void {
    for (const joined of this.joinedBy(connection)) void this.#remove(joined, true);
  }

  /** Removes a connection from the rooms that its token no longer gives access to. */
  rescope(connection: Connection): void {
    for (const joined of this.joinedBy(connection))
      if (!inScope(connection.rooms, joined.room.roomId)) void this.leave(joined);
  }

  /** Ends the grace period of a user's lost connections in the rooms of an environment that this worker has. */
  removeDisconnected(environmentId: string, userId: string): void {
    for (const room of this.#rooms.values()) void room.removeDisconnected(environmentId, userId);
  }

  /** Writes the memberships of all connections of this worker in a new lease. */
  async writeAgain(): Promise<void> {
    await Promise.all([...this.#rooms.values()].map((room) => room.writeAgain()));
  }

  /** Calls `tick` of every room. `now` is `Clock.monotonic`. */
  tick(now: number): void {
    for (const room of this.#rooms.values()) room.tick(now);
  }

  /** Stops following the bus and the log. */
  stop(): void {
    this.#unfollow();
    for (const room of this.#rooms.values()) room.stop();
  }

  /** Sends a member a snapshot, unless it has left. */
  async #snapshot({ room, member }: JoinedRoom): Promise<void> {
    if (this.find(member.connection, room.roomId)?.member === member) await room.snapshot(member);
  }

  #room(connection: Connection, roomId: string): Room {
    const { id } = connection.feed.environment;
    const key = presenceKey(id, roomId);
    let room = this.#rooms.get(key);
    if (room === undefined) {
      room = new Room(this.#deps, key, id, roomId);
      this.#rooms.set(key, room);
    }
    return room;
  }

  #remember(connection: Connection, joined: JoinedRoom): void {
    const rooms = this.#joined.get(connection);
    if (rooms === undefined) this.#joined.set(connection, new Map([[joined.room.roomId, joined]]));
    else rooms.set(joined.room.roomId, joined);
  }

  #remove({ room, member }: JoinedRoom, lost: boolean): Promise<void> {
    const rooms = this.#joined.get(member.connection);
    rooms?.delete(room.roomId);
    if (rooms?.size === 0) this.#joined.delete(member.connection);
    const removed = room.remove(member, lost);
    if (room.isEmpty && this.#rooms.get(room.key) === room) {
      this.#rooms.delete(room.key);
      room.stop();
    }
    return removed;
  }

  /** Rooms show the names and pictures of users. */
  #onEvent(event: StoredEvent): void {
    if (this.#rooms.size === 0 || !isUserEvent(event.text)) return;
    const { data } = JSON.parse(event.text) as { data: { userId: string } };
    for (const room of this.#rooms.values()) room.profileChanged(data.userId);
  }
}
