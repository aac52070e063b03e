import { TestSocket } from './socket.ts';

export interface ResumingClientOptions {
  /** `ws://…/api/v1/ws`, asked for at every connect: a server that was started again may be elsewhere. */
  readonly url: () => string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A client that connects again whenever its socket ends, and goes on from the last position that it has seen. */
export class ResumingClient {
  /** Positions of all events received, in the order of their arrival. */
  readonly seqs: number[] = [];
  /** Resumes that the server could not fulfil: a client would have to load everything again. */
  notRecovered = 0;
  connects = 0;
  readonly #options: ResumingClientOptions;
  #epoch = '';
  #position = 0;
  #going = true;
  #socket: TestSocket | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(options: ResumingClientOptions) {
    this.#options = options;
  }

  /** Connects for the first time; resolves when that is welcomed. */
  async start(): Promise<void> {
    const socket = await this.#connect();
    if (socket !== null) this.#running = this.#follow(socket);
  }

  /** Resolves when the events up to `seq` have been received. */
  async reach(seq: number, withinMs = 60_000): Promise<void> {
    const giveUp = performance.now() + withinMs;
    while (this.#seen() < seq) {
      if (performance.now() > giveUp) throw new Error(`at ${this.#seen()}, not at ${seq}, after ${withinMs} ms`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  async stop(): Promise<void> {
    this.#going = false;
    await this.#socket?.terminate();
    await this.#running;
  }

  #seen(): number {
    return Math.max(this.#position, this.#socket?.seqs.at(-1) ?? 0);
  }

  async #follow(first: TestSocket): Promise<void> {
    for (let socket = first; ;) {
      await socket.closed;
      this.seqs.push(...socket.seqs);
      this.#position = this.seqs.at(-1) ?? this.#position;
      this.#socket = null;
      if (!this.#going) return;
      const next = await this.#connect();
      if (next === null) return;
      socket = next;
    }
  }

  /** Null if the client was stopped meanwhile. */
  async #connect(): Promise<TestSocket | null> {
    while (this.#going) {
      const resume = this.#epoch === '' ? '' : `?epoch=${this.#epoch}&since=${this.#position}`;
      const socket = new TestSocket(this.#options.url() + resume, { headers: this.#options.headers });
      this.#socket = socket;
      try {
        const { data } = await socket.frame('welcome');
        this.connects++;
        if (resume === '') {
          this.#epoch = String(data?.['epoch']);
          this.#position = Number(data?.['seq']);
        } else if (data?.['recovered'] !== true) this.notRecovered++;
        return socket;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
    return null;
  }
}
