import { createServer as createHttpServer, type IncomingMessage, ServerResponse, type ServerOptions } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { setImmediate as nextTick } from 'node:timers/promises';
import { type CoreHandler, type HttpServer, MAX_HEADER_BYTES, type SocketBehavior } from '../core.ts';
import { cannotListen } from '../listen-error.ts';
import { type Connection, Connections } from './connections.ts';
import { checkHead, parserErrorOf, sendHeadError } from './head-errors.ts';
import { NodeRequest } from './request.ts';
import { NodeResponse } from './response.ts';
import { stopParsing } from './stop-parsing.ts';
import { type PendingUpgrade, WebSockets } from './web-sockets.ts';

/**
 * The length of every valid Sec-WebSocket-Key. The native core, too, takes a request with such a key for an upgrade.
 */
const SOCKET_KEY_LENGTH = 24;

/**
 * Creates a server on Node's HTTP server and `ws`, which does not listen yet (docs/decisions/0052).
 *
 * @param answerCloseMs milliseconds that a client may take to answer the close frame of a WebSocket; 5 000 by default
 */
export function createNodeServer(answerCloseMs?: number): HttpServer {
  const core = new NodeCore(new WebSockets(answerCloseMs));
  return {
    app: core.app,
    listen: (host, port) => core.listen(host, port),
    stopListening: () => core.stopListening(),
    close: () => core.close(),
  };
}

class NodeCore implements HttpServer {
  readonly app: HttpServer['app'];
  readonly #handlers = new Map<string, CoreHandler>();
  readonly #behaviors = new Map<string, SocketBehavior<unknown>>();
  readonly #connections = new Connections();
  readonly #webSockets: WebSockets;
  /** Parses; it never listens, because Node's HTTP server closes idle connections when it stops to listen. */
  readonly #http = createHttpServer(this.#httpOptions());
  readonly #tcp: Server = createTcpServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#accept(socket));

