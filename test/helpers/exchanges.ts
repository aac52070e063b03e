import type { Test } from 'tap';
import { Exchange } from '../../src/http/core/exchange.ts';
import { RequestLoad } from '../../src/http/core/request-load.ts';
import { newServer } from './core.ts';
import { RawConnection } from './raw-http.ts';

/** A running server of exchanges, and the exchanges so far. */
export interface ExchangeServer {
  readonly port: number;
  readonly exchanges: Exchange[];
  readonly finished: Exchange[];
  draining: boolean;
  open(): Promise<RawConnection>;
}

/** Starts a server that only passes exchanges to `serve`. It ends with the test. */
export async function serveExchanges(
  t: Test,
  serve: (exchange: Exchange) => void | Promise<void>,
): Promise<ExchangeServer> {
  const server = newServer();
  const state = { exchanges: [] as Exchange[], finished: [] as Exchange[], draining: false };
  const options = {
    draining: () => state.draining,
    finished: (exchange: Exchange) => void state.finished.push(exchange),
    load: new RequestLoad(() => false),
    refuseChunks: (exchange: Exchange) => exchange.send(400, [], 'chunks'),
  };
  server.app.any('/*', (response, request) => {
    const exchange = new Exchange(response, request, options);
    state.exchanges.push(exchange);
    if (exchange.head.ambiguous) exchange.drop();
    else void serve(exchange);
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
  return Object.assign(state, { port, open });
}
