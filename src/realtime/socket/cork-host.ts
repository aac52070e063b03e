import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { connect, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type * as Core from 'uWebSockets.js';

/**
 * A response of our own that is never answered, to run late upgrades in.
 *
 * An upgrade after an await must not be corked on its own response: until July 2026 (uWebSockets #1929) the core then
 * looks for the state of a response in what has become a WebSocket, and closes the socket if chance has it. Without a
 * cork it works, but the core writes a warning to stderr each time. In the cork of another response it works silently.
 * That other response is this one; the other end of its connection is in this very process.
 */
export class CorkHost {
  #response: Core.HttpResponse | null = null;
  #client: Socket | null = null;
  #ready: Promise<void> | null = null;
  #closed = false;

  /** Runs `work`, in which responses may be upgraded, in a later turn. Rejects only with what `work` throws. */
  async run(work: () => void): Promise<void> {
    if (!this.#closed) await (this.#ready ??= this.#hold());
    // Not within a handler of the core: it would take the upgrade for one of the request that it is handling.
    await nextTurn();
    if (this.#response === null) work();
    else this.#response.cork(work);
  }

  /** Lets go of the response. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#ready;
    this.#client?.destroy();
  }

  /** Resolves when the response is there, or can't be had: then the warnings are the lesser evil. */
  async #hold(): Promise<void> {
    // Required, not imported: src/net/listen.ts has loaded it, or explained why it can't be.
    const core = createRequire(import.meta.url)('uWebSockets.js') as typeof Core;
    const path = `/${randomUUID()}`;
    const app = core.App();
    const held = new Promise<void>((resolve) => {
      app.get(path, (response) => {
        response.onAborted(() => {
          this.#response = null;
          this.#ready = null;
        });
        this.#response = response;
        resolve();
      });
    });
    const listening = await new Promise<Core.us_listen_socket | false>((resolve) => {
      app.listen('127.0.0.1', 0, resolve);
    });
    if (listening === false) return;
    const client = connect(core.us_socket_local_port(listening), '127.0.0.1').unref();
    this.#client = client;
    client.on('error', () => undefined);
    client.write(`GET ${path} HTTP/1.1\r\nHost: anchor\r\n\r\n`);
    await Promise.race([held, new Promise((resolve) => client.once('close', resolve))]);
    core.us_listen_socket_close(listening);
  }
}
