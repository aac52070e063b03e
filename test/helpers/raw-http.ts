import { connect, type Socket } from 'node:net';

/** One answer as it came over the wire. */
export interface RawResponse {
  readonly status: number;
  /** By lower-case name; of a repeated header the last. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A connection on which a test says exactly what it wants to. */
export class RawConnection {
  /** Resolves when the connection has ended, with what was received and not taken as an answer. */
  readonly ended: Promise<string>;
  readonly #socket: Socket;
  #chunks: Buffer[] = [];
  #size = 0;
  /** Bytes that the next answer needs, as far as its head tells: nobody looks before they are there. */
  #needed = 0;
  #wake: () => void = () => {};
  #ended = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (data) => {
      this.#chunks.push(data);
      this.#size += data.length;
      if (this.#size >= this.#needed) this.#wake();
    });
    socket.on('error', () => {});
    this.ended = new Promise((resolve) => {
      socket.on('close', () => {
        this.#ended = true;
        this.#wake();
        resolve(this.#received().toString('latin1'));
      });
    });
  }

  static open(port: number): Promise<RawConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1');
      socket.once('error', reject);
      socket.once('connect', () => resolve(new RawConnection(socket)));
    });
  }

  /** Resolves when the bytes have been handed to the system, so that two sends arrive as two segments. */
  send(bytes: string | Buffer): Promise<void> {
    return new Promise((resolve) => {
      this.#socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes, () => setImmediate(resolve));
    });
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** The next answer. Rejects when the connection ends before it is whole. */
  async answer(options: { toHead?: boolean } = {}): Promise<RawResponse> {
    for (;;) {
      const received = this.#received();
      const parsed = parse(received, options.toHead === true);
      this.#needed = typeof parsed === 'number' ? parsed : 0;
      if (typeof parsed !== 'number') {
        this.#chunks = [received.subarray(parsed.length)];
        this.#size = received.length - parsed.length;
        return parsed.answer;
      }
      if (this.#ended)
        throw new Error(`the connection ended after ${JSON.stringify(received.toString('latin1').slice(0, 200))}`);
      await this.#nextChunk();
    }
  }

  /**
   * Resolves with everything received and not taken, once it satisfies `enough`, which is asked from `atLeast` bytes
   * on.
   */
  async until(enough: (received: string) => boolean, atLeast = 0): Promise<string> {
    this.#needed = atLeast;
    while (this.#size < atLeast && !this.#ended) await this.#nextChunk();
    for (;;) {
      const text = this.#received().toString('utf8');
      if (enough(text)) return text;
      if (this.#ended) throw new Error(`the connection ended after ${JSON.stringify(text.slice(-200))}`);
      await this.#nextChunk();
    }
  }

  #nextChunk(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #received(): Buffer {
    if (this.#chunks.length !== 1) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0] ?? Buffer.alloc(0);
  }
}

/** The answer that `received` begins with and its length, or how many bytes that takes at least. */
function parse(received: Buffer, toHead: boolean): { answer: RawResponse; length: number } | number {
  const headEnd = received.indexOf('\r\n\r\n');
  if (headEnd < 0) return 0;
  const [statusLine = '', ...lines] = received.toString('latin1', 0, headEnd).split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const length = headEnd + 4 + (toHead ? 0 : Number(headers['content-length'] ?? 0));
  if (received.length < length) return length;
  return {
    answer: { status: Number(statusLine.split(' ')[1]), headers, body: received.toString('utf8', headEnd + 4, length) },
    length,
  };
}
