import type { CoreApp, CoreKind, HttpServer, SocketBehavior } from './core.ts';
import type { ReadBarrier } from './read-barrier.ts';
import { createNodeServer } from './node/server.ts';
import { createUwsServer } from './uws/server.ts';

/**
 * Creates a server that does not listen yet.
 *
 * @param barrier called before each handler that is attached with `any` or `ws`; not for later bytes of a request's body
 * @throws {Error} with one line for the operator if the core does not run here
 */
export function createServer(core: CoreKind, barrier?: ReadBarrier): HttpServer {
  const server = core === 'uws' ? createUwsServer() : createNodeServer();
  return barrier === undefined ? server : { ...server, app: appWithBarrier(server.app, barrier) };
}

function appWithBarrier(app: CoreApp, barrier: ReadBarrier): CoreApp {
  return {
    ...app,
    any: (pattern, handler) =>
      app.any(pattern, (response, request) => {
        barrier.onRequest();
        return handler(response, request);
      }),
    ws: (pattern, behavior) => app.ws(pattern, { ...behavior, ...withBarrier(behavior, barrier) }),
  };
}

/** The handlers of a behavior that receive something from a client, each preceded by a call of `barrier`. */
function withBarrier<T>(
  { upgrade, open, message, ping, pong, close }: SocketBehavior<T>,
  barrier: ReadBarrier,
): SocketBehavior<T> {
  const wrap = <A extends unknown[]>(
    handler: ((...args: A) => unknown) | undefined,
  ): { (...args: A): void } | undefined =>
    handler &&
    ((...args) => {
      barrier.onMessage();
      handler(...args);
    });
  const handlers = {
    upgrade: wrap(upgrade),
    open: wrap(open),
    message: wrap(message),
    ping: wrap(ping),
    pong: wrap(pong),
    close: wrap(close),
  };
  return Object.fromEntries(Object.entries(handlers).filter(([, handler]) => handler !== undefined));
}
