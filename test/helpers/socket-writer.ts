import { TestSocket } from './socket.ts';

export interface SocketWriterOptions {
  /** `ws://…/api/v1/ws` */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly threadId: string;
  /** Begins the text of every comment. */
  readonly name: string;
  /** Milliseconds between an answer and the next comment; 3 when absent. */
  readonly pauseMs?: () => number;
}

/** A client that writes one comment after the other over its socket, and connects again when that ends. */
export class SocketWriter {
  /** Texts of comments that were answered with `ok`. */
  readonly answered: string[] = [];
  /** Texts of comments whose socket ended without an answer. */
  readonly unanswered: string[] = [];
  /** Everything that was answered otherwise, in words. */
  readonly bad: string[] = [];
  /** Close codes of its sockets. */
  readonly codes: number[] = [];
  readonly #options: SocketWriterOptions;
  readonly #running: Promise<void>;
  #going = true;

  constructor(options: SocketWriterOptions) {
    this.#options = options;
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#going = false;
    await this.#running;
  }

  async #run(): Promise<void> {
    const { url, headers, threadId, name, pauseMs = () => 3 } = this.#options;
    let count = 0;
    while (this.#going) {
      const socket = new TestSocket(url, { headers });
      let body = '';
      try {
        await socket.frame('welcome');
        while (this.#going) {
          body = `${name} ${++count}`;
          const { type, error } = await socket.request('comment.create', { threadId, body });
          if (type === 'ok') this.answered.push(body);
          else this.bad.push(error?.message ?? type);
          body = '';
          // Some writer waits for an answer at any time all the same, and the processor has time for other tests.
          await new Promise((resolve) => setTimeout(resolve, pauseMs()));
        }
        await socket.close();
      } catch {
        if (body !== '') this.unanswered.push(body);
        this.codes.push((await socket.closed).code);
      }
    }
  }
}
