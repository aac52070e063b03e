import { request } from 'node:http';
import sharp from 'sharp';
import t from 'tap';
import { type Cluster, collab, stablePort, startCluster } from '../helpers/cluster.ts';
import { type Proxy, proxies } from '../helpers/proxy.ts';
import { RawConnection } from '../helpers/raw-http.ts';
import { readSource } from '../helpers/sources.ts';
import { TestSocket } from '../helpers/socket.ts';
import { userToken } from '../helpers/user-token.ts';

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

interface Ask {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The client's own address: any of 127.0.0.0/8. */
  readonly from?: string;
}

/** Asks over a connection of its own. The answer may come before the body is sent. */
function ask(
  port: number,
  path: string,
  { method = 'GET', headers = {}, body, from = '127.0.0.1' }: Ask = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: '127.0.0.1', port, path, method, headers, localAddress: from, agent: false },
      (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        answer.once('end', () => {
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: text });
          sent.destroy();
        });
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Sends an upload little by little until there is an answer, as a slow client would. Gives its status. */
function uploadUntilAnswered(port: number, user: Readonly<Record<string, string>>, size: number): Promise<number> {
  const headers = { ...user, 'Content-Type': 'multipart/form-data; boundary=b', 'Content-Length': size };
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: '127.0.0.1', port, path: '/api/v1/upload', method: 'POST', headers, agent: false },
      (answer) => {
        clearInterval(timer);
        resolve(answer.statusCode ?? 0);
        sent.destroy();
      },
    );
    sent.on('error', reject);
    sent.write(
      '--b\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n',
    );
    const piece = Buffer.alloc(256 * 1024);
    const timer = setInterval(() => sent.writableLength === 0 && sent.write(piece), 5);
  });
}

/** The events of a stream as they come. */
async function* streamed(url: string, headers: Readonly<Record<string, string>>): AsyncGenerator<string> {
  const answer = await fetch(url, { headers: { ...headers, Accept: 'text/event-stream' } });
  let rest = '';
  for await (const chunk of answer.body ?? []) {
    const parts = (rest + Buffer.from(chunk as Uint8Array).toString()).split('\n\n');
    rest = parts.pop() ?? '';
    yield* parts;
  }
}

