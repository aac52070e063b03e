import { CollabError, publicError } from '../../model/errors.ts';
import { addressBlock } from '../../lib/addresses/client-address.ts';
import type { Context } from '../../domain/context.ts';
import type { HandshakeInfo } from './upgrade.ts';
import type { SocketWriter } from '../socket/socket-writer.ts';
import { parseFrame, readEnvelope, refuse, replyId, type Envelope } from '../socket/protocol.ts';

/** Milliseconds from its opening in which a socket must have proven who it is. Nothing puts it off. */
export const AUTH_DEADLINE_MS = 5_000;
/** Largest frame taken from a socket that has not. */
export const MAX_PENDING_BYTES = 16_384;
/** Most ping and pong frames of such a socket. */
const MAX_PENDING_PINGS = 10;

/** What waits for a guest's one message. */
export interface Authenticator {
  /** Checks the credentials of a `connect` message and makes the guest a connection, or refuses it. Never rejects. */
  connect(pending: PendingSocket, message: Envelope): Promise<void>;
  leave(pending: PendingSocket): void;
}

/** A socket whose credentials come in its first message (docs/realtime.md, "Connecting"). */
export class PendingSocket {
  readonly writer: SocketWriter;
  readonly info: HandshakeInfo;
  /** When it must have authenticated, by `Clock.monotonic`. */
  readonly deadline: number;
  readonly #authenticator: Authenticator;
  #received = false;
  #pings = 0;

  constructor(writer: SocketWriter, pass: HandshakeInfo, deadline: number, authenticator: Authenticator) {
    this.writer = writer;
    this.info = pass;
    this.deadline = deadline;
    this.#authenticator = authenticator;
  }

  receive(frame: ArrayBuffer, isBinary: boolean): void {
    let id: number | null = null;
    try {
      if (this.#received) throw new CollabError('invalid_request', 'Wait for the welcome before sending more');
      this.#received = true;
      if (frame.byteLength > MAX_PENDING_BYTES) throw new CollabError('payload_too_large', `The first message may be at most ${MAX_PENDING_BYTES} bytes`);
      const message = parseFrame(frame, isBinary);
      id = replyId(message);
      const envelope = readEnvelope(message);
      if (envelope.type !== 'connect') throw new CollabError('missing_credentials', 'The first message must be of the type connect');
      void this.#authenticator.connect(this, envelope);
    } catch (error) {
      refuse(this.writer, publicError(error), { id });
    }
  }

  pinged(): void {
    this.#pings++;
    if (this.#pings > MAX_PENDING_PINGS) refuse(this.writer, new CollabError('rate_limited', `At most ${MAX_PENDING_PINGS} pings before the socket has authenticated`));
  }

  ended(): void {
    this.writer.ended();
    this.#authenticator.leave(this);
  }
}

/** The sockets of this worker that have not authenticated; counted per address over the whole cluster. */
export class PendingSockets {
  readonly #ctx: Context;
  readonly #owner: string;
  readonly #limit: number;
  /** In the order of their deadlines. */
  readonly #waiting = new Set<PendingSocket>();

  /** @param limit how many sockets of one address may wait at once */
  constructor(ctx: Context, owner: string, limit: number) {
    this.#ctx = ctx;
    this.#owner = owner;
    this.#limit = limit;
  }

  get all(): Iterable<PendingSocket> {
    return this.#waiting;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Takes a guest in, or refuses it when its address has too many already. */
  enter(pending: PendingSocket): void {
    this.#waiting.add(pending);
    if (this.#count(pending, 1) <= this.#limit) return;
    const error = new CollabError('rate_limited', `At most ${this.#limit} sockets of one address may wait to authenticate`);
    refuse(pending.writer, error, { reason: 'too_many_connections' });
  }

  /** Forgets a guest: it has authenticated or gone. */
  leave(pending: PendingSocket): void {
    if (this.#waiting.delete(pending)) this.#count(pending, -1);
  }

  /** Closes those whose time is up. */
  expire(now: number): void {
    for (const pending of this.#waiting) {
      if (pending.deadline > now) return;
      refuse(pending.writer, new CollabError('auth_timeout', `The socket did not authenticate within ${AUTH_DEADLINE_MS / 1000} s`));
    }
  }

  #count(pending: PendingSocket, delta: number): number {
    return this.#ctx.shared.count(`guests/${addressBlock(pending.info.address)}`, this.#owner, delta);
  }
}