  constructor(webSockets: WebSockets) {
    this.#webSockets = webSockets;
    this.app = {
      any: (pattern, handler) => this.#handlers.set(pattern, handler),
      ws: (pattern, behavior) => this.#behaviors.set(pattern, behavior as SocketBehavior<unknown>),
      publish: (topic, message, isBinary) => this.#webSockets.publish(topic, message, isBinary === true),
      upgradeLater: async (work) => {
        await nextTick();
        work();
      },
      lingerMs: this.#webSockets.answerCloseMs,
    };
    // All lines are kept: Node drops those beyond the limit, and two parsers must not see different heads.
    this.#http.maxHeadersCount = 0;
    const onRequest = (request: IncomingMessage, response: ServerResponse): void => this.#onRequest(request, response);
    this.#http.on('request', onRequest);
    this.#http.on('checkExpectation', onRequest);
    this.#http.on('upgrade', (request, socket, head) => this.#onUpgrade(request, socket as Socket, head));
    this.#http.on('connect', (_request, socket) =>
      sendHeadError(socket as Socket, {
        status: 400,
        message: 'The request target must be a path that begins with a slash',
      }),
    );
    this.#http.on('clientError', (error: NodeJS.ErrnoException, socket) =>
      this.#onParserError(error.code, socket as Socket),
    );
  }

  #httpOptions(): ServerOptions {
    // A variable, because the type lacks shouldUpgradeCallback, which Node has since 24.9. Without it, see
    // #withoutUpgrade.
    const options = {
      maxHeaderSize: MAX_HEADER_BYTES,
      requireHostHeader: false,
      insecureHTTPParser: false,
      keepAliveTimeout: 0,
      requestTimeout: 0,
      headersTimeout: 0,
      shouldUpgradeCallback: (request: IncomingMessage) => this.#socketBehavior(request) !== null,
    };
    return options;
  }

  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#tcp.once('error', () => reject(cannotListen(host, port)));
      // In a worker of a cluster, the listen socket of a port that is not exclusive is that of the primary.
      this.#tcp.listen({ host, port, exclusive: port === 0 }, () => resolve((this.#tcp.address() as AddressInfo).port));
    });
  }

  stopListening(): void {
    if (this.#tcp.listening) this.#tcp.close();
  }

  close(): void {
    this.stopListening();
    this.#connections.closeAll();
    this.#webSockets.closeAll();
  }

  #accept(socket: Socket): void {
    this.#connections.add(socket);
    this.#http.emit('connection', socket);
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#connections.get(request.socket);
    if (connection === undefined || connection.closing) return stopParsing(request.socket);
    // A client that does not wait for its response may not have requests handled side by side: decision 7.
    if (connection.active !== null) return void connection.active.close();
    const error = checkHead(request);
    if (error !== null) return this.#refuse(connection, error.status, error.message);
    this.#serve(request, this.#newResponse(connection, request, response, null));
    if (request.listenerCount('data') === 0) request.resume();
  }

  #serve(request: IncomingMessage, response: NodeResponse): void {
    const head = new NodeRequest(request);
    const handler = this.#handlers.get(head.getUrl()) ?? this.#handlers.get('/*');
    if (handler === undefined) response.close();
    else handler(response, head);
  }

  /** Serves an upgrade to a WebSocket; any other upgrade is ignored, and the request served as it is without it. */
  #onUpgrade(request: IncomingMessage, socket: Socket, bytes: Buffer): void {
    const connection = this.#connections.get(socket);
    if (connection === undefined || connection.closing) return void socket.destroy();
    socket.on('error', () => socket.destroy());
    if (connection.active !== null) return void connection.active.close();
    const error = checkHead(request);
    if (error !== null) return this.#refuse(connection, error.status, error.message);
    const behavior = this.#socketBehavior(request);
    if (behavior === null) return this.#withoutUpgrade(request, socket, bytes);
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    const context: PendingUpgrade = { request, socket, bytes, behavior };
    const native = this.#newResponse(connection, request, response, context);
    if (behavior.upgrade === undefined) native.upgrade(undefined, request.headers['sec-websocket-key'] ?? '', '');
    else behavior.upgrade(native, new NodeRequest(request), context);
  }

  /**
   * The behavior of the WebSocket that a request wants to become; null if it is to be served as if it wanted no
   * upgrade.
   */
  #socketBehavior(request: IncomingMessage): SocketBehavior<unknown> | null {
    const { upgrade, 'sec-websocket-key': key = '' } = request.headers;
    if (request.method !== 'GET' || key.length !== SOCKET_KEY_LENGTH || upgrade?.toLowerCase() !== 'websocket')
      return null;
    return this.#behaviors.get(new NodeRequest(request).getUrl()) ?? null;
  }

  /** Lets the parser read the request again, without its `Upgrade` header. */
  #withoutUpgrade({ method, url, rawHeaders }: IncomingMessage, socket: Socket, bytes: Buffer): void {
    const lines = [`${method} ${url} HTTP/1.1`];
    for (let i = 0; i < rawHeaders.length; i += 2)
      if (rawHeaders[i]?.toLowerCase() !== 'upgrade') lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`);
    socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), bytes]));
    this.#http.emit('connection', socket);
  }

  #newResponse(
    connection: Connection,
    request: IncomingMessage,
    response: ServerResponse,
    context: PendingUpgrade | null,
  ): NodeResponse {
    const created = new NodeResponse(request, response, {
      ended: (isLast) => {
        connection.active = null;
        connection.unread = request.complete ? null : created;
        connection.idleSince = this.#connections.now;
        connection.readWhenIdle = connection.socket.bytesRead;
        if (isLast || context !== null) connection.closing = true;
      },
      upgrade: (data, protocol, headers) => {
        if (context === null) throw new Error('the request is not an upgrade');
        this.#connections.remove(connection.socket);
        this.#webSockets.upgrade(context, data, protocol, headers);
      },
    });
    connection.active = created;
    return created;
  }

  #onParserError(code: string | undefined, socket: Socket): void {
    const connection = this.#connections.get(socket);
    const error = parserErrorOf(code);
    if (connection === undefined || error === null || !socket.writable) return void socket.destroy();
    if (connection.closing) return;
    if (connection.active === null) this.#refuse(connection, error.status, error.message);
    else connection.active.refuse(error.status, error.message);
  }

  #refuse(connection: Connection, status: number, message: string): void {
    connection.closing = true;
    connection.idleSince = this.#connections.now;
    sendHeadError(connection.socket, { status, message });
  }
}
