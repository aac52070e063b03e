import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type * as Core from 'uWebSockets.js';
import { glibcVersion } from '../lib/glibc.ts';

/** Which build of uWebSockets.js runs here. */
export interface NativeCore {
  /** The file of the package that holds it. */
  readonly file: string;
  /** Whether it is the build of January 2024 that Node 20 gets: docs/deploy/ says what a proxy in front has to hide. */
  readonly old: boolean;
}

/** An application of uWebSockets.js and the socket that it listens on. */
export interface HttpServer {
  /** Where routes are attached, before `listen`. */
  readonly app: Core.TemplatedApp;
  /**
   * Starts to accept connections. A port other than 0 is shared with every other server of this user that listens there:
   * the kernel spreads the connections. Port 0 takes a free one, which is not shared.
   *
   * @returns the port
   * @throws {Error} when the address cannot be had
   */
  listen(host: string, port: number): Promise<number>;
  /** Accepts no further connection; those that are open go on. Does nothing when it doesn't listen. */
  stopListening(): void;
  /** Ends every connection at once and stops listening. */
  close(): void;
}

/**
 * A server that doesn't listen yet.
 *
 * @param onInput called before each handler that is attached by `any` or `ws`; not for later bytes of a request's body
 * @throws {Error} with one line for the operator where no native core fits this platform
 */
export function createServer(onInput?: () => void): HttpServer {
  const core = loadCore();
  const app = core.App();
  if (onInput !== undefined) announceInput(app, onInput);
  let socket: Core.us_listen_socket | null = null;
  return {
    app,
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        app.listen(host, port, (opened) => {
          if (opened === false) {
            reject(new Error(`Cannot listen on ${host}, port ${port}: the port is in use, or the address is not of this machine.`));
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

function announceInput(app: Core.TemplatedApp, onInput: () => void): void {
  const attach = app.any.bind(app);
  app.any = (pattern, handler) =>
    attach(pattern, (response, request) => {
      onInput();
      return handler(response, request);
    });
  const ws = app.ws.bind(app);
  app.ws = (pattern, behavior) => ws(pattern, { ...behavior, ...announced(behavior, onInput) });
}

/** The handlers of a behavior that bring something of a client. */
function announced<T>({ upgrade, open, message, ping, pong, close }: Core.WebSocketBehavior<T>, onInput: () => void): Core.WebSocketBehavior<T> {
  const first = <A extends unknown[]>(handler: ((...args: A) => unknown) | undefined): { (...args: A): void } | undefined =>
    handler &&
    ((...args) => {
      onInput();
      handler(...args);
    });
  const handlers = { upgrade: first(upgrade), open: first(open), message: first(message), ping: first(ping), pong: first(pong), close: first(close) };
  return Object.fromEntries(Object.entries(handlers).filter(([, handler]) => handler !== undefined));
}

/** The core that this platform and this Node get, whether or not it can be loaded. */
export function nativeCore(): NativeCore {
  return { file: `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`, old: Number(process.versions.modules) <= 120 };
}

/**
 * Looks for the file of the core without loading it.
 * @throws {Error} with one line for the operator where uWebSockets.js has none for this platform and this Node
 */
export function requireCoreFile(): void {
  const folder = dirname(createRequire(import.meta.url).resolve('uWebSockets.js'));
  if (!existsSync(join(folder, nativeCore().file))) throw unsupported();
}

/** Bytes of a request's header block; the core's own limit of 4 KiB refuses honest requests. */
const MAX_HEADER_BYTES = 16_384;

function loadCore(): typeof Core {
  // The core reads it once, while it is loaded.
  process.env['UWS_HTTP_MAX_HEADERS_SIZE'] = String(MAX_HEADER_BYTES);
  try {
    // Required, not imported: a static import would fail before there is anybody to explain it.
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
