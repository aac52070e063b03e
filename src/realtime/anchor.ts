import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { connect, type Socket } from 'node:net';
import type * as Core from 'uWebSockets.js';

/**
 * A response of our own that is never answered, to run late upgrades in.
 *
 * An upgrade after an await must not be corked on its own response: until July 2026 (uWebSockets #1929) the core then
 * looks at the state of a response that has become a WebSocket in the same memory, and closes it or not as chance has
 * it. Without any cork it works, but the core writes a warning to stderr each time. Inside the cork of another response
 * it works silently. That other response is this one: the other end is in this very process.
 */
export class Anchor {
  #response: Core.HttpResponse | null = null;
  #client: Socket | null = null;
  readonly #ready: Promise<void>;

  constructor() {
    this.#ready = this.#hold();
  }

  /** Runs `work`, in which responses may be upgraded. Never rejects but with what `work` throws. */
  async run(work: () => void): Promise<void> {
    await this.#ready;
    if (this.#response === null) work();
    else this.#response.cork(work);
  }

  /** Lets go of the response. */
  async close(): Promise<void> {
    await this.#ready;
    this.#client?.destroy();
  }

  /** Resolves when the response is there, or can't be had: then the warnings are the lesser evil. */
  #hold(): Promise<void> {
    const core = createRequire(import.meta.url)('uWebSockets.js') as typeof Core;
    const path = `/${randomUUID()}`;
    return new Promise((resolve) => {
      core.App()
        .get('/*', (res, req) => {
          if (req.getUrl() !== path) return void res.close();
          res.onAborted(() => {
            this.#response = null;
          });
          this.#response = res;
          resolve();
        })
        .listen('127.0.0.1', 0, (listening) => {
          if (listening === false) return resolve();
          const client = connect(core.us_socket_local_port(listening), '127.0.0.1');
          client.unref();
          client.on('error', () => resolve());
          client.on('connect', () => core.us_listen_socket_close(listening));
          client.write(`GET ${path} HTTP/1.1\r\nHost: anchor\r\n\r\n`);
          this.#client = client;
        });
    });
  }
}
