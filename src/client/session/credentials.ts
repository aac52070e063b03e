import { CollabError } from '../errors.ts';
import type { TokenProvider, TokenReason } from './options.ts';

/** The publishable key and the current token of a session. */
export class Credentials {
  readonly publishableKey: string;
  readonly #provider: TokenProvider;
  #token: string | null = null;
  #running: Promise<string> | null = null;

  constructor(publishableKey: string, provider: TokenProvider) {
    this.publishableKey = publishableKey;
    this.#provider = provider;
  }

  /** A new token. Calls at the same time share one. Rejects with `token_failed`. */
  renew(reason: TokenReason): Promise<string> {
    this.#running ??= this.#fetch(reason).finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** The current token, or a new one if there is none yet. */
  async current(): Promise<string> {
    return this.#token ?? this.renew('connect');
  }

  /** The headers of a REST request. */
  async headers(): Promise<Record<string, string>> {
    return { 'X-Service-Key': this.publishableKey, 'X-Service-Token': await this.current() };
  }

  /** Makes a request with the current token, and once more with a new one if the server does not accept that any more. */
  async authorize<T>(request: (headers: Record<string, string>) => Promise<T>): Promise<T> {
    try {
      return await request(await this.headers());
    } catch (thrown) {
      if (!(thrown instanceof CollabError) || (thrown.code !== 'token_expired' && thrown.code !== 'invalid_token')) throw thrown;
      await this.renew('refused');
      return request(await this.headers());
    }
  }

  async #fetch(reason: TokenReason): Promise<string> {
    let token: unknown;
    try {
      token = await this.#provider({ reason });
    } catch (error) {
      throw new CollabError('token_failed', `The token function failed: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
    }
    // Anything else would break the handshake in a way that nobody understands: RFC 6455 allows only some characters there.
    if (typeof token !== 'string' || !/^[\w.-]+$/.test(token.trim())) {
      throw new CollabError('token_failed', 'The token function must return the token as text, such as eyJhbGciOi…; it returned something else.');
    }
    this.#token = token.trim();
    return this.#token;
  }
}
