/**
 * Text or bytes to send. Text should be ASCII (`wireText`), because some builds of uWebSockets.js send other characters
 * as Latin-1.
 */
export type Sendable = string | Uint8Array;

/** The HTTP cores: the native one of uWebSockets.js, and the one on Node's own HTTP server with `ws`. */
export type CoreKind = 'uws' | 'node';

/** The head of a request. Valid only during the call of the handler. */
export interface CoreRequest {
  /** The method as sent. */
  getCaseSensitiveMethod(): string;
  /** The path, with its leading slash, percent-encoded as sent. */
  getUrl(): string;
  /** The part after the question mark; undefined or '' if there is none. */
  getQuery(): string | undefined;
  /** Calls `each` with every header line in order: the name in lower case, and the value as UTF-8 text. */
  forEach(each: (name: string, value: string) => void): void;
}

/** The data with which a core upgrades a response; only the core looks into it. */
export type UpgradeContext = object;

/**
 * The response to one request: the part of the interface of uWebSockets.js that the server uses. After the end or the
 * abort of a response none of its methods may be called.
 */
export interface CoreResponse {
  /** Stops reading the body. */
  pause(): void;
  /** Continues to read the body. */
  resume(): void;
  /** Calls `work` at once and sends what it writes together. A head that is complete by then is sent. */
  cork(work: () => void): unknown;
  /** Begins the head, with the code and its reason phrase. Header lines may follow after a line break. */
  writeStatus(status: string): unknown;
  /**
   * Adds a header. The value may hold more lines, and after an empty line the beginning of the body. A line break that
   * the core adds to the value then belongs to the body.
   */
  writeHeader(name: string, value: Sendable): unknown;
  /** Writes a part of a body of unknown length. Returns false if the part waits for the client. */
  write(part: Sendable): boolean;
  /**
   * Sends the rest of the response.
   *
   * @param closeConnection whether to close the connection after it; false by default
   */
  end(body?: Sendable, closeConnection?: boolean): unknown;
  /** Sends a response without a body, whose headers are complete. */
  endWithoutBody(): unknown;
  /**
   * Writes a part of a body of `size` bytes. Returns whether all of the part was taken, and whether the response is
   * complete.
   */
  tryEnd(part: Uint8Array, size: number): [taken: boolean, complete: boolean];
  /** Closes the connection without a response. The abort handler is called before this returns. */
  close(): unknown;
  /**
   * Calls `handler` with the number of bytes of the body written so far, when more can be written. It returns whether
   * it wrote all it wanted to.
   */
  onWritable(handler: (offset: number) => boolean): unknown;
  /**
   * Calls `handler` once if the connection closes before the response is complete. Must be called before the request's
   * handler returns.
   */
  onAborted(handler: () => void): unknown;
  /**
   * Calls `handler` with each part of the body, whose bytes are valid during the call; `isLast` if it is the last one,
   * which may be empty. Must be called before the request's handler returns.
   */
  onData(handler: (bytes: ArrayBuffer | Uint8Array, isLast: boolean) => void): unknown;
  /** The address of the other end of the connection, as text. */
  getRemoteAddressAsText(): ArrayBuffer;
  /** The same in binary: 4 bytes for IPv4. Any other length says that the text is to be read. */
  getRemoteAddress(): ArrayBuffer;
  /** Makes a WebSocket of the connection. The status must have been written before. */
  upgrade<T>(data: T, key: string, protocol: string, extensions: string, context: UpgradeContext): void;
}

/** A WebSocket, until the close handler is called: the part of the interface of uWebSockets.js that the server uses. */
export interface CoreSocket<T> {
  /**
   * Sends a frame. Returns 1 if all was sent, 0 if some of it waits for the client, and 2 if it was dropped.
   *
   * @param isBinary whether it is a binary frame; a text frame by default
   * @param compress whether the core may compress it, if the client takes compressed frames; false by default
   */
  send(message: Sendable, isBinary?: boolean, compress?: boolean): number;
  /** Bytes that wait for the client. */
  getBufferedAmount(): number;
  /** Sends a close frame after everything else. The close handler is called before this returns. */
  end(code?: number, reason?: Sendable): void;
  /** Lets the socket receive what is published to a topic. Returns false if the core refuses it. */
  subscribe(topic: string): boolean;
  /** Ends a subscription. Returns false if there was none. */
  unsubscribe(topic: string): boolean;
  /** Sends a frame, as `send` does, to all other sockets of a topic. Returns false if the topic has no subscribers. */
  publish(topic: string, message: Sendable, isBinary?: boolean, compress?: boolean): boolean;
  /** Calls `work` at once and sends what it writes together. */
  cork(work: () => void): unknown;
  /** The user data passed to the upgrade. */
  getUserData(): T;
}

/** How the WebSockets of one path behave. */
export interface SocketBehavior<T> {
  /** The largest message in bytes. A larger one ends the socket. */
  maxPayloadLength?: number;
  /** The most bytes that may wait for a client. */
  maxBackpressure?: number;
  /** 1: a socket above `maxBackpressure` is disconnected. */
  closeOnBackpressureLimit?: number;
  /** Seconds of silence after which a socket is disconnected. */
  idleTimeout?: number;
  /** Whether the core sends pings, so that only dead peers are silent. */
  sendPingsAutomatically?: boolean;
  /** Handles the upgrade request. Without it, every request is upgraded. */
  upgrade?: (response: CoreResponse, request: CoreRequest, context: UpgradeContext) => void;
  open?: (socket: CoreSocket<T>) => void;
  message?: (socket: CoreSocket<T>, message: ArrayBuffer, isBinary: boolean) => void;
  ping?: (socket: CoreSocket<T>) => void;
  pong?: (socket: CoreSocket<T>) => void;
  /** Some of what waited has been sent. */
  drain?: (socket: CoreSocket<T>) => void;
  /** The socket has closed and must not be used any more. */
  close?: (socket: CoreSocket<T>, code: number) => void;
}

/** Handles a request. */
export type CoreHandler = (response: CoreResponse, request: CoreRequest) => void;

/** The application that routes are attached to, before the server listens. */
export interface CoreApp {
  /**
   * Handles the requests of every method whose path matches: an exact path, or `/*` for all that nothing else handles.
   */
  any(pattern: string, handler: CoreHandler): unknown;
  /** Handles WebSockets at an exact path. */
  ws<T>(pattern: string, behavior: SocketBehavior<T>): unknown;
  /**
   * Sends a frame to all sockets of a topic; the parameters are those of `CoreSocket.send`. Returns false if the topic
   * has none.
   */
  publish(topic: string, message: Sendable, isBinary?: boolean, compress?: boolean): boolean;
  /**
   * Calls `work`, which may upgrade responses, in a later event loop iteration, outside of every handler. Rejects only
   * if `work` throws.
   */
  upgradeLater(work: () => void): Promise<void>;
  /**
   * The longest time for which the connection of a socket stays open after `end` if its client ignores the close frame,
   * in milliseconds.
   */
  readonly lingerMs: number;
}

/** A server on one of the cores. */
export interface HttpServer {
  /** The application to attach routes to, before `listen`. */
  readonly app: CoreApp;
  /**
   * Starts to accept connections. A port other than 0 is shared: on the native core with every other server of this
   * user that listens on it, on the other one with the workers of the same primary. Port 0 selects a free port, which
   * is not shared.
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

/** The largest header block of a request, in bytes. */
export const MAX_HEADER_BYTES = 16_384;
