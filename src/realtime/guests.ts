import { CollabError, publicError } from '../errors.ts';
import { addressBlock } from '../lib/client-address.ts';
import type { Context } from '../domain/context.ts';
import type { GuestPass } from './handshake.ts';
import type { Line } from './line.ts';
import { parseFrame, readEnvelope, refuse, replyId, type Envelope } from './protocol.ts';

/** Milliseconds from its opening in which a socket must have proven who it is. Nothing puts it off. */
export const AUTH_DEADLINE_MS = 5_000;
/** Largest frame taken from a socket that has not. */
export const MAX_GUEST_BYTES = 16_384;
/** Most ping and pong frames of such a socket. */
const MAX_GUEST_PINGS = 10;

/** What waits for a guest's one message. */
export interface Porter {
  /** Checks the credentials of a `connect` message and makes the guest a connection, or refuses it. Never rejects. */
  connect(guest: Guest, message: Envelope): Promise<void>;
  leave(guest: Guest): void;
}

/** A socket whose credentials come in its first message (docs/realtime.md, "Connecting"). */
export class Guest {
  readonly line: Line;
  readonly pass: GuestPass;
  /** When it must have authenticated, by `Clock.monotonic`. */
  readonly deadline: number;
  readonly #porter: Porter;
  #spoken = false;
  #pings = 0;

  constructor(line: Line, pass: GuestPass, deadline: number, porter: Porter) {
    this.line = line;
    this.pass = pass;
    this.deadline = deadline;
    this.#porter = porter;
  }

  receive(frame: ArrayBuffer, isBinary: boolean): void {
    let id: number | null = null;
    try {
      if (this.#spoken) throw new CollabError('invalid_request', 'Wait for the welcome before sending more');
      this.#spoken = true;
      if (frame.byteLength > MAX_GUEST_BYTES) throw new CollabError('payload_too_large', `The first message may be at most ${MAX_GUEST_BYTES} bytes`);
      const message = parseFrame(frame, isBinary);
      id = replyId(message);
      const envelope = readEnvelope(message);
      if (envelope.type !== 'connect') throw new CollabError('missing_credentials', 'The first message must be of the type connect');
      void this.#porter.connect(this, envelope);
    } catch (error) {
      refuse(this.line, publicError(error), { id });
    }
  }

  pinged(): void {
    this.#pings++;
    if (this.#pings > MAX_GUEST_PINGS) refuse(this.line, new CollabError('rate_limited', `At most ${MAX_GUEST_PINGS} pings before the socket has authenticated`));
  }

  ended(): void {
    this.line.ended();
    this.#porter.leave(this);
  }
}

/** The sockets of this worker that have not authenticated; counted per address over the whole cluster. */
export class Guests {
  readonly #ctx: Context;
  readonly #owner: string;
  readonly #limit: number;
  /** In the order of their deadlines. */
  readonly #waiting = new Set<Guest>();

  /** @param limit how many sockets of one address may wait at once */
  constructor(ctx: Context, owner: string, limit: number) {
    this.#ctx = ctx;
    this.#owner = owner;
    this.#limit = limit;
  }

  get all(): Iterable<Guest> {
    return this.#waiting;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Takes a guest in, or refuses it when its address has too many already. */
  enter(guest: Guest): void {
    this.#waiting.add(guest);
    if (this.#count(guest, 1) <= this.#limit) return;
    const error = new CollabError('rate_limited', `At most ${this.#limit} sockets of one address may wait to authenticate`);
    refuse(guest.line, error, { reason: 'too_many_connections' });
  }

  /** Forgets a guest: it has authenticated or gone. */
  leave(guest: Guest): void {
    if (this.#waiting.delete(guest)) this.#count(guest, -1);
  }

  /** Closes those whose time is up. */
  expire(now: number): void {
    for (const guest of this.#waiting) {
      if (guest.deadline > now) return;
      refuse(guest.line, new CollabError('auth_timeout', `The socket did not authenticate within ${AUTH_DEADLINE_MS / 1000} s`));
    }
  }

  #count(guest: Guest, delta: number): number {
    return this.#ctx.shared.count(`guests/${addressBlock(guest.pass.address)}`, this.#owner, delta);
  }
}
