import type { CoreApp, CoreKind, HttpServer, SocketBehavior } from './core.ts';
import { createNodeServer } from './node/server.ts';
import { createUwsServer } from './uws/server.ts';

/**
 * Creates a server that does not listen yet.
 *
 * @param onInput called before each handler that is attached with `any` or `ws`; not for later bytes of a request's body
 * @throws {Error} with one line for the operator if the core does not run here
 */
export function createServer(core: CoreKind, onInput?: () => void): HttpServer {
  const server = core === 'uws' ? createUwsServer() : createNodeServer();
  return onInput === undefined ? server : { ...server, app: withInput(server.app, onInput) };
}

function withInput(app: CoreApp, onInput: () => void): CoreApp {
  return {
    ...app,
    any: (pattern, handler) =>
      app.any(pattern, (response, request) => {
        onInput();
        return handler(response, request);
      }),
    ws: (pattern, behavior) => app.ws(pattern, { ...behavior, ...handlersWithInput(behavior, onInput) }),
  };
}

/** The handlers of a behavior that receive something from a client, each preceded by a call of `onInput`. */
function handlersWithInput<T>({ upgrade, open, message, ping, pong, close }: SocketBehavior<T>, onInput: () => void): SocketBehavior<T> {
  const wrap = <A extends unknown[]>(handler: ((...args: A) => unknown) | undefined): { (...args: A): void } | undefined =>
    handler &&
    ((...args) => {
      onInput();
      handler(...args);
    });
  const handlers = { upgrade: wrap(upgrade), open: wrap(open), message: wrap(message), ping: wrap(ping), pong: wrap(pong), close: wrap(close) };
  return Object.fromEntries(Object.entries(handlers).filter(([, handler]) => handler !== undefined));
}
