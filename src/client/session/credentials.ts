import { CollabError } from '../errors.ts';
import type { TokenProvider, TokenReason } from './options.ts';

/** How long the token function may take, in milliseconds. */
const TOKEN_MS = 30_000;

/** The publishable key and the current token of a session. */
export class Credentials {
  readonly publishableKey: string;
  readonly #provider: TokenProvider;
  #token: string | null = null;
  #running: Promise<string> | null = null;
  #calls = 0;

  constructor(publishableKey: string, provider: TokenProvider) {
    this.publishableKey = publishableKey;
    this.#provider = provider;
  }

  /** A new token. Calls at the same time share one. Rejects with `token_failed`. */
  renew(reason: TokenReason): Promise<string> {
    return (this.#running ??= this.#fetch(reason));
  }

  /** Ignores what an unfinished call of the token function will answer: the next `renew` makes another one. */
  forget(): void {
    this.#running = null;
  }

  /** The current token, or a new one if there is none yet. */
  async current(): Promise<string> {
    return this.#token ?? this.renew('connect');
  }

  /**
   * Makes a request with the current token, and once more with a new one if the server does not accept that any more.
   */
  async authorize<T>(request: (headers: Record<string, string>) => Promise<T>): Promise<T> {
    const attempt = async (): Promise<T> =>
      request({ 'X-Service-Key': this.publishableKey, 'X-Service-Token': await this.current() });
    try {
      return await attempt();
    } catch (thrown) {
      if (!['token_expired', 'invalid_token'].includes((thrown as CollabError).code)) throw thrown;
      await this.renew('refused');
      return attempt();
    }
  }

  async #fetch(reason: TokenReason): Promise<string> {
    const call = ++this.#calls;
    let token: unknown;
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error('no answer within 30 s')), TOKEN_MS);
      });
      token = await Promise.race([late, (async () => this.#provider({ reason }))()]);
    } catch (error) {
      throw new CollabError(
        'token_failed',
        `The token function failed: ${error instanceof Error ? error.message : String(error)}`,
        { cause: error },
      );
    } finally {
      clearTimeout(timer);
      if (call === this.#calls) this.#running = null;
    }
    // Anything else would break the handshake in a way that nobody understands: RFC 6455 allows only some characters
    // there.
    if (typeof token !== 'string' || !/^[\w.-]+$/.test(token.trim())) {
      throw new CollabError('token_failed', 'The token function must return the token as text, such as eyJhbGciOi…');
    }
    const trimmed = token.trim();
    if (call === this.#calls) this.#token = trimmed;
    return trimmed;
  }
}
