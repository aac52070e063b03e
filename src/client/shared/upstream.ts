import type { ServerFrame } from '../../model/frames.ts';
import { type Globals, newSocket, onPageEvents, type Socket, type Unsubscribe } from '../platform.ts';
import { Bucket, REFILL_MS } from '../session/bucket.ts';
import { readFrame } from '../session/frame.ts';

/** Listener for the connection to the server. */
export interface UpstreamListener {
  onFrame(frame: ServerFrame, text: string): void;
  /** The connection is closed, and nothing follows. */
  onClose(code: number, reason: string): void;
}

/** How long a connection may take to be welcomed, in milliseconds: less than a session waits. */
const CONNECT_MS = 12_000;
/** Added to the server's heartbeat; less than a session adds, which would come back to the same dead connection. */
const MARGIN_MS = 5_000;
/** Types of messages that are dropped rather than queued. */
const volatileTypes = new Set(['cursor', 'typing']);

/** The one real WebSocket: keeps to the rate limit of the server, and finds out when it is dead. */
export class Upstream {
  readonly #listener: UpstreamListener;
  readonly #socket: Socket;
  readonly #stopListening: Unsubscribe;
  readonly #bucket = new Bucket();
  readonly #queue: string[] = [];
  #isClosed = false;
  #silenceMs = CONNECT_MS;
  #heardAt = Date.now();
  #silence: ReturnType<typeof setTimeout> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(page: Globals, url: string, protocols: string[], listener: UpstreamListener) {
    this.#listener = listener;
    this.#socket = newSocket(page, url, protocols);
    this.#socket.onmessage = ({ data }: { readonly data: unknown }) => this.#receive(String(data));
    this.#socket.onerror = () => {};
    this.#socket.onclose = ({ code, reason }: { readonly code: number; readonly reason: string }) =>
      this.#lost(code, String(reason));
    this.#stopListening = onPageEvents(page, ['offline'], () => this.#lost(1006, 'offline'));
    this.#heard();
  }

  /**
   * Closes the connection if the server has been silent for too long. A timer alone is late in a tab in the background.
   */
  check(): void {
    if (Date.now() - this.#heardAt > this.#silenceMs) this.#lost(1006, 'no answer');
  }

  /** Sends a message in its turn; nothing once the connection is closed. */
  send(type: string, text: string): void {
    if (this.#isClosed || (this.#queue.length > 0 && volatileTypes.has(type))) return;
    this.#queue.push(text);
    this.#flush();
  }

  /** Closes the connection. What waits is not sent. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#silence);
    clearTimeout(this.#timer);
    this.#stopListening();
    this.#queue.length = 0;
    this.#socket.onmessage = null;
    this.#socket.onclose = null;
    this.#socket.close(1000);
  }

  #receive(text: string): void {
    this.#heard();
    const frame = readFrame(text);
    if (frame === null) return this.#lost(1002, 'not a frame');
    if (frame.type === 'welcome') this.#silenceMs = frame.data.heartbeatMs + MARGIN_MS;
    if (frame.type === 'ping') this.send('pong', '{"type":"pong"}');
    this.#listener.onFrame(frame, text);
    this.#flush();
  }

  #heard(): void {
    this.#heardAt = Date.now();
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => this.check(), this.#silenceMs + 1);
  }

  #lost(code: number, reason: string): void {
    this.close();
    this.#listener.onClose(code, reason);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    while (this.#queue.length > 0) {
      if (!this.#bucket.take()) {
        this.#timer = setTimeout(() => this.#flush(), REFILL_MS);
        return;
      }
      this.#socket.send(this.#queue.shift() ?? '');
    }
  }
}
