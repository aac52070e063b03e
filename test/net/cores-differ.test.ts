import t, { type Test } from 'tap';
import type { CoreKind } from '../../src/net/core.ts';
import { newServer, noNativeCore } from '../helpers/core.ts';
import { Exchange } from '../../src/http/core/exchange.ts';
import { RequestLoad } from '../../src/http/core/request-load.ts';
import { bodyRefusal } from '../../src/http/core/body-rules.ts';
import { RawConnection } from '../helpers/raw-http.ts';

const REQUESTS = 400;

/** What a request did: the status of the first answer (0 for none), and what reached the handler with which body. */
interface Effect {
  readonly status: number;
  readonly handled: readonly string[];
}

/** A generator of numbers from 0 to below 1 that depends on its seed alone. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const lines = [
  'GET /a HTTP/1.1',
  'POST /a HTTP/1.1',
  'PUT /b?x=1 HTTP/1.1',
  'DELETE /c HTTP/1.1',
  'HEAD /d HTTP/1.1',
  'POST /é HTTP/1.1',
  'GET /a HTTP/1.0',
  'GET /a HTTP/2.0',
  'GET a HTTP/1.1',
  'GET /a b HTTP/1.1',
  'GET http://h/a HTTP/1.1',
  'OPTIONS * HTTP/1.1',
  'FOO /a HTTP/1.1',
];
const hosts = ['Host: a', 'Host: a', 'Host: a', 'Host: a', 'host: b', 'Host:', '', 'Host: a\r\nHost: b'];
const framings: readonly (readonly [header: string, body: string])[] = [
  ['', ''],
  ['', ''],
  ['Content-Length: 3', 'abc'],
  ['Content-Length: 0', ''],
  ['Transfer-Encoding: chunked', '3\r\nabc\r\n0\r\n\r\n'],
  ['Transfer-Encoding: chunked', '3\r\nabc\r\n0\r\nX: 1\r\n\r\n'],
  ['Content-Length: 3\r\nTransfer-Encoding: chunked', '3\r\nabc\r\n0\r\n\r\n'],
  ['Content-Length: 3\r\nContent-Length: 4', 'abcd'],
  ['Content-Length: +3', 'abc'],
  ['Content-Length: 0x3', 'abc'],
  ['Content-Length: -1', ''],
  ['Content-Length: 3, 3', 'abc'],
  ['Transfer-Encoding: gzip', ''],
  ['Transfer-Encoding: gzip, chunked', '3\r\nabc\r\n0\r\n\r\n'],
  ['Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked', '3\r\nabc\r\n0\r\n\r\n'],
  ['Transfer-Encoding: chunked', 'zz\r\nabc\r\n0\r\n\r\n'],
  ['Transfer-Encoding: chunked', '-1\r\nabc\r\n0\r\n\r\n'],
  ['Transfer-Encoding: chunked', '3\r\nabcd\r\n0\r\n\r\n'],
];
const extras = [
  '',
  '',
  'X-A: b',
  'Connection: close',
  'X-A: ü',
  'X-A: b\r\nX-A: c',
  'Accept: */*',
  'Trailer: X-Sum',
  'Expect: 100-continue',
  'X-Empty:',
];

/** Requests that reach the handlers of both cores, or of none, in the same way. */
function requestsOf(seed: number): string[] {
  const next = random(seed);
  const pick = <T>(choices: readonly T[]): T => choices[Math.floor(next() * choices.length)] as T;
  return Array.from({ length: REQUESTS }, (_, i) => {
    // Most have one fault at most, so that it is not hidden by another.
    const line = next() < 0.7 ? pick(lines.slice(0, 6)) : pick(lines);
    const host = next() < 0.8 ? 'Host: a' : pick(hosts);
    const [framing, body] = next() < 0.5 ? pick(framings.slice(0, 5)) : pick(framings);
    const head = [line, host, `X-Request-Id: ${i}`, framing, pick(extras)].filter((part) => part !== '');
    return `${head.join('\r\n')}\r\n\r\n${body}`;
  });
}

/**
 * Sends each request on a connection of its own, all at once, and returns the effects. Cores close what they do not
 * answer.
 */
async function effectsOf(t: Test, core: CoreKind, requests: readonly string[]): Promise<Effect[]> {
  const server = newServer(core);
  const handled = requests.map((): string[] => []);
  server.app.any('/*', (response, request) => {
    const exchange = new Exchange(response, request, {
      draining: () => false,
      finished: () => {},
      load: new RequestLoad(() => false),
      refuseChunks: () => {},
    });
    if (exchange.head.ambiguous) return exchange.drop();
    if (bodyRefusal(exchange.head) !== null) return exchange.send(400, [], 'refused');
    const { method, path, query, host, requestId } = exchange.head;
    void exchange.receiveBody(1000).then((body) => {
      if (body === 'aborted') return;
      handled[Number(requestId)]?.push(`${method} ${path} ${query} ${host} ${String(body)}`);
      exchange.send(200, [], 'ok');
    });
  });
  const port = await server.listen('127.0.0.1', 0);
  t.teardown(() => server.close());
  return Promise.all(
    requests.map(async (request, i) => {
      const connection = await RawConnection.open(port);
      await connection.send(Buffer.from(request));
      const text = await connection
        .until((received) => /HTTP\/1\.1 [2-5]\d\d [^]*\r\n\r\n/.test(received))
        .catch(() => connection.ended);
      connection.destroy();
      return { status: Number(/HTTP\/1\.1 ([2-5]\d\d) /.exec(text)?.[1] ?? 0), handled: handled[i] ?? [] };
    }),
  );
}

/** Whether a status refuses a request, or nothing was answered. */
const refuses = (status: number): boolean => status === 0 || status >= 400;

/**
 * What Node's parser refuses, as docs/decisions/0052 says: methods that it does not know, paths that are not ASCII, and
 * a chunk that is longer than its length.
 */
function onlyNodeRefuses(request: string): boolean {
  return request.startsWith('FOO ') || request.startsWith('POST /é') || request.includes('3\r\nabcd\r\n');
}

t.test(
  'both cores handle the same requests, with the same method, path, host and body, and refuse the same',
  { skip: noNativeCore },
  async (t) => {
    const seed = Number(process.env['FUZZ_SEED'] ?? 52);
    const requests = requestsOf(seed);
    const native = await effectsOf(t, 'uws', requests);
    const node = await effectsOf(t, 'node', requests);
    t.comment(
      `seed ${seed}: ${native.filter(({ status }) => status === 200).length} of ${requests.length} requests are handled`,
    );
    for (const [i, request] of requests.entries()) {
      const [one, other] = [native[i], node[i]];
      if (
        one === undefined ||
        other === undefined ||
        (refuses(one.status) && refuses(other.status) && one.handled.length + other.handled.length === 0)
      )
        continue;
      if (other.status === 400 && other.handled.length === 0 && onlyNodeRefuses(request)) continue;
      if (one.status !== other.status || one.handled.join() !== other.handled.join())
        t.fail(`${JSON.stringify(request)}: uws ${JSON.stringify(one)}, node ${JSON.stringify(other)}`);
    }
    t.ok(native.some(({ status }) => status === 200) && node.some(({ status }) => refuses(status)));
  },
);
