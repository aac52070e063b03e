import type { RoomFrame, ServerFrame, StreamEvent, Welcome } from '../../model/frames.ts';
import { CollabError } from '../errors.ts';
import {
  isHidden,
  isOffline,
  onNetworkChange,
  type Socket,
  type SocketConstructor,
  type Unsubscribe,
} from '../platform.ts';
import type { Backoff } from './backoff.ts';
import type { Credentials } from './credentials.ts';
import { readFrame } from './frame.ts';
import type { SessionState, TokenReason } from './options.ts';
import { actionOf, closeError, reasonFor } from './reasons.ts';
import type { Requests } from './requests.ts';

/** Listener for a connection. */
export interface ConnectionListener {
  onState(): void;
  /** Connected. Without `recovered`, events were missed that do not follow: everything must be loaded again. */
  onWelcome(recovered: boolean): void;
  onEvent(event: StreamEvent): void;
  onRoomFrame(frame: RoomFrame): void;
}

/** Dependencies of a connection. */
export interface ConnectionDeps {
  /** The address of the WebSocket, without a query. */
  readonly url: string;
  readonly Socket: SocketConstructor;
  readonly credentials: Credentials;
  readonly requests: Requests;
  readonly listener: ConnectionListener;
  readonly backoff: Backoff;
}

/** Added to the server's heartbeat: after that long without a frame the connection counts as lost. */
const SILENCE_MARGIN_MS = 10_000;
/** How long a connection may take to be welcomed. */
const CONNECT_MS = 15_000;
/** Refused tokens in a row after which the session ends. */
const MAX_REFUSALS = 2;

const initial: SessionState = {
  status: 'connecting',
  reason: 'Connecting…',
  error: null,
  retryAt: null,
  userId: null,
  role: null,
  connectionId: null,
};

/**
 * The WebSocket of a session: opens it, resumes at the last position, answers heartbeats, renews the token, and
 * connects again after every loss (docs/realtime.md).
 */
export class Connection {
  readonly #deps: ConnectionDeps;
  #stopListening: Unsubscribe | null = null;
  #state = initial;
  #socket: Socket | null = null;
  /** The attempt that waits for a token; null if there is none. */
  #opening: object | null = null;
  #position: { epoch: string; seq: number } | null = null;
  #silenceMs = CONNECT_MS;
  #silence: ReturnType<typeof setTimeout> | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #refusals = 0;
  #refusal: CollabError | null = null;
  #tokenReason: TokenReason = 'connect';

  constructor(deps: ConnectionDeps) {
    this.#deps = deps;
  }

  get state(): SessionState {
    return this.#state;
  }

  get isLive(): boolean {
    return this.#state.status === 'live';
  }

  /** Connects now, unless a connection is open or being opened. */
  open(): void {
    clearTimeout(this.#retry);
    if (this.#socket || this.#opening) return;
    this.#stopListening ??= onNetworkChange(() => this.#networkChanged());
    if (this.#state.status === 'closed') {
      this.#refusals = 0;
      this.#deps.requests.reopen();
    }
    const first = this.#state.userId === null;
    this.#set({
      status: first ? 'connecting' : 'reconnecting',
      reason: first ? 'Connecting…' : 'Reconnecting…',
      retryAt: null,
    });
    void this.#connect();
  }

