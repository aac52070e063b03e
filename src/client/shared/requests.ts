import type { RoomFrame, ServerFrame, Welcome } from '../../model/frames.ts';
import { Members } from './members.ts';
import type { Upstream } from './upstream.ts';

/** The fields of a message that matter here. */
interface ClientMessage {
  readonly type: string;
  readonly id?: number;
  readonly data?: { readonly roomId?: string; readonly token?: string; readonly data?: unknown };
}

/** A message that the server has to answer. */
interface PendingRequest {
  readonly socketId: string;
  /** The id that the socket gave to it; undefined if it expects no answer. */
  readonly id: number | undefined;
  readonly accepted?: () => void;
  readonly refused?: () => void;
}

/** How long a user stays in a room after a connection was lost, in milliseconds: as long as the server says. */
const PRESENT_MS = 10_000;

/** An answer of the server. */
type Reply = ServerFrame & { readonly type: 'ok' | 'error' };

/**
 * The messages of all sockets over one connection: gives them ids of its own, returns each answer to the socket that
 * asked, and keeps the connection in a room for as long as one socket is in it.
 */
export class SharedRequests {
  readonly members = new Members();
  readonly #upstream: Upstream;
  readonly #welcome: Welcome;
  readonly #deliver: (to: readonly string[], text: string) => void;
  readonly #pending = new Map<number, PendingRequest>();
  /**
   * Timers by room, for rooms that the last socket has gone from without leaving them: when the connection leaves them.
   */
  readonly #leaveTimers = new Map<string, ReturnType<typeof setTimeout>>();
  #lastId = 0;

  constructor(upstream: Upstream, welcome: Welcome, deliver: (to: readonly string[], text: string) => void) {
    this.#upstream = upstream;
    this.#welcome = welcome;
    this.#deliver = deliver;
  }

  /** Sends a message of a socket. Returns the token in it, if there is one. */
  send(socketId: string, text: string): string | undefined {
    const message = JSON.parse(text) as ClientMessage;
    const { type, id, data: { roomId = '', token, data } = {} } = message;
    // The connection has its own.
    if (type === 'pong') return undefined;
    if (type === 'room.leave' && !this.members.leave(roomId, socketId)) {
      if (id !== undefined) this.#deliver([socketId], JSON.stringify({ type: 'ok', id, data: {} }));
    } else if (type === 'room.join') {
      this.#cancelLeave(roomId);
      const joins = this.members.join(roomId, socketId);
      this.#request(message, { socketId, id, refused: () => joins && this.members.leave(roomId, socketId) });
    } else if (type === 'room.broadcast') {
      this.#request(message, { socketId, id, accepted: () => this.#broadcast(socketId, roomId, data) });
    } else if (id === undefined) this.#upstream.send(type, text);
    else this.#request(message, { socketId, id });
    return token;
  }

  /** Handles an answer of the server. */
  answered(frame: Reply, id: number): void {
    const request = this.#pending.get(id);
    if (request === undefined) return;
    this.#pending.delete(id);
    if (frame.type === 'ok') request.accepted?.();
    else request.refused?.();
    if (request.id !== undefined || frame.type === 'error')
      this.#deliver([request.socketId], JSON.stringify({ ...frame, id: request.id }));
  }

  /**
   * A socket has gone. As after a lost connection, the user stays in its rooms for a while: the page may only be loaded
   * again.
   */
  leave(socketId: string): void {
    for (const roomId of this.members.leaveAll(socketId)) {
      const leave = (): void => {
        this.#leaveTimers.delete(roomId);
        this.#upstream.send('room.leave', JSON.stringify({ type: 'room.leave', data: { roomId } }));
      };
      this.#leaveTimers.set(roomId, setTimeout(leave, PRESENT_MS));
    }
  }

  /** The connection is closed. */
  end(): void {
    for (const roomId of this.#leaveTimers.keys()) this.#cancelLeave(roomId);
  }

  #cancelLeave(roomId: string): void {
    clearTimeout(this.#leaveTimers.get(roomId));
    this.#leaveTimers.delete(roomId);
  }

  #request(message: ClientMessage, request: PendingRequest): void {
    this.#pending.set(++this.#lastId, request);
    this.#upstream.send(message.type, JSON.stringify({ ...message, id: this.#lastId }));
  }

  /**
   * Delivers a broadcast to the sockets of the other tabs, because the server does not send it back to this connection.
   */
  #broadcast(socketId: string, roomId: string, data: unknown): void {
    const others = [...this.members.of(roomId)].filter((id) => id !== socketId);
    const { userId, connectionId } = this.#welcome;
    const frame: RoomFrame = {
      type: 'room.broadcast',
      at: new Date().toISOString(),
      roomId,
      actor: { userId, via: 'ws', connectionId },
      data,
    };
    this.#deliver(others, JSON.stringify(frame));
  }
}
