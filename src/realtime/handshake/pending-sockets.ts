import type { Context } from '../../domain/context.ts';
import { CollabError, publicError } from '../../model/errors.ts';
import type { Logger } from '../../observability/log.ts';
import { type Envelope, parseFrame, readEnvelope, refuse, replyId } from '../socket/protocol.ts';
import type { Session, SocketWriter } from '../socket/socket-writer.ts';
import { countUnauthenticated } from './refused-sockets.ts';
import type { HandshakeInfo } from './upgrade-outcome.ts';

/** Milliseconds after opening within which a socket must authenticate. Nothing extends it. */
export const AUTH_DEADLINE_MS = 5_000;
/** Largest frame accepted before authentication. */
export const MAX_PENDING_BYTES = 16_384;
/** Most ping and pong frames accepted before authentication. */
const MAX_PENDING_PINGS = 10;

/** Handles the one message of a pending socket. */
export interface Authenticator {
  /**
   * Checks the credentials of a `connect` message, then replaces the pending socket by a connection or refuses it.
   * Never rejects.
   */
  connect(pending: PendingSocket, message: Envelope): Promise<void>;
  /** Called when a pending socket has closed. */
  onClosed(pending: PendingSocket): void;
}

/** A socket whose credentials come in its first message (docs/realtime.md, "Connecting"). */
export class PendingSocket implements Session {
  readonly writer: SocketWriter;
  readonly info: HandshakeInfo;
  /** Time by which it must have authenticated, by `Clock.monotonic`. */
  readonly deadline: number;
  /**
   * Resolves once it is counted among the pending sockets of its address, and refused if there are too many. Never
   * rejects.
   */
  counted: Promise<void> = Promise.resolve();
  readonly #authenticator: Authenticator;
  #received = false;
  #pings = 0;

  constructor(writer: SocketWriter, info: HandshakeInfo, deadline: number, authenticator: Authenticator) {
    this.writer = writer;
    this.info = info;
    this.deadline = deadline;
    this.#authenticator = authenticator;
  }

  receive(frame: ArrayBuffer, isBinary: boolean): void {
    let id: number | null = null;
    try {
      if (this.#received) throw new CollabError('invalid_request', 'Wait for the welcome before sending more');
      this.#received = true;
      if (frame.byteLength > MAX_PENDING_BYTES)
        throw new CollabError('payload_too_large', `The first message may be at most ${MAX_PENDING_BYTES} bytes`);
      const message = parseFrame(frame, isBinary);
      id = replyId(message);
      const envelope = readEnvelope(message);
      if (envelope.type !== 'connect')
        throw new CollabError('missing_credentials', 'The first message must be of the type connect');
      void this.#authenticator.connect(this, envelope);
    } catch (error) {
      refuse(this.writer, publicError(error), { id });
    }
  }

  pinged(): void {
    this.#pings++;
    if (this.#pings > MAX_PENDING_PINGS)
      refuse(
        this.writer,
        new CollabError('rate_limited', `At most ${MAX_PENDING_PINGS} pings before the socket has authenticated`),
      );
  }

  ended(): void {
    this.writer.ended();
    this.#authenticator.onClosed(this);
  }

  /** Closes the socket at once: no message was processed. */
  finish(code: number, reason: string): Promise<void> {
    this.writer.close(code, reason);
    return Promise.resolve();
  }
}

/**
 * The sockets of this worker that have not authenticated. They are counted per client address over the whole cluster.
 */
export class PendingSockets {
  readonly #ctx: Context;
  readonly #owner: string;
  readonly #limit: number;
  readonly #log: Logger;
  /** In the order of their deadlines. */
  readonly #sockets = new Set<PendingSocket>();

  /** @param limit most pending sockets of one address */
  constructor(ctx: Context, owner: string, limit: number, log: Logger) {
    this.#ctx = ctx;
    this.#log = log;
    this.#owner = owner;
    this.#limit = limit;
  }

  /** All pending sockets, in the order of their deadlines. */
  get all(): Iterable<PendingSocket> {
    return this.#sockets;
  }

  /** The number of pending sockets. */
  get size(): number {
    return this.#sockets.size;
  }

  /** Adds a socket, and counts it. */
  add(pending: PendingSocket): void {
    this.#sockets.add(pending);
    pending.counted = this.#admit(pending).catch((error: unknown) => {
      this.#log.error({ err: error }, 'a WebSocket could not be counted');
      refuse(pending.writer, publicError(error));
    });
  }

  /** Removes a socket that has authenticated or closed. */
  remove(pending: PendingSocket): void {
    if (!this.#sockets.delete(pending)) return;
    this.#count(pending, -1).catch((error: unknown) =>
      this.#log.warn(
        { err: error },
        'a WebSocket that no longer waits could not be subtracted from those of its address: it counts until this worker ends',
      ),
    );
  }

  /** Counts all sockets in a new lease of this worker. */
  async countAgain(): Promise<void> {
    await Promise.all([...this.#sockets].map((pending) => this.#count(pending, 1)));
  }

  /** Closes the sockets whose deadline has passed. `now` is `Clock.monotonic`. */
  expire(now: number): void {
    for (const pending of this.#sockets) {
      if (pending.deadline > now) return;
      refuse(
        pending.writer,
        new CollabError('auth_timeout', `The socket did not authenticate within ${AUTH_DEADLINE_MS / 1000} s`),
      );
    }
  }

  /** Counts a socket, and refuses it if its address has too many. */
  async #admit(pending: PendingSocket): Promise<void> {
    if ((await this.#count(pending, 1)) <= this.#limit) return;
    const error = new CollabError(
      'rate_limited',
      `At most ${this.#limit} sockets of one address may wait to authenticate`,
    );
    refuse(pending.writer, error, { reason: 'too_many_connections' });
  }

  #count(pending: PendingSocket, delta: number): Promise<number> {
    return countUnauthenticated(this.#ctx, this.#owner, pending.info.address, delta);
  }
}
