import type { Role } from '../../model/role.ts';
import type { CollabError } from '../errors.ts';
import type { SocketConstructor } from '../platform.ts';
import type { BackoffOptions } from './backoff.ts';

/**
 * Why a token is requested: for a connection, because the current one expires soon, or because the server refused it.
 */
export type TokenReason = 'connect' | 'expiring' | 'refused';

/**
 * Returns a token of the current user, usually from an endpoint of your backend. It is called for each connection,
 * shortly before a token expires, and once more after a token was refused. Reject to report a failure; the session
 * tries again later, also if there is no answer within 30 s.
 */
export type TokenProvider = (request: { readonly reason: TokenReason }) => string | Promise<string>;

/** The options of a session. */
export interface SessionOptions {
  /**
   * Address of the server, such as `https://comments.example.com`; a path before `/api/v1` is kept. The page's origin
   * if absent.
   */
  readonly serverUrl?: string | undefined;
  /** The key that begins with `pk_`. */
  readonly publishableKey: string;
  readonly token: TokenProvider;
  /** Needed where the platform has no global `WebSocket`, as on Node 20. */
  readonly WebSocket?: SocketConstructor | undefined;
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof fetch | undefined;
  /**
   * Opens the connection when the first room or the inbox is subscribed to, something is written, or users are looked
   * up; not at once. Default: false.
   */
  readonly lazy?: boolean | undefined;
  /** The bounds of the random delay before a reconnect; 0.5 s for the first, doubling up to 30 s, if absent. */
  readonly backoff?: BackoffOptions | undefined;
}

/**
 * - `connecting`: the first connection is being opened
 * - `live`: connected; what the server changes arrives at once
 * - `reconnecting`: the connection was lost; writes wait and are sent on the next one
 * - `offline`: as `reconnecting`, and the platform reports that it has no network
 * - `closed`: ended, by `close()` or for a reason that a new connection would not fix
 */
export type ConnectionStatus = 'connecting' | 'live' | 'reconnecting' | 'offline' | 'closed';

/** The state of a session: an immutable object, a new one after each change. */
export interface SessionState {
  readonly status: ConnectionStatus;
  /** One or two sentences for people: what happened and what to do. Empty while `live`. */
  readonly reason: string;
  /** The error that ended the session or the last connection; null while `live` and after `close()`. */
  readonly error: CollabError | null;
  /** When the next attempt is made, in milliseconds since the epoch; null unless one is scheduled. */
  readonly retryAt: number | null;
  /** The user of the token; null before the first connection. */
  readonly userId: string | null;
  /** What the token allows; null before the first connection. */
  readonly role: Role | null;
  /** The id of the current connection, or of the last one. */
  readonly connectionId: string | null;
}