  /** As `open`, but with a new call of the token function, if one has not answered yet. */
  reconnect(): void {
    if (this.#socket) return;
    this.#opening = null;
    this.#deps.credentials.forget();
    this.open();
  }

  /** Ends, until it is opened again. */
  close(): void {
    this.#end(new CollabError('closed', 'The session was closed.'), '');
    this.#set({ error: null });
  }

  async #connect(): Promise<void> {
    const attempt = (this.#opening = {});
    try {
      const token =
        this.#refusals > 0 || this.#state.status !== 'connecting'
          ? await this.#deps.credentials.renew(this.#tokenReason)
          : await this.#deps.credentials.current();
      // Closed meanwhile, and perhaps opened again.
      if (this.#opening !== attempt) return;
      this.#attach(
        new this.#deps.Socket(this.#address(), [
          'collab.v1',
          `collab.key.${this.#deps.credentials.publishableKey}`,
          `collab.token.${token}`,
        ]),
      );
    } catch (thrown) {
      if (this.#opening === attempt) this.#retryLater(this.#failureOf(thrown));
    } finally {
      if (this.#opening === attempt) this.#opening = null;
    }
  }

  #attach(socket: Socket): void {
    this.#socket = socket;
    this.#refusal = null;
    this.#silenceMs = CONNECT_MS;
    this.#heard();
    socket.onmessage = ({ data }: { readonly data: unknown }) => {
      if (this.#socket !== socket || typeof data !== 'string') return;
      const frame = readFrame(data);
      if (!frame) this.#lost(1002, '');
      else this.#receive(frame);
    };
    socket.onerror = () => {};
    socket.onclose = ({ code, reason }: { readonly code: number; readonly reason: string }) => {
      if (this.#socket === socket) this.#lost(code, String(reason));
    };
  }

  #address(): string {
    if (!this.#position) return this.#deps.url;
    return `${this.#deps.url}?epoch=${encodeURIComponent(this.#position.epoch)}&since=${this.#position.seq}`;
  }

  #receive(frame: ServerFrame): void {
    this.#heard();
    // Only a refusal that nothing follows is the reason of a close.
    this.#refusal = null;
    switch (frame.type) {
      case 'welcome':
        return this.#welcomed(frame.data);
      case 'ok':
        return this.#deps.requests.succeeded(frame.id, frame.data);
      case 'error': {
        const error = new CollabError(frame.error.code, frame.error.message, frame.error);
        if (frame.id === undefined) this.#refusal = error;
        else this.#deps.requests.refused(frame.id, error);
        return;
      }
      case 'ping':
        return this.#socket?.send('{"type":"pong"}');
      case 'seq':
        return this.#moveTo(frame.seq);
      case 'token.expiring':
        void this.#renewToken();
        return;
      default:
        if (!('seq' in frame)) return this.#deps.listener.onRoomFrame(frame);
        // The log is in order and without gaps; an event at or before the position was delivered already.
        if (this.#position && frame.seq <= this.#position.seq) return;
        this.#moveTo(frame.seq);
        this.#deps.listener.onEvent(frame);
    }
  }

  #welcomed({ userId, role, connectionId, epoch, seq, recovered, heartbeatMs, maxMessageBytes }: Welcome): void {
    this.#refusals = 0;
    this.#tokenReason = 'connect';
    this.#deps.backoff.reset();
    this.#silenceMs = heartbeatMs + SILENCE_MARGIN_MS;
    this.#heard();
    const resumed = recovered && this.#position !== null;
    if (!resumed) this.#position = { epoch, seq };
    this.#set({ status: 'live', reason: '', error: null, retryAt: null, userId, role, connectionId });
    this.#deps.requests.connected((text) => this.#socket?.send(text), maxMessageBytes);
    this.#deps.listener.onWelcome(resumed);
  }

  #moveTo(seq: number): void {
    if (this.#position) this.#position.seq = seq;
  }

  async #renewToken(): Promise<void> {
    try {
      const token = await this.#deps.credentials.renew('expiring');
      const { role } = (await this.#deps.requests.request('auth.refresh', { token })) as Pick<Welcome, 'role'>;
      this.#set({ role });
    } catch {
      // The server then closes with 4401, and the next connection gets a new token.
    }
  }

  #heard(): void {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => this.#lost(1006, 'no answer'), this.#silenceMs);
  }

  #networkChanged(): void {
    if (this.#state.status === 'closed') return;
    if (isOffline()) {
      if (this.#socket) this.#lost(1006, 'offline');
      else if (this.#state.status === 'reconnecting') this.#set({ status: 'offline', reason: OFFLINE });
    } else if (this.#state.retryAt !== null && !isHidden()) this.open();
  }

  #detach(): void {
    clearTimeout(this.#silence);
    clearTimeout(this.#retry);
    const socket = this.#socket;
    if (!socket) return;
    this.#socket = null;
    socket.onmessage = null;
    socket.onclose = null;
    socket.close(1000);
  }

  #lost(code: number, reason: string): void {
    const error = closeError(code, reason, this.#refusal);
    const action = actionOf(code);
    if (!this.#socket) return;
    this.#detach();
    this.#deps.requests.lost();
    if (action === 'new-token') {
      this.#refusals++;
      this.#tokenReason = 'refused';
    }
    // A key that the server does not know stays unknown, whatever the token is.
    const final = action === 'stop' || this.#refusals >= MAX_REFUSALS || error.code === 'invalid_key';
    if (final) this.#end(error, reasonFor(error));
    else if (action === 'new-token') this.#retryIn(0, error);
    else this.#retryLater(error, action === 'retry-slowly');
  }

  /**
   * The error of an attempt that got no socket. The token function of a page whose server is gone fails with the
   * connection: the loss stays the reason then, since signing in was no problem before it.
   */
  #failureOf(thrown: unknown): CollabError {
    if (!(thrown instanceof CollabError))
      return new CollabError('network', `The connection could not be opened: ${String(thrown)}`, { cause: thrown });
    const { error } = this.#state;
    return thrown.code === 'token_failed' && error?.code === 'network' ? error : thrown;
  }

  #retryLater(error: CollabError, slowly = false): void {
    if (this.#state.status === 'closed') return;
    this.#retryIn(Math.max((error.retryAfter ?? 0) * 1_000, this.#deps.backoff.next(slowly)), error);
  }

  #retryIn(delayMs: number, error: CollabError): void {
    const offline = isOffline();
    this.#set({
      status: offline ? 'offline' : 'reconnecting',
      reason: offline ? OFFLINE : reasonFor(error),
      error,
      retryAt: Date.now() + delayMs,
    });
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.open(), delayMs);
  }

  #end(error: CollabError, reason: string): void {
    this.#detach();
    this.#stopListening?.();
    this.#stopListening = null;
    this.#opening = null;
    this.#set({ status: 'closed', reason, error, retryAt: null });
    this.#deps.requests.end(new CollabError('closed', reason === '' ? error.message : reason, { cause: error }));
  }

  #set(change: Partial<SessionState>): void {
    this.#state = { ...this.#state, ...change };
    this.#deps.listener.onState();
  }
}

const OFFLINE = 'You are offline. What you write is kept and sent when the network is back.';
