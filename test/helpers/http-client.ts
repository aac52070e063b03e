import { Agent, request } from 'node:http';
import { gunzipSync } from 'node:zlib';

/** An answer, read completely. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** What `askOnce` sends besides the method. */
export interface Asked {
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | Uint8Array | undefined;
  /** Whether to make a connection for this request only, which any worker may get. */
  readonly apart?: boolean;
  /** Gives the request up. */
  readonly signal?: AbortSignal;
}

/** Connections stay open for the next request, as those of `fetch` do. */
const agent = new Agent({ keepAlive: true });

/**
 * Requests an `http:` URL of a server of this test. As `fetch` does, which takes three times the processor time, a third
 * of what tests of the API took; but follows no redirect.
 */
export function askOnce(
  method: string,
  url: string,
  { headers, body, apart = false, signal }: Asked = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { method, agent: apart ? false : agent, headers: { Accept: '*/*', ...headers }, signal };
    const asked = request(url, options, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('error', reject);
      answer.on('end', () => {
        const [first = Buffer.alloc(0), ...more] = chunks;
        const bytes = more.length === 0 ? first : Buffer.concat(chunks);
        const plain = answer.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes;
        resolve(new LazyAnswer(answer.statusCode ?? 0, answer.rawHeaders, plain.toString()));
      });
    });
    asked.on('error', reject);
    if (body !== undefined) asked.setHeader('Content-Length', Buffer.byteLength(body));
    asked.end(body);
  });
}

/** Makes the headers when they are first read: most tests do not read them. */
class LazyAnswer implements Answer {
  readonly status: number;
  readonly text: string;
  readonly #raw: readonly string[];
  #headers: Headers | undefined;

  constructor(status: number, raw: readonly string[], text: string) {
    this.status = status;
    this.text = text;
    this.#raw = raw;
  }

  get headers(): Headers {
    if (this.#headers === undefined) {
      this.#headers = new Headers();
      for (let i = 0; i < this.#raw.length; i += 2) this.#headers.append(this.#raw[i] ?? '', this.#raw[i + 1] ?? '');
    }
    return this.#headers;
  }
}
