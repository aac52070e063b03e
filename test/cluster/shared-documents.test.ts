import t, { type Test } from 'tap';
import * as Y from 'yjs';
import { baseText, documentWith, insertsAtOneOrigin, structPerClient } from '../fixtures/yjs.ts';
import { type Cluster, startCluster } from '../helpers/cluster.ts';
import { askOnce } from '../helpers/http-client.ts';

const BYTES = 'application/octet-stream';

/** A server with one web worker, which gets every request. It ends with the test. */
async function oneWorker(t: Test, mergeSecondsPerMinute: number): Promise<Cluster> {
  const server = await startCluster({
    workers: 1,
    config: {
      shutdown: { drainSeconds: 5, closeSpreadSeconds: 0 },
      rateLimit: { exempt: ['127.0.0.1'] },
      crdt: { mergeSecondsPerMinute },
    },
  });
  t.teardown(() => server.kill());
  return server;
}

function ask({ url, keys }: Cluster, method: string, path: string, body?: Uint8Array): Promise<Response> {
  const headers = { Authorization: `Bearer ${keys.secretKey}`, Accept: BYTES, 'Content-Type': BYTES };
  return fetch(`${url}/api/v1${path}`, {
    method,
    headers,
    body: body === undefined ? undefined : new Uint8Array(body),
  });
}

/** How many other requests the worker answers, one after another with a pause, while this one is in progress. */
async function answersDuring(server: Cluster, request: Promise<Response>): Promise<number> {
  let isOver = false;
  void request.finally(() => (isOver = true));
  for (let answers = 0; ; answers++) {
    const headers = { Authorization: `Bearer ${server.keys.secretKey}` };
    const { status } = await askOnce('GET', `${server.url}/api/v1/rooms`, { headers });
    if (status !== 200) throw new Error(`answered ${status}`);
    if (isOver) return answers;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

t.test('a hundredth merge that takes a minute to compact is refused, and delays no other request', async (t) => {
  const server = await oneWorker(t, 0);
  const path = '/rooms/board/p2p/state';
  const merge = (bytes: Uint8Array): Promise<Response> => ask(server, 'PUT', `${path}?merge=yjs`, bytes);
  const tiny = (): Uint8Array => Y.encodeStateAsUpdate(documentWith('tiny'));
  t.equal((await merge(baseText(16_000))).status, 200);
  for (let i = 0; i < 98; i += 14) {
    const answers = await Promise.all(Array.from({ length: 14 }, () => merge(tiny())));
    t.ok(answers.every(({ status }) => status === 200));
  }
  const before = await (await ask(server, 'GET', path)).arrayBuffer();
  const attack = merge(insertsAtOneOrigin(16_000));
  t.ok((await answersDuring(server, attack)) > 5);
  t.equal((await attack).status, 413);
  t.equal((await attack).headers.get('x-error-code'), 'state_too_complex');
  t.match(await (await attack).json(), { error: /^The Yjs document is too complex/ });
  t.same(await (await ask(server, 'GET', path)).arrayBuffer(), before, 'the state is as it was');
  t.equal((await merge(tiny())).status, 200);
});

t.test('a state that takes seconds to compare delays no other request, and is charged to the requester', async (t) => {
  const server = await oneWorker(t, 1);
  const path = '/rooms/board/p2p/state';
  t.equal((await ask(server, 'PUT', path, structPerClient(550_000))).status, 200);
  const compare = ask(server, 'GET', `${path}?sv=AA`);
  t.ok((await answersDuring(server, compare)) > 5);
  t.equal((await compare).status, 413);
  t.equal((await compare).headers.get('x-error-code'), 'state_too_complex');
  // A comparison ends when it exceeds its time or its memory, which a fast machine does within a part of a second.
  let again = await ask(server, 'GET', `${path}?sv=AA`);
  for (let further = 1; again.status === 413 && further < 5; further += 1)
    again = await ask(server, 'GET', `${path}?sv=AA`);
  t.equal(again.status, 429);
  t.ok(Number(again.headers.get('retry-after')) > 1);
  t.equal((await ask(server, 'GET', path)).status, 200, 'the whole state is still to be had');
});
