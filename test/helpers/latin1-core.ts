import type { HttpRequest, HttpResponse, TemplatedApp, WebSocketBehavior } from 'uWebSockets.js';
import type { HttpServer } from '../../src/http/listen.ts';

/** Methods of the core that send what they are given. */
const SENDING = new Set(['end', 'write', 'tryEnd', 'writeHeader', 'writeStatus', 'send', 'publish']);

/**
 * A server whose core has the fault of the builds for Node 24, on any Node: strings that hold nothing above U+00FF are sent
 * as Latin-1, all others as UTF-8, and bytes as they are.
 */
export function latin1Core(server: HttpServer): HttpServer {
  return { ...server, app: faulty(server.app, wrapApp) };
}

/** A native object whose sending methods have the fault. `special`: what else is to be given in place of a method. */
function faulty<T extends object>(native: T, special?: (native: T, name: string) => ((...args: never[]) => unknown) | undefined): T {
  return new Proxy(native, {
    get: (target, name) => {
      const own = typeof name === 'string' ? special?.(target, name) : undefined;
      if (own !== undefined) return own;
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (!SENDING.has(String(name))) return value.bind(target) as unknown;
      return (...args: unknown[]): unknown => {
        const result: unknown = Reflect.apply(value, target, args.map(asSent));
        return result === target ? faulty(target) : result;
      };
    },
  });
}

function asSent(argument: unknown): unknown {
  return typeof argument === 'string' && /^[\0-\xff]*$/.test(argument) ? Buffer.from(argument, 'latin1') : argument;
}

function wrapApp(app: TemplatedApp, name: string): ((...args: never[]) => unknown) | undefined {
  if (name === 'any') {
    return (pattern: string, handler: (response: HttpResponse, request: HttpRequest) => void) =>
      app.any(pattern, (response, request) => handler(faulty(response), request));
  }
  if (name !== 'ws') return undefined;
  return <T>(pattern: string, behavior: WebSocketBehavior<T>) =>
    app.ws<T>(pattern, {
      ...behavior,
      upgrade: (response, request, context) => behavior.upgrade?.(faulty(response), request, context),
      open: (socket) => behavior.open?.(faulty(socket)),
    });
}
