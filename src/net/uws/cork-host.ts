import { randomUUID } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { setImmediate as nextTick } from 'node:timers/promises';
import type * as UWebSockets from 'uWebSockets.js';

/**
 * An HTTP response that is never sent. Upgrades after an await run in its cork (decision 7).
 *
 * Such an upgrade must not be corked on its own response: until July 2026 (uWebSockets #1929) uWebSockets.js then reads
 * the state of a response from what has become a WebSocket, and may close the socket. Without a cork it works, but
 * writes a warning to stderr each time. In the cork of another response it works silently. The connection of that
 * response comes from this process.
 */
export class CorkHost {
  readonly #uws: typeof UWebSockets;
  #response: UWebSockets.HttpResponse | null = null;
  #client: Socket | null = null;
  #ready: Promise<void> | null = null;
  #closed = false;

  /** @param uws the loaded module */
  constructor(uws: typeof UWebSockets) {
    this.#uws = uws;
  }

  /** Runs `work`, which may upgrade responses, in a later event loop iteration. Rejects only if `work` throws. */
  async run(work: () => void): Promise<void> {
    if (!this.#closed) await (this.#ready ??= this.#open());
    // Within a native handler, uWebSockets.js would apply the upgrade to the request that it is handling.
    await nextTick();
    if (this.#response === null) work();
    else this.#response.cork(work);
  }

  /** Closes the connection of the response. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#ready;
    this.#client?.destroy();
  }

  /** Resolves once the response is open, or if it cannot be opened: upgrades then work with the warnings. */
  async #open(): Promise<void> {
    const path = `/${randomUUID()}`;
    const app = this.#uws.App();
    const received = new Promise<void>((resolve) => {
      app.get(path, (response) => {
        response.onAborted(() => {
          this.#response = null;
          this.#ready = null;
        });
        this.#response = response;
        resolve();
      });
    });
    const listening = await new Promise<UWebSockets.us_listen_socket | false>((resolve) => {
      app.listen('127.0.0.1', 0, resolve);
    });
    if (listening === false) return;
    const client = connect(this.#uws.us_socket_local_port(listening), '127.0.0.1').unref();
    this.#client = client;
    client.on('error', () => undefined);
    client.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    await Promise.race([received, new Promise((resolve) => client.once('close', resolve))]);
    this.#uws.us_listen_socket_close(listening);
  }
}
