import type { AuthenticatedUser, Claims, CredentialReference } from '../../domain/access/tokens.ts';
import type { RoomScope } from '../../model/room.ts';
import type { Feed, FeedAudience, FeedSubscriber } from '../feed/feed.ts';
import type { Session, SocketWriter } from '../socket/socket-writer.ts';

/** Handles the messages of connections. One instance serves all connections of a worker. */
export interface MessageReceiver {
  /** Handles one frame. Never throws. */
  receive(connection: Connection, frame: ArrayBuffer, isBinary: boolean): void;
  /** Counts a ping or pong frame of the protocol as a message. Never throws. */
  pinged(connection: Connection): void;
  /** Releases everything that belongs to the connection, whose socket has closed. Called once. */
  onClosed(connection: Connection): void;
}

/** One authenticated socket. Kept small: there may be tens of thousands, nearly all of them silent. */
export class Connection implements CredentialReference, FeedSubscriber, Session {
  readonly id: string;
  readonly writer: SocketWriter;
  readonly feed: Feed;
  readonly userId: string;
  readonly keyFingerprint: string;
  signedBy: string;
  role: Claims['role'];
  rooms: RoomScope;
  confinedKeyId: Claims['confinedKeyId'];
  /** `exp` of the token in milliseconds since the epoch. */
  expiresAt: number;
  /** Whether the client was warned that its token is about to expire. */
  warned = false;
  /** Whether the welcome was sent; nothing else is sent before it. */
  welcomed = false;
  /** Whether this socket is counted among the sockets of its user. */
  counted = false;
  /** The `confinedKeyId` of its first token, with which it is counted: a later token does not change that. */
  readonly countedKeyId: Claims['confinedKeyId'];
  position = 0;
  audience: FeedAudience | null = null;
  /** Theoretical arrival time of the rate limit of messages (generic cell rate algorithm), by `Clock.monotonic`. */
  theoreticalArrival = 0;
  /** The number of queued messages, including the running one. */
  waiting = 0;
  #last: Promise<void> | null = null;
  #finishing = false;
  readonly #receiver: MessageReceiver;

  constructor(
    id: string,
    writer: SocketWriter,
    feed: Feed,
    { claims, keyFingerprint }: AuthenticatedUser,
    receiver: MessageReceiver,
  ) {
    this.id = id;
    this.writer = writer;
    this.feed = feed;
    this.userId = claims.userId;
    this.keyFingerprint = keyFingerprint;
    this.signedBy = claims.signedBy;
    this.role = claims.role;
    this.rooms = claims.rooms;
    this.confinedKeyId = claims.confinedKeyId;
    this.countedKeyId = claims.confinedKeyId;
    this.expiresAt = claims.expiresAt;
    this.#receiver = receiver;
  }

  /** Handles a frame, unless the connection is being closed. */
  receive(frame: ArrayBuffer, isBinary: boolean): void {
    if (!this.#finishing) this.#receiver.receive(this, frame, isBinary);
  }

  pinged(): void {
    if (!this.#finishing) this.#receiver.pinged(this);
  }

  /**
   * Ignores further messages and closes the socket once the messages in progress are answered. A message without an
   * answer was not processed. Resolves when the socket is closed.
   */
  async finish(code: number, reason: string): Promise<void> {
    this.#finishing = true;
    while (this.#last !== null) await this.#last;
    this.writer.close(code, reason);
  }

  /**
   * Runs `work` after everything queued before it, so that the messages of a client take effect in the order of
   * sending.
   */
  enqueue(work: () => Promise<void>): void {
    this.waiting++;
    const run = this.#last === null ? work() : this.#last.then(work);
    const last = run
      .catch(() => undefined)
      .then(() => {
        this.waiting--;
        if (this.#last === last) this.#last = null;
      });
    this.#last = last;
  }

  ended(): void {
    this.writer.ended();
    this.#receiver.onClosed(this);
  }
}
