import type { CoreApp, CoreHandler, HttpServer, SocketBehavior } from '../../src/net/core.ts';

/** Methods of the core that send what they are given. */
const SENDING: ReadonlySet<string | symbol> = new Set([
  'end',
  'write',
  'tryEnd',
  'writeHeader',
  'writeStatus',
  'send',
  'publish',
]);

/**
 * A server whose core has the fault of the builds for Node 24, on any Node: strings that hold nothing above U+00FF are
 * sent as Latin-1, all others as UTF-8, and bytes as they are.
 */
export function latin1Core(server: HttpServer): HttpServer {
  return faultyCore(server, (argument) =>
    typeof argument === 'string' && /^[\0-\xff]*$/.test(argument) ? Buffer.from(argument, 'latin1') : argument,
  );
}

/** A server whose core sends, in place of each argument of its sending methods, what `asSent` makes of it. */
export function faultyCore(server: HttpServer, asSent: (argument: unknown) => unknown): HttpServer {
  return { ...server, app: faulty(server.app, asSent) };
}

/** An app, response or socket of the core whose sending methods have the fault. */
function faulty<T extends object>(native: T, asSent: (argument: unknown) => unknown): T {
  return new Proxy(native, {
    get: (target, name) => {
      const route = isApp(target) ? routeMethod(target, name, asSent) : undefined;
      if (route !== undefined) return route;
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (!SENDING.has(name)) return value.bind(target) as unknown;
      return (...args: unknown[]): unknown => {
        const result: unknown = Reflect.apply(value, target, args.map(asSent));
        return result === target ? faulty(target, asSent) : result;
      };
    },
  });
}

const isApp = (native: object): native is CoreApp => 'upgradeLater' in native;

/** A method that registers a handler, which is given faulty objects; undefined for any other method. */
function routeMethod(
  app: CoreApp,
  name: string | symbol,
  asSent: (argument: unknown) => unknown,
): ((...args: never[]) => unknown) | undefined {
  if (name === 'any') {
    return (pattern: string, handler: CoreHandler) =>
      app.any(pattern, (response, request) => handler(faulty(response, asSent), request));
  }
  if (name !== 'ws') return undefined;
  return <T>(pattern: string, { upgrade, open, ...behavior }: SocketBehavior<T>) =>
    app.ws<T>(pattern, {
      ...behavior,
      ...(upgrade === undefined
        ? {}
        : { upgrade: (response, request, context) => upgrade(faulty(response, asSent), request, context) }),
      open: (socket) => open?.(faulty(socket, asSent)),
    });
}
