import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Test } from 'tap';

/** A request that a receiver got. */
export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** `performance.now()` at its end. */
  readonly at: number;
}

/** A raw answer by which a peer says that it goes on in another protocol, and then says nothing more. */
export const SWITCHES = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n';

/** How a receiver answers: a status, a status and headers, or anything that it does with the response. */
export type Answer =
  | number
  | { readonly status: number; readonly headers: Readonly<Record<string, string>> }
  | ((response: ServerResponse, received: Received) => void);

/** An HTTP server that keeps what it receives. It is closed with the test. */
export interface Receiver {
  readonly url: string;
  readonly received: Received[];
  /** How requests are answered from now on; 200 at first. */
  answer: Answer;
}

/** Starts a receiver on a free port of the loopback interface. */
export async function startReceiver(t: Pick<Test, 'teardown'>, answer: Answer = 200): Promise<Receiver> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('error', () => {});
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const received: Received = {
        method: request.method ?? '',
        path: request.url ?? '',
        headers: request.headers,
        body: Buffer.concat(chunks),
        at: performance.now(),
      };
      receiver.received.push(received);
      respond(receiver.answer, response, received);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received: [],
    answer,
  };
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return receiver;
}

function respond(answer: Answer, response: ServerResponse, received: Received): void {
  if (typeof answer === 'function') answer(response, received);
  else if (typeof answer === 'number') response.writeHead(answer).end();
  else response.writeHead(answer.status, answer.headers).end();
}
