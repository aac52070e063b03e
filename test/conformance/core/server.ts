import type { Test } from 'tap';
import type { CoreApp, CoreKind, CoreSocket, Sendable } from '../../../src/net/core.ts';
import { createServer } from '../../../src/net/listen.ts';
import { RawConnection } from '../../helpers/raw-http.ts';

/** What a server of the suite has noticed. */
export interface Noticed {
  /** The requests that reached a handler: method and path. */
  readonly handled: string[];
  /** The paths of responses that were aborted. */
  readonly aborted: string[];
  /** The codes of sockets that were closed. */
  readonly closed: number[];
  readonly sockets: CoreSocket<{ name: string }>[];
  drained: number;
}

/** A running server on one of the cores. */
export interface CoreServer extends Noticed {
  readonly port: number;
  readonly app: CoreApp;
  open(): Promise<RawConnection>;
}

/** A body whose length takes many writes. */
export const LARGE = Buffer.alloc(8 * 1024 * 1024, 'abcdefgh');

/** Serves echoes, streams, large bodies and WebSockets. It ends with the test. */
export async function serveCore(t: Test, core: CoreKind): Promise<CoreServer> {
  const server = createServer(core);
  const { app } = server;
  const noticed: Noticed = { handled: [], aborted: [], closed: [], sockets: [], drained: 0 };
  app.any('/*', (response, request) => {
    const path = request.getUrl();
    const method = request.getCaseSensitiveMethod();
    noticed.handled.push(`${method} ${path}`);
    let over = false;
    response.onAborted(() => {
      over = true;
      noticed.aborted.push(path);
    });
    let length = 0;
    request.forEach(
      (name, value) =>
        (length = name === 'content-length' ? Number(value) : name === 'transfer-encoding' ? Infinity : length),
    );
    const send = (body: Sendable): void => {
      if (over) return;
      over = true;
      response.cork(() => {
        response.writeStatus('200 OK');
        response.writeHeader('X-Path', path);
        response.end(body);
      });
    };
    if (path === '/never') return;
    if (path === '/close') return void response.close();
    if (path === '/large') {
      const write = (offset: number): boolean => {
        const [taken, complete] = response.tryEnd(LARGE.subarray(offset), LARGE.length);
        over ||= complete;
        return taken;
      };
      response.onWritable((offset) => over || write(offset));
      response.cork(() => void write(0));
      return;
    }
    if (path === '/stream') {
      response.cork(() => response.writeStatus('200 OK'));
      response.cork(() => response.write('one,'));
      setImmediate(() => response.cork(() => response.end('two')));
      over = true;
      return;
    }
    if (path === '/lines') {
      over = true;
      response.cork(() => {
        response.writeStatus('204 No Content');
        response.writeHeader(
          'Content-Type',
          'text/plain\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff',
        );
        response.endWithoutBody();
      });
      return;
    }
    if (length === 0) return send('empty');
    if (path === '/early') {
      response.onData(() => {});
      return send('early');
    }
    const parts: Buffer[] = [];
    response.onData((bytes, isLast) => {
      parts.push(Buffer.concat([bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes)]));
      if (isLast) send(Buffer.concat(parts));
    });
  });
  app.ws<{ name: string }>('/ws', {
    maxPayloadLength: 1024,
    maxBackpressure: 64 * 1024 * 1024,
    upgrade: (response, request, context) => {
      let key = '';
      request.forEach((name, value) => (key = name === 'sec-websocket-key' ? value : key));
      response.onAborted(() => {});
      response.writeStatus('101 Switching Protocols');
      response.writeHeader('X-Upgraded', 'yes');
      response.upgrade({ name: 'ann' }, key, 'collab.v1', '', context);
    },
    open: (socket) => {
      noticed.sockets.push(socket);
      socket.subscribe('all');
    },
    message: (socket, message, isBinary) => {
      const text = Buffer.from(message).toString();
      if (text === 'end') socket.end(4400, 'bad_message');
      else if (text === 'publish') socket.publish('all', 'news');
      else socket.send(text, isBinary);
    },
    drain: () => void (noticed.drained += 1),
    close: (_socket, code) => void noticed.closed.push(code),
  });
  const port = await server.listen('127.0.0.1', 0);
  const connections: RawConnection[] = [];
  t.teardown(() => {
    for (const connection of connections) connection.destroy();
    server.close();
  });
  const open = async (): Promise<RawConnection> => {
    const connection = await RawConnection.open(port);
    connections.push(connection);
    return connection;
  };
  return Object.assign(noticed, { port, app, open });
}