function testProxy(proxy: Proxy): void {
  t.test(`behind ${proxy.name} as docs/deploy configures it`, { skip: proxy.absent ?? false }, async (t) => {
    const cluster: Cluster = await startCluster({
      workers: 2,
      config: { trustProxy: ['127.0.0.0/8'], rateLimit: { perMinute: 40 }, shutdown: { closeSpreadSeconds: 0 } },
    });
    t.teardown(() => cluster.kill());
    const port = await stablePort();
    await proxy.start(t, { proxy: port, server: cluster.port });
    const { secretKey, publishableKey } = cluster.keys;
    const { stdout } = await collab(
      'key',
      'create',
      '--env',
      'default',
      '--kind',
      'secret',
      '--rate-limit',
      'unlimited',
      '--dir',
      cluster.dir,
      '--json',
    );
    const backend = {
      Authorization: `Bearer ${(JSON.parse(stdout) as { secretKey: string }).secretKey}`,
      'Content-Type': 'application/json',
    };
    const token = await userToken(cluster.keys, 'ann');
    const user = { 'X-Service-Key': publishableKey, 'X-Service-Token': token };
    const post = (path: string, body: object, from?: string): Promise<Answer> =>
      ask(port, `/api/v1${path}`, {
        method: 'POST',
        headers: backend,
        body: JSON.stringify(body),
        ...(from !== undefined && { from }),
      });
    let ready = await ask(port, '/sdk/manifest.json');
    for (const giveUp = Date.now() + 10_000; ready.status !== 200 && Date.now() < giveUp;)
      ready = await ask(port, '/sdk/manifest.json');
    t.equal((await ask(port, '/api/v1/users/ann', { method: 'PUT', headers: backend, body: '{}' })).status, 200);

    await t.test('REST, with addresses as the client sees them', async (t) => {
      const made = await post('/rooms/caf%C3%A9%2F1/threads', { userId: 'ann', body: 'one' });
      t.equal(made.status, 201);
      t.match(JSON.parse(made.body), { thread: { roomId: 'café/1' } }, 'escaped slashes in a path stay escaped');
      await post('/rooms/caf%C3%A9%2F1/threads', { userId: 'ann', body: 'two' });
      const page = await ask(port, '/api/v1/rooms/caf%C3%A9%2F1/threads?limit=1', { headers: backend });
      t.match(
        page.headers['link'],
        new RegExp(`^<https?://(127\\.0\\.0\\.1|localhost)(:${port})?/api/v1/rooms/caf%C3%A9%2F1/threads\\?`),
      );
      t.match(await ask(port, '/api/v1/nothing', { headers: backend }), {
        status: 404,
        headers: { 'x-error-code': 'route_not_found' },
      });
    });

    await t.test('WebSocket, and what is written meanwhile arrives', async (t) => {
      const socket = new TestSocket(`ws://127.0.0.1:${port}/api/v1/ws`, {
        protocols: ['collab.v1', `collab.key.${publishableKey}`, `collab.token.${token}`],
      });
      await socket.frame('welcome');
      t.equal(socket.protocol, 'collab.v1');
      await post('/rooms/live/threads', { userId: 'ann', body: 'by REST' });
      t.match(await socket.frame('thread.created'), { roomId: 'live' });
      const large = await socket.request('thread.create', { roomId: 'live', body: 'x'.repeat(9_000) });
      t.equal(large.type, 'ok');
      t.equal((await socket.close()).code, 1000);
    });

    await t.test('events stream without waiting in a buffer', async (t) => {
      const events = streamed(`http://127.0.0.1:${port}/api/v1/events`, backend);
      t.match((await events.next()).value, /event: welcome/);
      for (let n = 0; n < 3; n++) {
        await post('/rooms/live/threads', { userId: 'ann', body: `event ${n}` });
        const startedAt = performance.now();
        t.match((await events.next()).value, new RegExp(`"body":"event ${n}"`));
        t.ok(performance.now() - startedAt < 10_000);
      }
      await events.return(undefined);
    });

    await t.test('uploads pass up to the limit, and are refused past it', async (t) => {
      const bytes = await sharp({
        create: {
          width: 600,
          height: 600,
          channels: 3,
          noise: { type: 'gaussian', mean: 128, sigma: 60 },
          background: 'red',
        },
      })
        .png({ compressionLevel: 0 })
        .toBuffer();
      const form = new FormData();
      form.append('file', new Blob([new Uint8Array(bytes)], { type: 'image/png' }), 'a.png');
      const answer = await fetch(`http://127.0.0.1:${port}/api/v1/upload`, {
        method: 'POST',
        headers: user,
        body: form,
      });
      t.ok(bytes.byteLength > 1_000_000 && answer.ok, `${answer.status} for ${bytes.byteLength} bytes`);
      const { url } = (await answer.json()) as { url: string };
      const back = await fetch(new URL(new URL(url).pathname, `http://127.0.0.1:${port}`), { headers: user });
      t.ok(Buffer.from(await back.arrayBuffer()).equals(bytes), 'and come back the same');
      const refused = { status: await uploadUntilAnswered(port, user, 13 * 1024 * 1024) };
      t.equal(refused.status, 413);
    });

    await t.test('what the core would leave without an answer, or answer in HTML, is answered in JSON', async (t) => {
      const lines = (count: number): string => Array.from({ length: count }, (_, n) => `X-Header-${n}: 1\r\n`).join('');
      const requests: Record<string, readonly [request: string, statuses: readonly number[]]> = {
        'few header lines': [`GET /sdk/manifest.json HTTP/1.1\r\nHost: localhost\r\n${lines(40)}\r\n`, [200]],
        'almost too many header lines': [
          `GET /sdk/manifest.json HTTP/1.1\r\nHost: localhost\r\n${lines(95)}\r\n`,
          [200, 431],
        ],
        'many header lines': [`GET /sdk/manifest.json HTTP/1.1\r\nHost: localhost\r\n${lines(120)}\r\n`, [200, 431]],
        'a name with an underscore': ['GET /sdk/manifest.json HTTP/1.1\r\nHost: localhost\r\nX_Y: 1\r\n\r\n', [200]],
        'a name with a dot': ['GET /sdk/manifest.json HTTP/1.1\r\nHost: localhost\r\nX.Y: 1\r\n\r\n', [200]],
        'no Host': ['GET /sdk/manifest.json HTTP/1.1\r\nAccept: */*\r\n\r\n', [400]],
        'no header': ['GET /sdk/manifest.json HTTP/1.1\r\n\r\n', [400]],
        'two Hosts': ['GET /sdk/manifest.json HTTP/1.1\r\nHost: localhost\r\nHost: other\r\n\r\n', [400]],
        'a header of 17 kB': [
          `GET /sdk/manifest.json HTTP/1.1\r\nHost: localhost\r\nX-Long: ${'x'.repeat(17_000)}\r\n\r\n`,
          [200, 400, 431],
        ],
        'HTTP/1.0': ['GET /sdk/manifest.json HTTP/1.0\r\nHost: localhost\r\n\r\n', [200, 505]],
      };
      // Caddy cannot limit the number of lines, and answers requests without Host or with two of them itself, not in
      // JSON.
      const exceptions: Readonly<Record<string, readonly string[]>> = {
        caddy: [
          'almost too many header lines',
          'many header lines',
          'no Host',
          'no header',
          'two Hosts',
          'a header of 17 kB',
        ],
        // The parser of haproxy answers before the configuration applies.
        haproxy: ['two Hosts', 'a header of 17 kB'],
      };
      for (const [name, [request, statuses]] of Object.entries(requests)) {
        if (exceptions[proxy.name]?.includes(name) === true) continue;
        const connection = await RawConnection.open(port);
        const startedAt = performance.now();
        await connection.send(request);
        const { status, headers, body } = await connection.answer();
        connection.destroy();
        t.ok(statuses.includes(status), `${name}: ${status} ${body}`);
        t.ok(performance.now() - startedAt < 5_000, `${name}: at once`);
        t.match(headers['content-type'], /^application\/json/, `${name}: as JSON`);
        t.type(JSON.parse(body), 'object');
      }
    });

    await t.test('the rate limit counts clients, whatever they claim', async (t) => {
      const limited = { Authorization: `Bearer ${secretKey}` };
      const statuses = new Set<number>();
      for (let n = 0; n < 45; n++) {
        const claimed = { ...limited, 'X-Forwarded-For': `9.9.9.${n}` };
        statuses.add((await ask(port, '/api/v1/rooms', { headers: claimed, from: '127.0.0.9' })).status);
      }
      t.strictSame(
        [...statuses].toSorted((a, b) => a - b),
        [200, 429],
      );
      t.equal(
        (await ask(port, '/api/v1/rooms', { headers: limited, from: '127.0.0.10' })).status,
        200,
        'another client is not held up',
      );
    });
  });
}

t.test('nginx passes on every header that is read', (t) => {
  const readers = ['src/net/request-head.ts', 'src/realtime/handshake/upgrade-request.ts'].map(readSource).join();
  const read = [...readers.matchAll(/(?:case |header\()'([a-z-]+)'/g)].map(([, name = '']) => name);
  const passed = new Set(
    [...readSource('docs/deploy/nginx.conf').matchAll(/proxy_set_header ([\w-]+)/g)].map(([, name = '']) =>
      name.toLowerCase(),
    ),
  );
  // nginx sets these itself, or they are about its own connection to the client.
  const own = new Set(['content-length', 'transfer-encoding', 'trailer']);
  t.ok(read.length > 20);
  t.strictSame(
    read.filter((name) => !passed.has(name) && !own.has(name)),
    [],
  );
  t.end();
});

for (const proxy of proxies) testProxy(proxy);
