import { isRoomVisible } from '../../domain/events/visibility.ts';
import { containsFileUrls, withFileUrls } from '../../domain/files/file-urls.ts';
import { isModerationEvent, roomOfEvent } from '../../model/event.ts';
import type { Role } from '../../model/role.ts';
import type { RoomScope } from '../../model/room.ts';
import { wireText } from '../../net/wire-text.ts';
import type { SocketWriter, TextFrame } from '../socket/socket-writer.ts';

/** A socket of a user that receives the live events of a feed. */
export interface UserSocket {
  readonly writer: SocketWriter;
  readonly userId: string;
  /** The role of the token: `moderator` receives the events about moderation of all users. */
  readonly role: Role;
  readonly rooms: RoomScope;
}

const none: ReadonlySet<UserSocket> = new Set();

/**
 * The sockets of a feed that have caught up, by user, for the events that only one user receives, or one user and the
 * moderators. The events of one callback of the event loop are sent together when it ends, in one packet per socket: a
 * batch of notifications brings many at once.
 *
 * Call `flush` before anything that must come after them is sent to the same sockets. A socket whose role changes must
 * be removed and added again.
 */
export class UserSockets {
  readonly #byUser = new Map<string, Set<UserSocket>>();
  readonly #moderators = new Set<UserSocket>();
  /** The events that are not sent yet, by socket, in their order. */
  readonly #pending = new Map<UserSocket, TextFrame[]>();

  /** Adds a socket, which receives the events that are passed to `send` from now on. */
  add(socket: UserSocket): void {
    this.flush();
    if (socket.role === 'moderator') this.#moderators.add(socket);
    const others = this.#byUser.get(socket.userId);
    if (others === undefined) this.#byUser.set(socket.userId, new Set([socket]));
    else others.add(socket);
  }

  /** Removes a socket once it has received what was passed to `send`. */
  delete(socket: UserSocket): void {
    this.flush();
    this.#moderators.delete(socket);
    const others = this.#byUser.get(socket.userId);
    others?.delete(socket);
    if (others?.size === 0) this.#byUser.delete(socket.userId);
  }

  /**
   * Sends an event to all sockets of a user, and one about moderation to those of moderators too, before the current
   * callback of the event loop ends. Only sockets that may see its room receive it.
   */
  send(userId: string, text: string): void {
    const own = this.#byUser.get(userId) ?? none;
    const moderators = isModerationEvent(text) ? this.#moderators : none;
    if (own.size === 0 && moderators.size === 0) return;
    if (this.#pending.size === 0) queueMicrotask(() => this.flush());
    const room = roomOfEvent(text);
    const frameAt = framesOf(text);
    for (const socket of new Set([...own, ...moderators])) {
      if (socket.rooms !== null && !isRoomVisible(socket.rooms, room, 'shown')) continue;
      const frame = frameAt(socket.writer.baseUrl);
      const others = this.#pending.get(socket);
      if (others === undefined) this.#pending.set(socket, [frame]);
      else others.push(frame);
    }
  }

  /** Sends the events that wait. */
  flush(): void {
    if (this.#pending.size === 0) return;
    // Sending may close a slow socket, which calls `delete`: what is sent here must not be sent again.
    const pending = [...this.#pending];
    this.#pending.clear();
    for (const [{ writer }, frames] of pending) writer.sendTogether(frames);
  }
}

/** Renders an event once per address at which clients reach the server. */
function framesOf(text: string): (baseUrl: string) => TextFrame {
  const frames = new Map<string, TextFrame>();
  const hasFileUrls = containsFileUrls(text);
  return (baseUrl) => {
    const base = hasFileUrls ? baseUrl : '';
    let frame = frames.get(base);
    if (frame === undefined) {
      const whole = withFileUrls(text, base);
      frames.set(base, (frame = { text: whole, encoded: wireText(whole) }));
    }
    return frame;
  };
}
