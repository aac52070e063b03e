import type * as UWebSockets from 'uWebSockets.js';
import type { HttpServer } from '../core.ts';
import { cannotListen } from '../listen-error.ts';
import { CorkHost } from './cork-host.ts';
import { loadNativeCore } from './native-core.ts';

/**
 * The core ends its half of the connection with the close frame, and closes the connection after 16 s if the other half
 * is still open then. Its timers turn every 4 s. It does not say when the connection closes.
 */
const LINGER_MS = 20_000;

/**
 * Creates a server on the native core, which does not listen yet. Its responses and sockets are those of uWebSockets.js
 * themselves. Throws an `Error` with one line for the operator if none runs here.
 */
export function createUwsServer(): HttpServer {
  const uws = loadNativeCore();
  const native = uws.App();
  const corkHost = new CorkHost(uws);
  let socket: UWebSockets.us_listen_socket | null = null;
  return {
    app: {
      any: (pattern, handler) => native.any(pattern, handler),
      ws: (pattern, behavior) => native.ws(pattern, behavior as UWebSockets.WebSocketBehavior<never>),
      publish: (topic, message, isBinary, compress) => native.publish(topic, message, isBinary, compress),
      upgradeLater: (work) => corkHost.run(work),
      lingerMs: LINGER_MS,
    },
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        native.listen(host, port, (opened) => {
          if (opened === false) return reject(cannotListen(host, port));
          socket = opened;
          resolve(uws.us_socket_local_port(opened));
        });
      }),
    stopListening: () => {
      if (socket !== null) uws.us_listen_socket_close(socket);
      socket = null;
    },
    close: () => {
      socket = null;
      void corkHost.close();
      native.close();
    },
  };
}
