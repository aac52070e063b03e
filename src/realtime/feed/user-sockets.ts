import { roomOfEvent } from '../../model/event.ts';
import { inScope, type RoomScope } from '../../model/room.ts';
import { wireText } from '../../net/wire-text.ts';
import type { SocketWriter, TextFrame } from '../socket/socket-writer.ts';

/** A socket of a user that receives the live events of a feed. */
export interface UserSocket {
  readonly writer: SocketWriter;
  readonly userId: string;
  readonly rooms: RoomScope;
}

/** An event for the sockets of one user. */
interface UserEvent extends TextFrame {
  /** The room it belongs to, null for none. Only sockets that may see the room receive it. */
  readonly room: string | null;
}

/**
 * The sockets of a feed that have caught up, by user, for the events that only one user receives. The events of one
 * callback of the event loop are sent together when it ends, in one packet per socket: a batch of
 * notifications brings many at once.
 *
 * Call `flush` before anything that must come after them is sent to the same sockets.
 */
export class UserSockets {
  readonly #byUser = new Map<string, Set<UserSocket>>();
  /** The events that are not sent yet, by user. */
  readonly #pending = new Map<string, UserEvent[]>();

  /** Adds a socket, which receives the events that are passed to `send` from now on. */
  add(socket: UserSocket): void {
    this.flush();
    const others = this.#byUser.get(socket.userId);
    if (others === undefined) this.#byUser.set(socket.userId, new Set([socket]));
    else others.add(socket);
  }

  /** Removes a socket once it has received what was passed to `send`. */
  delete(socket: UserSocket): void {
    this.flush();
    const others = this.#byUser.get(socket.userId);
    others?.delete(socket);
    if (others?.size === 0) this.#byUser.delete(socket.userId);
  }

  /** Sends an event to all sockets of a user before the current callback of the event loop ends. */
  send(userId: string, text: string): void {
    if (!this.#byUser.has(userId)) return;
    if (this.#pending.size === 0) queueMicrotask(() => this.flush());
    const event: UserEvent = { text, encoded: wireText(text), room: roomOfEvent(text) };
    const others = this.#pending.get(userId);
    if (others === undefined) this.#pending.set(userId, [event]);
    else others.push(event);
  }

  /** Sends the events that wait. */
  flush(): void {
    if (this.#pending.size === 0) return;
    // Sending may close a slow socket, which calls `delete`: what is sent here must not be sent again.
    const pending = [...this.#pending];
    this.#pending.clear();
    for (const [userId, events] of pending) {
      for (const { writer, rooms } of this.#byUser.get(userId) ?? []) {
        writer.sendTogether(rooms === null ? events : events.filter(({ room }) => room === null || inScope(rooms, room)));
      }
    }
  }
}
