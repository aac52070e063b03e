import { isUserEvent } from '../../domain/users/erasure.ts';
import { presenceKey } from '../../domain/rooms/presence.ts';
import { CollabError } from '../../model/errors.ts';
import { inScope } from '../../model/room.ts';
import type { PresenceState } from '../../model/presence.ts';
import type { Connection } from '../session/connection.ts';
import { type Member, Room, type RoomDeps } from './room.ts';

/** Rooms that one socket may have joined at a time. */
export const MAX_ROOMS = 50;

/** The rooms that sockets of this worker have joined. */
export class Rooms {
  readonly #deps: RoomDeps;
  readonly #rooms = new Map<string, Room>();
  readonly #stops: readonly (() => void)[];

  constructor(deps: RoomDeps) {
    this.#deps = deps;
    this.#stops = [
      deps.bus.onPublish(({ topic, text }) => this.#rooms.get(topic)?.onMessage(text)),
      deps.ctx.store.follow((_stream, event) => event !== null && this.#follow(event.text)),
    ];
  }

  /**
   * Puts a connection into a room, whose existence and reach are the caller's care, and sends it a snapshot. One that is
   * there already gets another snapshot. Throws `invalid_request` when it is in too many.
   *
   * @param state what others are to know; undefined leaves it
   */
  async join(connection: Connection, roomId: string, state: PresenceState | undefined): Promise<void> {
    if (!connection.writer.isOpen) return;
    const known = connection.memberships?.get(roomId);
    if (known !== undefined) {
      if (state !== undefined) known.room.setState(known, state);
      return known.room.snapshot(known);
    }
    const memberships = (connection.memberships ??= new Map<string, Member>());
    if (memberships.size >= MAX_ROOMS) throw new CollabError('invalid_request', `A socket may be in at most ${MAX_ROOMS} rooms: leave one first`);
    const room = this.#room(connection, roomId);
    const member = room.enter(connection, state);
    memberships.set(roomId, member);
    try {
      await room.snapshot(member);
    } catch (error) {
      this.leave(member);
      throw error;
    }
  }

  /** Takes a connection out of a room at its wish: others see that at once. */
  leave(member: Member): void {
    this.#remove(member, false);
  }

  /** As `leave`, of all its rooms. */
  leaveAll(connection: Connection): void {
    for (const member of connection.memberships?.values() ?? []) this.leave(member);
  }

  /** Takes a user whose last connection was lost out of the rooms of an environment that this worker has, before the grace is over. */
  dropLost(environmentId: string, userId: string): void {
    for (const room of this.#rooms.values()) room.deleteDisconnected(environmentId, userId);
  }

  /** Takes a connection whose socket has closed out of its rooms: others see that after the grace. */
  lost(connection: Connection): void {
    for (const member of connection.memberships?.values() ?? []) this.#remove(member, true);
  }

  /** Takes a connection out of the rooms that it reaches no more. */
  rescope({ memberships, rooms }: Connection): void {
    for (const [roomId, member] of memberships ?? []) if (!inScope(rooms, roomId)) this.leave(member);
  }

  /** Does what is due by the clock. */
  turn(now: number): void {
    for (const room of this.#rooms.values()) room.turn(now);
  }

  stop(): void {
    for (const stop of this.#stops) stop();
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

  #remove(member: Member, lost: boolean): void {
    const { connection, room } = member;
    connection.memberships?.delete(room.roomId);
    room.remove(member, lost);
    if (room.members.size === 0 && this.#rooms.get(room.key) === room) this.#rooms.delete(room.key);
  }

  /** Rooms show names. */
  #follow(event: string): void {
    if (this.#rooms.size === 0 || !isUserEvent(event)) return;
    const { data } = JSON.parse(event) as { data: { userId: string } };
    for (const room of this.#rooms.values()) room.rename(data.userId);
  }
}
