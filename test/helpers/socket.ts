import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import WebSocket from 'ws';

/** A frame of the server. */
export interface Frame {
  readonly type: string;
  readonly id?: number;
  readonly seq?: number;
  readonly roomId?: string;
  readonly at?: string;
  readonly actor?: { readonly userId: string | null; readonly connectionId?: string };
  readonly data?: Record<string, unknown>;
  readonly error?: { readonly code: string; readonly message: string };
}

/** How a socket ended. */
export interface Closing {
  readonly code: number;
  readonly reason: string;
}

/** An answer in place of an upgrade. */
export interface Refusal {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

export interface SocketOptions {
  readonly protocols?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly origin?: string;
  /** Begin without reading from the connection: a slow consumer. */
  readonly paused?: boolean;
}

const TIMEOUT_MS = 60_000;

/** A client that keeps every frame and lets a test wait for one. */
export class TestSocket {
  readonly frames: Frame[] = [];
  /** Resolves when the socket is open, or has ended before. */
  readonly opened: Promise<void>;
  readonly closed: Promise<Closing>;
  /** Resolves only when the server answers with something else than an upgrade. */
  readonly refused: Promise<Refusal>;
  readonly #ws: WebSocket;
  readonly #watchers = new Set<() => void>();
  #connection: Socket | null = null;
  #ended: Closing | null = null;
  #lastId = 0;

  constructor(url: string, options: SocketOptions = {}) {
    const { protocols = [], headers = {}, origin, paused = false } = options;
    this.#ws = new WebSocket(url, [...protocols], { headers: { ...headers }, origin, perMessageDeflate: false });
    this.#ws.on('error', () => undefined);
    this.#ws.once('upgrade', (response) => (this.#connection = response.socket));
    this.#ws.on('message', (data) => this.#take(JSON.parse(String(data)) as Frame));
    this.opened = new Promise((resolve) => {
      this.#ws.once('open', () => {
        if (paused) this.#ws.pause();
        resolve();
      });
      this.#ws.once('close', () => resolve());
    });
    this.closed = new Promise((resolve) => {
      this.#ws.once('close', (code, reason) => {
        this.#ended = { code, reason: reason.toString() };
        resolve(this.#ended);
        for (const look of this.#watchers) look();
      });
    });
    this.refused = new Promise((resolve) => {
      this.#ws.once('unexpected-response', (_request, response) => {
        let text = '';
        response.on('data', (chunk) => (text += String(chunk)));
        response.on('end', () => {
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: JSON.parse(text) });
          this.#ws.terminate();
        });
      });
    });
  }

  get protocol(): string {
    return this.#ws.protocol;
  }

  /** Positions of the events received, in the order of their arrival. */
  get seqs(): number[] {
    return this.frames.flatMap((frame) => (isEvent(frame) ? [frame.seq ?? 0] : []));
  }

  /** The first frame of a type, come already or still to come. Rejects when the socket ends without it. */
  frame(type: string): Promise<Frame> {
    return this.until(() => this.frames.find((frame) => frame.type === type), type);
  }

  /** What `find` finds, looking again after every frame. Rejects when the socket ends without it. */
  until<T>(find: () => T | undefined | false, what = 'what was waited for'): Promise<T> {
    return new Promise((resolve, reject) => {
      const done = (): void => {
        this.#watchers.delete(look);
        clearTimeout(patience);
      };
      const look = (): void => {
        const found = find();
        if (found !== undefined && found !== false) {
          done();
          resolve(found);
        } else if (this.#ended !== null) {
          done();
          reject(new Error(`socket ended (${this.#ended.code} ${this.#ended.reason}) without ${what}`));
        }
      };
      const patience = setTimeout(() => {
        done();
        reject(new Error(`no ${what} in ${TIMEOUT_MS} ms; frames: ${JSON.stringify(this.frames.slice(-5))}`));
      }, TIMEOUT_MS);
      this.#watchers.add(look);
      look();
    });
  }

  /** Sends a message with an id and resolves with the reply. */
  request(type: string, data?: unknown): Promise<Frame> {
    const id = ++this.#lastId;
    this.send({ type, id, data });
    return this.until(() => this.frames.find((frame) => frame.id === id), `the reply to ${type}`);
  }

  send(message: unknown): void {
    this.sendRaw(JSON.stringify(message));
  }

  sendRaw(data: string | Buffer): void {
    this.#ws.send(data);
  }

  /** Sends a ping frame of the protocol. */
  ping(): void {
    this.#ws.ping();
  }

  /** Sends a pong frame that nobody asked for. */
  pong(): void {
    this.#ws.pong();
  }

  /** Sends one fragment of a text message. */
  sendFragment(part: Buffer, last: boolean): void {
    this.#ws.send(part, { binary: false, fin: last });
  }

  /** Writes to the connection below the protocol. */
  sendBytes(bytes: Buffer): void {
    this.#connection?.write(bytes);
  }

  /** Reads again, after `paused`. */
  resume(): void {
    this.#ws.resume();
  }

  close(): Promise<Closing> {
    this.#ws.close(1000);
    return this.closed;
  }

  /** Drops the connection without a word. */
  terminate(): Promise<Closing> {
    this.#ws.terminate();
    return this.closed;
  }

  #take(frame: Frame): void {
    this.frames.push(frame);
    for (const look of this.#watchers) look();
  }
}

/** Whether a frame is an event of the log, not a marker of where the log stands. */
export function isEvent(frame: Frame): boolean {
  return frame.seq !== undefined && frame.type !== 'seq';
}
