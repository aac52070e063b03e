import type { CoreApp, CoreKind, HttpServer, SocketBehavior } from './core.ts';
import type { InputNotifier } from './input-notifier.ts';
import { createNodeServer } from './node/server.ts';
import { createUwsServer } from './uws/server.ts';

/**
 * Creates a server that does not listen yet.
 *
 * @param input called before each handler that is attached with `any` or `ws`; not for later bytes of a request's body
 * @throws {Error} with one line for the operator if the core does not run here
 */
export function createServer(core: CoreKind, input?: InputNotifier): HttpServer {
  const server = core === 'uws' ? createUwsServer() : createNodeServer();
  return input === undefined ? server : { ...server, app: withInput(server.app, input) };
}

function withInput(app: CoreApp, input: InputNotifier): CoreApp {
  return {
    ...app,
    any: (pattern, handler) =>
      app.any(pattern, (response, request) => {
        input.onRequest();
        return handler(response, request);
      }),
    ws: (pattern, behavior) => app.ws(pattern, { ...behavior, ...handlersWithInput(behavior, input) }),
  };
}

/** The handlers of a behavior that receive something from a client, each preceded by a call of `input`. */
function handlersWithInput<T>(
  { upgrade, open, message, ping, pong, close }: SocketBehavior<T>,
  input: InputNotifier,
): SocketBehavior<T> {
  const wrap = <A extends unknown[]>(
    handler: ((...args: A) => unknown) | undefined,
  ): { (...args: A): void } | undefined =>
    handler &&
    ((...args) => {
      input.onMessage();
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
