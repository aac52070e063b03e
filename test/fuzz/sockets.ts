import WebSocket from 'ws';
import type { KnownIds } from './ids.ts';
import { nextFrame } from './messages.ts';
import type { Random } from './random.ts';

const HUNG_MS = 20_000;

interface Reply {
  readonly id?: number;
  readonly type?: string;
  readonly error?: { readonly code?: string };
}

/** How a frame was answered: by a reply, or by the end of the socket. */
export type FrameOutcome =
  | { readonly kind: 'reply'; readonly reply: Reply }
  | { readonly kind: 'closed'; readonly code: number }
  | { readonly kind: 'hung' };

/** A socket that sends generated frames one after the other, and connects again when the server ends it. */
export class FuzzSocket {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #ids: KnownIds;
  #ws: WebSocket | null = null;
  #lastId = 0;
  #take: (outcome: FrameOutcome) => void = () => {};

  constructor(url: string, headers: Readonly<Record<string, string>>, ids: KnownIds) {
    this.#url = url;
    this.#headers = headers;
    this.#ids = ids;
  }

  /** Sends the next frame. Resolves with what it was, and how the server took it. */
  async step(random: Random): Promise<{ type: string; frame: Buffer; outcome: FrameOutcome }> {
    const ws = await this.#connected();
    const { type, frame, wellFormed } = nextFrame(random, this.#ids, ++this.#lastId);
    const outcome = this.#outcome();
    ws.send(frame.toString(), { binary: false });
    // A broken frame may have no id to answer by: what follows it shows that the server goes on.
    if (!wellFormed) ws.send(JSON.stringify({ type: 'pong', id: ++this.#lastId }));
    return { type, frame, outcome: await outcome };
  }

  end(): void {
    this.#ws?.terminate();
  }

  async #connected(): Promise<WebSocket> {
    if (this.#ws?.readyState === WebSocket.OPEN) return this.#ws;
    const ws = new WebSocket(this.#url, { headers: this.#headers, perMessageDeflate: false });
    this.#ws = ws;
    ws.on('error', () => {});
    ws.on('message', (data) => this.#receive(JSON.parse(String(data)) as Reply));
    ws.on('close', (code) => this.#take({ kind: 'closed', code }));
    await new Promise((resolve, reject) => {
      ws.once('open', resolve);
      ws.once('close', (code) => reject(new Error(`a socket was closed as it opened (${code})`)));
    });
    return ws;
  }

  #receive(reply: Reply): void {
    this.#ids.learn(reply);
    if (reply.error?.code === 'internal' || reply.id === this.#lastId) this.#take({ kind: 'reply', reply });
  }

  #outcome(): Promise<FrameOutcome> {
    return new Promise((resolve) => {
      const patience = setTimeout(() => resolve({ kind: 'hung' }), HUNG_MS);
      this.#take = (outcome) => {
        clearTimeout(patience);
        resolve(outcome);
      };
    });
  }
}
