import type { Frame, ServerEvent, Session, Welcome } from './protocol.ts';

export type Status = 'connecting' | 'live' | 'waiting' | 'stopped';

export interface Listener {
  /** The state of the connection has changed; `detail` is a text for the user. */
  onStatus(status: Status, detail: string): void;
  /** The missed events cannot be replayed: load everything again. The events that follow come after that state. */
  onReset(): void;
  /** The next event. Events come in order of `seq`, each once. */
  onEvent(event: ServerEvent): void;
}

interface Pending {
  readonly resolve: (data: unknown) => void;
  readonly reject: (reason: Error) => void;
}

const BACKOFF_START_MS = 500;
const BACKOFF_MAX_MS = 30_000;
const RATE_LIMITED_MIN_MS = 5_000;
/** Added to the server's heartbeat interval: after that long without a frame the connection counts as lost. */
const TIMEOUT_MARGIN_MS = 10_000;

/**
 * One user's connection to the server. It reconnects after every loss, resumes at the last position it received and
 * renews the token. docs/realtime.md describes the protocol.
 */
export class Connection {
  readonly #session: () => Promise<Session>;
  readonly #listener: Listener;
  readonly #pending = new Map<number, Pending>();
  #socket: WebSocket | null = null;
  #position: { epoch: string; seq: number } | null = null;
  #welcomed = false;
  #closed = false;
  #attempts = 0;
  #refusals = 0;
  #lastId = 0;
  #timeoutMs = 35_000;
  #timeout: number | undefined;
  #retry: number | undefined;

  /** @param session fetches fresh credentials; called for every attempt to connect and for every renewal */
  constructor(session: () => Promise<Session>, listener: Listener) {
    this.#session = session;
    this.#listener = listener;
    window.addEventListener('online', this.#retryNow);
    void this.#open();
  }

  /** Sends a message and waits for its reply. Rejects if the server refuses it or the connection is lost. */
  request(type: string, data: object): Promise<unknown> {
    const socket = this.#socket;
    if (socket === null || !this.#welcomed) return Promise.reject(new Error('Not connected. Try again in a moment.'));
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      socket.send(JSON.stringify({ type, id, data }));
    });
  }

  /** Forgets the position and reconnects, so that `onReset` is called again. */
  restart(): void {
    this.#position = null;
    this.#drop('Reloading');
  }

  /** Closes the connection; it does not reconnect. */
  close(): void {
    this.#closed = true;
    window.removeEventListener('online', this.#retryNow);
    window.clearTimeout(this.#retry);
    this.#drop('Closed');
  }

  async #open(): Promise<void> {
    this.#listener.onStatus('connecting', 'Connecting…');
    try {
      const { publishableKey, token } = await this.#session();
      if (this.#closed || this.#socket !== null) return;
      const socket = new WebSocket(this.#address(), ['collab.v1', `collab.key.${publishableKey}`, `collab.token.${token}`]);
      this.#socket = socket;
      this.#welcomed = false;
      socket.onmessage = ({ data }) => this.#receive(socket, JSON.parse(String(data)) as Frame);
      socket.onclose = ({ code, reason }) => this.#onLost(socket, code, reason);
      this.#restartTimeout();
    } catch {
      this.#reconnectLater(0);
    }
  }

  #address(): string {
    const address = new URL('/api/v1/ws', location.href);
    address.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
    if (this.#position !== null) {
      address.searchParams.set('epoch', this.#position.epoch);
      address.searchParams.set('since', String(this.#position.seq));
    }
    return address.href;
  }

  #receive(socket: WebSocket, frame: Frame): void {
    if (socket !== this.#socket) return;
    this.#restartTimeout();
    switch (frame.type) {
      case 'welcome':
        return this.#welcome(frame.data);
      case 'ok':
        return this.#takePending(frame.id)?.resolve(frame.data);
      case 'error':
        return this.#takePending(frame.id)?.reject(new Error(frame.error.message));
      case 'seq':
        return this.#move(frame.seq);
      case 'ping':
        return socket.send('{"type":"pong"}');
      case 'token.expiring':
        void this.#renew();
        return;
      default:
        if (!('seq' in frame)) return;
        this.#move(frame.seq);
        this.#listener.onEvent(frame);
    }
  }

  #welcome({ epoch, seq, recovered, heartbeatMs }: Welcome): void {
    this.#welcomed = true;
    this.#attempts = 0;
    this.#refusals = 0;
    this.#timeoutMs = heartbeatMs + TIMEOUT_MARGIN_MS;
    this.#restartTimeout();
    this.#listener.onStatus('live', 'Live');
    if (recovered && this.#position !== null) return;
    this.#position = { epoch, seq };
    this.#listener.onReset();
  }

  #takePending(id: number | undefined): Pending | undefined {
    if (id === undefined) return undefined;
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }

  #move(seq: number): void {
    if (this.#position !== null) this.#position.seq = seq;
  }

  async #renew(): Promise<void> {
    try {
      const { token } = await this.#session();
      await this.request('auth.refresh', { token });
    } catch {
      // The server will close with 4401, and the next connection attempt gets a new token.
    }
  }

  /** Restarts the timeout for the next frame. */
  #restartTimeout(): void {
    window.clearTimeout(this.#timeout);
    this.#timeout = window.setTimeout(() => this.#drop('The server stopped responding'), this.#timeoutMs);
  }

  /** Closes the socket without waiting for the server's close frame. */
  #drop(why: string): void {
    const socket = this.#socket;
    if (socket === null) return;
    socket.close(1000);
    this.#onLost(socket, 1006, why);
  }

  #onLost(socket: WebSocket, code: number, reason: string): void {
    if (socket !== this.#socket) return;
    this.#socket = null;
    this.#welcomed = false;
    window.clearTimeout(this.#timeout);
    for (const { reject } of this.#pending.values()) reject(new Error('The connection was lost. Check whether your change was saved before you repeat it.'));
    this.#pending.clear();
    if (this.#closed) return;

    if (code === 4401) this.#refusals++;
    const final = code === 1000 || code === 4400 || code === 4403 || this.#refusals > 1;
    if (final) this.#listener.onStatus('stopped', `Stopped (${code}${reason === '' ? '' : `, ${reason}`}). Reload the page to try again.`);
    else this.#reconnectLater(code === 4429 ? RATE_LIMITED_MIN_MS : 0);
  }

  /** Reconnects after a random delay that grows with each failure, so that many pages do not reconnect at once. */
  #reconnectLater(leastMs: number): void {
    if (this.#closed) return;
    const span = Math.min(BACKOFF_MAX_MS, BACKOFF_START_MS * 2 ** this.#attempts++);
    const waitMs = leastMs + Math.random() * span;
    this.#listener.onStatus('waiting', `Connection lost. Reconnecting in ${Math.max(1, Math.round(waitMs / 1000))} s…`);
    window.clearTimeout(this.#retry);
    this.#retry = window.setTimeout(() => void this.#open(), waitMs);
  }

  readonly #retryNow = (): void => {
    if (this.#socket !== null) return;
    window.clearTimeout(this.#retry);
    void this.#open();
  };
}
