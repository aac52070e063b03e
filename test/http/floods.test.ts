import { rmSync } from 'node:fs';
import { connect } from 'node:net';
import t from 'tap';
import { type Cluster, initFolder, startCluster } from '../helpers/cluster.ts';
import { noNativeCore } from '../helpers/core.ts';
import { type TurnProbe, turnProbe } from '../helpers/turn-probe.ts';

// Floods a worker process as a hostile client would, on both HTTP cores. Nothing may keep it from its other clients for
// long: no turn of its event loop may take 200 ms of processor time. A busy machine makes turns long, but not these.

const HEAD = 'Host: localhost\r\n';
const MOST_MS = Number(process.env['FLOOD_SLOW_MS'] ?? 200);

const rules = Array.from({ length: 20 }, (_, rule) => ({ type: 'words', words: [`word${rule}`] }));

t.setTimeout(0);

/** Opens `count` connections, sends the same on each, and waits until the server has closed them all. */
async function flood({ port }: Cluster, count: number, sent: string | Buffer): Promise<string[]> {
  const bytes = Buffer.from(sent);
  const one = (): Promise<string> =>
    new Promise((resolve) => {
      let received = '';
      const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
      socket.on('data', (data) => (received += data.toString('latin1')));
      socket.on('error', () => {});
      socket.on('close', () => resolve(received));
    });
  return Promise.all(Array.from({ length: count }, one));
}

for (const core of ['uws', 'node'] as const) {
  t.test(`floods on the core ${core}`, { skip: core === 'uws' && noNativeCore }, async (t) => {
    const probe = turnProbe(MOST_MS);
    // The limit is none of what is tested here, and a flood must not use it up for the next one.
    const folder = await initFolder({
      rateLimit: { perMinute: 100_000 },
      plugins: [{ use: 'moderation-rules', config: { exemptBackends: false, rules } }],
    });
    const cluster = await startCluster({ workers: 1, folder, env: { ...probe.env, COLLAB_CORE: core } });
    t.teardown(async () => {
      await cluster.stop();
      probe.remove();
      rmSync(folder.dir, { recursive: true, force: true });
    });
    const pids = cluster.pids('web');
    const keyHead = `${HEAD}Authorization: Bearer ${cluster.keys.secretKey}\r\n`;

    t.test('requests without waiting for responses', async (t) => {
      const slow = await slowTurnsDuring(probe, () =>
        flood(cluster, 150, `GET /api/v1/x HTTP/1.1\r\n${HEAD}\r\n`.repeat(10_000)),
      );
      t.strictSame(slow, []);
      t.strictSame(cluster.pids('web'), pids, 'the worker was not killed');
    });

    const tinyChunks = '1\r\na\r\n'.repeat(100_000);
    for (const [title, head] of [
      ['a refused upload', `POST /api/v1/upload HTTP/1.1\r\n${HEAD}Content-Type: multipart/form-data; boundary=b\r\n`],
      ['an upload', `POST /api/v1/upload HTTP/1.1\r\n${keyHead}Content-Type: multipart/form-data; boundary=b\r\n`],
      ['a JSON body', `POST /api/v1/rooms/r1/threads HTTP/1.1\r\n${keyHead}Content-Type: application/json\r\n`],
    ] as const) {
      t.test(`${title} in chunks of one byte`, async (t) => {
        const slow = await slowTurnsDuring(probe, () =>
          flood(cluster, core === 'uws' ? 20 : 5, `${head}Transfer-Encoding: chunked\r\n\r\n${tinyChunks}`),
        );
        t.strictSame(slow, []);
        t.strictSame(cluster.pids('web'), pids, 'the worker was not killed');
      });
    }

    const jsonRequest = (method: string, path: string, body: string): string =>
      `${method} /api/v1${path} HTTP/1.1\r\n${keyHead}Connection: close\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
    const field = (name: string): string => `"${name}":1`;
    const bodies = {
      'unknown fields': `{"userId":"ann","body":"Hello",${Array.from({ length: 18_000 }, (_, i) => field(`field${i}`)).join(',')}}`,
      'invalid entries': `{"userId":"ann","body":"Hello","mentions":[${'1,'.repeat(120_000)}1]}`,
    };
    for (const [title, body] of Object.entries(bodies)) {
      t.test(`a body with thousands of ${title}`, async (t) => {
        const slow = await slowTurnsDuring(probe, async () =>
          t.match(await flood(cluster, 1, jsonRequest('POST', '/rooms/r1/threads', body)), [/^HTTP\/1\.1 400 /]),
        );
        t.strictSame(slow, []);
      });
    }

    t.test('a text that is slow to compare with the words of moderation rules', async (t) => {
      t.match(await flood(cluster, 1, jsonRequest('PUT', '/users/bob', '{"name":"Bob"}')), [/^HTTP\/1\.1 20\d /]);
      const text = jsonRequest(
        'POST',
        '/rooms/r1/threads',
        JSON.stringify({ userId: 'bob', body: `a${'‼'.repeat(9_998)}b` }),
      );
      const slow = await slowTurnsDuring(probe, async () =>
        t.match(await flood(cluster, 1, text), [/^HTTP\/1\.1 201 /]),
      );
      t.strictSame(slow, []);
    });
  });
}

/** The slow turns of the web worker while something happens. */
async function slowTurnsDuring(probe: TurnProbe, happens: () => Promise<unknown>): Promise<unknown[]> {
  const before = probe.slowTurns().length;
  await happens();
  // The report of its memory contains the turns until then.
  await probe.settledBytes(1);
  return probe.slowTurns().slice(before);
}
