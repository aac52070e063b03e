import type { AuthenticatedUser, Claims, CredentialReference } from '../../domain/access/tokens.ts';
import type { RoomScope } from '../../model/room.ts';
import type { FeedChannel, Feed } from '../feed/hub.ts';
import type { SocketWriter } from '../socket/socket-writer.ts';
import type { Member } from '../rooms/room.ts';

/** Where a connection's messages go. One for all connections of a worker. */
export interface MessageReceiver {
  /** Handles one frame. Never throws. */
  receive(connection: Connection, frame: ArrayBuffer, isBinary: boolean): void;
  /** Counts a ping or pong frame of the protocol, which the core answers, as a message. Never throws. */
  pinged(connection: Connection): void;
  /** The socket has closed: gives back what the connection held. Called once. */
  leave(connection: Connection): void;
}

/** One authenticated socket. Kept small: there may be tens of thousands, nearly all of them silent. */
export class Connection implements CredentialReference {
  readonly id: string;
  readonly writer: SocketWriter;
  readonly feed: Feed;
  readonly userId: string;
  readonly keyFingerprint: string;
  signedBy: string;
  role: Claims['role'];
  rooms: RoomScope;
  /** `exp` of the token in milliseconds since the epoch. */
  expiresAt: number;
  /** Whether the client was told that its token is about to expire. */
  warned = false;
  /** Whether the first frame has gone out; nothing else goes out before it. */
  welcomed = false;
  /** Whether this socket counts as one of its user's. */
  counted = false;
  /** Position up to which the client has everything, while it isn't in a channel. */
  position = 0;
  /** Where it gets its events from once it has caught up. */
  channel: FeedChannel | null = null;
  /** Where it is, by room id; null until it joins a room. */
  memberships: Map<string, Member> | null = null;
  /** When the messages received so far are paid for (generic cell rate), in milliseconds since the epoch. */
  paidUntil = 0;
  /** Messages that wait for their turn, the running one included. */
  waiting = 0;
  #last: Promise<void> | null = null;
  #finishing = false;
  readonly #receiver: MessageReceiver;

  constructor(id: string, writer: SocketWriter, feed: Feed, { claims, keyFingerprint }: AuthenticatedUser, desk: MessageReceiver) {
    this.id = id;
    this.writer = writer;
    this.feed = feed;
    this.userId = claims.userId;
    this.keyFingerprint = keyFingerprint;
    this.signedBy = claims.signedBy;
    this.role = claims.role;
    this.rooms = claims.rooms;
    this.expiresAt = claims.expiresAt;
    this.#receiver = desk;
  }

  receive(frame: ArrayBuffer, isBinary: boolean): void {
    if (!this.#finishing) this.#receiver.receive(this, frame, isBinary);
  }

  pinged(): void {
    if (!this.#finishing) this.#receiver.pinged(this);
  }

  /**
   * Ignores messages from now on, and closes the socket once those under way are answered: what has no answer by then was
   * not done. Resolves when the socket is closed.
   */
  async finish(code: number, reason: string): Promise<void> {
    this.#finishing = true;
    while (this.#last !== null) await this.#last;
    this.writer.close(code, reason);
  }

  /** Runs `work` after everything enqueued before has ended, so that a client's messages take effect in its order. */
  enqueue(work: () => Promise<void>): void {
    this.waiting++;
    const run = this.#last === null ? work() : this.#last.then(work);
    const last = run.catch(() => undefined).then(() => {
      this.waiting--;
      if (this.#last === last) this.#last = null;
    });
    this.#last = last;
  }

  ended(): void {
    this.writer.ended();
    this.#receiver.leave(this);
  }
}
