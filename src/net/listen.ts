import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type * as Core from 'uWebSockets.js';
import { glibcVersion } from '../lib/glibc-version.ts';

/** The build of uWebSockets.js for this platform and this version of Node: the core. */
export interface NativeCore {
  /** Its file in the package. */
  readonly file: string;
  /** Whether it is the build of January 2024, for Node 20. docs/deploy/ lists what a proxy in front of it has to hide. */
  readonly old: boolean;
}

/** An application of uWebSockets.js and its listen socket. */
export interface HttpServer {
  /** The application to attach routes to, before `listen`. */
  readonly app: Core.TemplatedApp;
  /**
   * Starts to accept connections. A port other than 0 is shared with every other server of this user that listens on it, and
   * the kernel distributes the connections. Port 0 selects a free port, which is not shared.
   *
   * @returns the port
   * @throws {Error} if the server cannot listen on the address
   */
  listen(host: string, port: number): Promise<number>;
  /** Stops accepting connections; open ones continue. Does nothing if the server does not listen. */
  stopListening(): void;
  /** Closes every connection at once and stops listening. */
  close(): void;
}

/**
 * Creates a server that does not listen yet.
 *
 * @param onInput called before each handler that is attached with `any` or `ws`; not for later bytes of a request's body
 * @throws {Error} with one line for the operator if there is no core for this platform
 */
export function createServer(onInput?: () => void): HttpServer {
  const core = loadCore();
  const app = core.App();
  if (onInput !== undefined) callBeforeHandlers(app, onInput);
  let socket: Core.us_listen_socket | null = null;
  return {
    app,
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        app.listen(host, port, (opened) => {
          if (opened === false) {
            reject(new Error(`Cannot listen on ${host}, port ${port}: the port is in use, or this machine does not have the address.`));
            return;
          }
          socket = opened;
          resolve(core.us_socket_local_port(opened));
        });
      }),
    stopListening: () => {
      if (socket !== null) core.us_listen_socket_close(socket);
      socket = null;
    },
    close: () => {
      socket = null;
      app.close();
    },
  };
}

function callBeforeHandlers(app: Core.TemplatedApp, onInput: () => void): void {
  const attach = app.any.bind(app);
  app.any = (pattern, handler) =>
    attach(pattern, (response, request) => {
      onInput();
      return handler(response, request);
    });
  const ws = app.ws.bind(app);
  app.ws = (pattern, behavior) => ws(pattern, { ...behavior, ...withInput(behavior, onInput) });
}

/** The handlers of a behavior that receive something from a client, each preceded by a call of `onInput`. */
function withInput<T>({ upgrade, open, message, ping, pong, close }: Core.WebSocketBehavior<T>, onInput: () => void): Core.WebSocketBehavior<T> {
  const wrap = <A extends unknown[]>(handler: ((...args: A) => unknown) | undefined): { (...args: A): void } | undefined =>
    handler &&
    ((...args) => {
      onInput();
      handler(...args);
    });
  const handlers = { upgrade: wrap(upgrade), open: wrap(open), message: wrap(message), ping: wrap(ping), pong: wrap(pong), close: wrap(close) };
  return Object.fromEntries(Object.entries(handlers).filter(([, handler]) => handler !== undefined));
}

/** The core for this platform and this version of Node, whether or not it can be loaded. */
export function nativeCore(): NativeCore {
  return { file: `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`, old: Number(process.versions.modules) <= 120 };
}

/**
 * Checks that the file of the core exists, without loading it.
 * @throws {Error} with one line for the operator if uWebSockets.js has no core for this platform and this version of Node
 */
export function requireCoreFile(): void {
  const folder = dirname(createRequire(import.meta.url).resolve('uWebSockets.js'));
  if (!existsSync(join(folder, nativeCore().file))) throw unsupported();
}

/** The largest header block of a request, in bytes. The default of the core, 4 KiB, refuses legitimate requests. */
const MAX_HEADER_BYTES = 16_384;

function loadCore(): typeof Core {
  // The core reads the variable once, while it is loaded.
  process.env['UWS_HTTP_MAX_HEADERS_SIZE'] = String(MAX_HEADER_BYTES);
  try {
    // Not a static import, which would fail before the error can be explained.
    return createRequire(import.meta.url)('uWebSockets.js') as typeof Core;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') throw new Error('uWebSockets.js is not installed', { cause: error });
    throw unsupported(error);
  }
}

function unsupported(cause?: unknown): Error {
  const libc = glibcVersion();
  return new Error(
    `uWebSockets.js has no build that runs on ${process.platform} ${process.arch}, Node ${process.versions.node}, ${libc === null ? 'without glibc' : `glibc ${libc}`}; ` +
      'supported on Linux with glibc, x64 or arm64, are Node 20 (glibc 2.27 or later), 22 and 24 (glibc 2.38 or later, as in Debian 13 and Ubuntu 24.04)',
    { cause },
  );
}
