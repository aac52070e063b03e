import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { connect } from 'node:net';
import t, { type Test } from 'tap';
import { collabJson } from '../helpers/command.ts';
import { type Cluster, type ClusterOptions, startCluster } from '../helpers/cluster.ts';
import { type Connection, connectToBoth, type WorkerAnswer } from '../helpers/connections.ts';
import { TestSocket } from '../helpers/socket.ts';
import { userToken } from '../helpers/user-token.ts';

// What two workers, in separate processes, have to get right together.

const WRITES = 400;
const ROUNDS = 12;
const unlimited = { rateLimit: { exempt: ['127.0.0.1'] } };
const API = '/api/v1';

async function cluster(t: Test, config: ClusterOptions['config']): Promise<Cluster> {
  const running = await startCluster({ config: { shutdown: { drainSeconds: 5, closeSpreadSeconds: 0 }, ...config } });
  t.teardown(() => running.kill());
  return running;
}

async function connections(t: Test, server: Cluster, each: number): Promise<Connection[]> {
  const opened = await connectToBoth(server, each);
  t.teardown(() => opened.forEach(({ close }) => close()));
  return opened;
}

function at(opened: readonly Connection[], index: number): Connection {
  const connection = opened[index % opened.length];
  if (connection === undefined) throw new Error('no connection');
  return connection;
}

async function startThread(connection: Connection): Promise<string> {
  await connection.send('PUT', `${API}/users/ann`, { body: { name: 'Ann' } });
  const { body } = await connection.send('POST', `${API}/rooms/lobby/threads`, {
    body: { userId: 'ann', body: 'first' },
  });
  return (JSON.parse(body) as { thread: { id: string } }).thread.id;
}

/** Opens sockets as ann until both workers have at least two. */
async function sockets(t: Test, server: Cluster): Promise<TestSocket[]> {
  const token = await userToken(server.keys, 'ann');
  const before = connectionCounts(server);
  const opened: TestSocket[] = [];
  while (connectionCounts(server).some((now, worker) => now < (before[worker] ?? 0) + 2)) {
    const socket = new TestSocket(`${server.url.replace('http', 'ws')}${API}/ws`, {
      headers: { 'X-Service-Key': server.keys.publishableKey, 'X-Service-Token': token },
    });
    t.teardown(() => socket.terminate());
    await socket.frame('welcome');
    opened.push(socket);
  }
  return opened;
}

/** How many connections each web worker has. */
function connectionCounts({ port, pids }: Cluster): number[] {
  const lines = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  const inodes = new Set(
    lines
      .filter(
        ([, local = '', , state]) =>
          state === '01' && local.endsWith(`:${port.toString(16).toUpperCase().padStart(4, '0')}`),
      )
      .map((fields) => fields[9]),
  );
  return pids('web').map(
    (pid) =>
      readdirSync(`/proc/${pid}/fd`).filter((fd) => inodes.has(/^socket:\[(\d+)\]$/.exec(linkOf(pid, fd))?.[1])).length,
  );
}

function linkOf(pid: number, fd: string): string {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`);
  } catch {
    return '';
  }
}

t.test('two workers without limits', async (t) => {
  const server = await cluster(t, unlimited);

  await t.test('400 writes over both workers reach the sockets of both: all, in order, once', async (t) => {
    const writers = await connections(t, server, 4);
    const thread = await startThread(at(writers, 0));
    const watching = await sockets(t, server);
    let next = 0;
    const written: string[] = [];
    const other: string[] = [];
    await Promise.all(
      writers.map(async ({ send }) => {
        for (let n = next++; n < WRITES; n = next++) {
          const { status, body } = await send('POST', `${API}/threads/${thread}/comments`, {
            body: { userId: 'ann', body: `comment ${n}` },
          });
          if (status === 201) written.push((JSON.parse(body) as { comment: { id: string } }).comment.id);
          else other.push(`${status} ${body}`);
        }
      }),
    );
    t.same(other, []);
    const { body } = await at(writers, 1).send('GET', `${API}/events?limit=1`);
    const { seq } = JSON.parse(body) as { seq: number };
    for (const socket of watching) {
      await socket.until(() => (socket.seqs.at(-1) ?? 0) >= seq, `event ${seq}`);
      const { seqs } = socket;
      t.same(
        seqs,
        Array.from(seqs, (_, i) => (seqs[0] ?? 0) + i),
        'no gap, no double, in order',
      );
      const ids = socket.frames.filter(({ type }) => type === 'comment.created').map(({ data }) => data?.['id']);
      t.equal(ids.length, WRITES);
      t.same(new Set(ids), new Set(written), 'each of them');
    }
  });

  await t.test('requests repeated with one Idempotency-Key on both workers at once are executed once', async (t) => {
    const opened = await connections(t, server, 4);
    const thread = await startThread(at(opened, 0));
    const path = `${API}/threads/${thread}/comments`;
    for (let round = 0; round < ROUNDS; round++) {
      const headers = { 'Idempotency-Key': `round-${round}` };
      const answers = await Promise.all(
        opened.map(({ send }) => send('POST', path, { body: { userId: 'ann', body: `round ${round}` }, headers })),
      );
      t.same(
        answers.map(({ status }) => status),
        opened.map(() => 201),
        `round ${round}`,
      );
      t.equal(new Set(answers.map(({ body }) => body)).size, 1, 'all with the same answer');
      t.equal(
        answers.filter((answer) => answer.headers['idempotent-replayed'] === undefined).length,
        1,
        'one of them did it',
      );
      const other = await at(opened, round).send('POST', path, {
        body: { userId: 'ann', body: 'another body' },
        headers,
      });
      t.match(other, { status: 409, headers: { 'x-error-code': 'idempotency_key_reused' } });
    }
    const { items } = JSON.parse((await at(opened, 1).send('GET', path)).body) as { items: { body: string }[] };
    t.same(
      items.map(({ body }) => body),
      ['first', ...Array.from({ length: ROUNDS }, (_, i) => `round ${i}`)],
    );
  });

  await t.test('a change by a command applies in both workers from the next request on', async (t) => {
    const opened = await connections(t, server, 1);
    const dir = ['--dir', server.dir];
    const key = await collabJson<{ id: string; secretKey: string }>(t, [
      ...['key', 'create', '--env', 'default', '--kind', 'secret'],
      ...dir,
    ]);
    const headers = { Authorization: `Bearer ${key.secretKey}` };
    const statuses = (): Promise<number[]> =>
      Promise.all(opened.map(async ({ send }) => (await send('GET', `${API}/rooms`, { headers })).status));
    t.same(await statuses(), [200, 200], 'a new key works');
    await collabJson(t, ['user', 'add', 'zoe', '--env', 'default', ...dir]);
    for (const { send } of opened) {
      const posted = await send('POST', `${API}/rooms/home/threads`, { headers, body: { userId: 'zoe', body: 'Hi' } });
      t.equal(posted.status, 201, 'a new user may write');
    }
    await collabJson(t, ['env', 'update', 'default', '--disabled', 'true', ...dir]);
    t.same(await statuses(), [403, 403], 'a disabled environment refuses');
    await collabJson(t, ['env', 'update', 'default', '--disabled', 'false', ...dir]);
    t.same(await statuses(), [200, 200]);
    await collabJson(t, ['key', 'revoke', key.id, '--yes', ...dir]);
    t.same(await statuses(), [401, 401], 'a revoked key is refused');
  });

  await t.test('no request, however malformed, ends a worker', async (t) => {
    const opened = await connections(t, server, 1);
    const thread = await startThread(at(opened, 0));
    const pids = server.pids('web');
    const hostile = hostileBytes(server, thread, await userToken(server.keys, 'ann'));
    for (let batch = 0; batch < hostile.length; batch += 40) {
      await Promise.all(hostile.slice(batch, batch + 40).map((bytes) => throwAt(server.port, bytes)));
    }
    t.same(server.pids('web'), pids, 'the same workers serve');
    for (const connection of await connections(t, server, 1))
      t.match(JSON.parse((await connection.send('GET', `${API}/threads/${thread}`)).body), {
        comments: [{ body: 'first' }],
      });
    t.same(
      server.log().filter(({ level }) => level === 'error' || level === 'fatal'),
      [],
      'and nothing went wrong inside',
    );
  });

  t.equal((await server.stop()).code, 0);
});

t.test('of 300 requests within a minute, over many connections to both workers, exactly 100 are allowed', async (t) => {
  const server = await cluster(t, {});
  const opened = await connections(t, server, 6);
  const began = performance.now();
  let next = 0;
  const answers: WorkerAnswer[] = [];
  const workers: string[] = [];
  await Promise.all(
    opened.map(async ({ send, worker }) => {
      while (next++ < 300) {
        const answer = await send('GET', `${API}/rooms`);
        answers.push(answer);
        if (answer.status === 200) workers.push(worker);
      }
    }),
  );
  if (performance.now() - began > 55_000)
    throw new Error('this machine was so slow that a minute has gone by: nothing is shown');
  const good = answers.filter(({ status }) => status === 200);
  const refused = answers.filter(({ status }) => status === 429);
  t.equal(good.length, 100);
  t.equal(refused.length, 200);
  t.equal(new Set(workers).size, 2, 'both workers have let some in');
  t.same(
    new Set(good.map(({ headers }) => /r=(\d+);/.exec(String(headers['ratelimit']))?.[1])),
    new Set(Array.from({ length: 100 }, (_, i) => String(i))),
    'each told another number that remains',
  );
  for (const { headers, body } of refused) {
    const seconds = Number(headers['retry-after']);
    t.ok(seconds >= 1 && seconds <= 60);
    t.equal(headers['ratelimit'], `"default";r=0;t=${seconds}`);
    t.equal(headers['ratelimit-policy'], '"default";q=100;w=60');
    t.equal(headers['x-error-code'], 'rate_limited');
    t.equal(body, `{"error":"Rate limit exceeded. Try again in ${seconds}s"}`);
  }
  t.equal((await at(opened, 0).send('GET', '/livez')).status, 200, 'health is not counted');
  t.equal((await server.stop()).code, 0);
});

/** Some hundred malformed or partial requests. */
function hostileBytes({ keys }: Cluster, thread: string, token: string): Buffer[] {
  const head = (lines: readonly string[], method = 'POST', path = `${API}/threads/${thread}/comments`): string =>
    [
      `${method} ${path} HTTP/1.1`,
      'Host: localhost',
      `Authorization: Bearer ${keys.secretKey}`,
      'Content-Type: application/json',
      ...lines,
      '',
      '',
    ].join('\r\n');
  const whole = `${head(['Content-Length: 36'])}{"userId":"ann","body":"cut off here"`;
  const user = [`X-Service-Key: ${keys.publishableKey}`, `X-Service-Token: ${token}`];
  const upload = [
    'POST /api/v1/upload HTTP/1.1',
    'Host: localhost',
    ...user,
    'Content-Type: multipart/form-data; boundary=edge',
    'Content-Length: 9000000',
    '',
    '',
  ].join('\r\n');
  const upgrade = head(
    [
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      ...user,
    ],
    'GET',
    `${API}/ws`,
  );
  const texts = [
    '',
    '\r\n\r\n',
    '\0'.repeat(5_000),
    'GET',
    'GET / HTTP/9.9\r\n\r\n',
    'GET /\r\n\r\n',
    `GET ${'/x'.repeat(40_000)} HTTP/1.1\r\nHost: a\r\n\r\n`,
    head([`X-Large: ${'x'.repeat(60_000)}`]),
    head(Array.from({ length: 500 }, (_, i) => `X-${i}: y`)),
    head(['Content-Length: -1']),
    head(['Content-Length: 99999999999999999999']),
    head(['Content-Length: 5', 'Content-Length: 6']),
    head(['Transfer-Encoding: chunked']) + 'zzz\r\n',
    head(['Transfer-Encoding: chunked']) + 'ffffffffffffffff\r\n',
    head(['Transfer-Encoding: chunked']) + '5\r\nabc',
    head(['Transfer-Encoding: gzip']),
    `${head(['Content-Length: 4'])}{"a"${head(['Content-Length: 4'])}{"a"`.repeat(20),
    head([], 'BREW'),
    head([], 'GET', '/../../etc/passwd'),
    head([], 'GET', '/%00%ff%'),
    head([], 'GET', `${API}/rooms/%zz/threads`),
    head([], 'OPTIONS', '*'),
    upload,
    `${upload}--edge\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n${'p'.repeat(100_000)}`,
    `${upload}--edge\r\n${'h'.repeat(50_000)}`,
    upgrade,
    `${upgrade}\x81\xfe\xff\xff`,
    `${upgrade}${'\xff'.repeat(1_000)}`,
    `${upgrade}\x88\x80\0\0\0\0`,
    `${upgrade}\x81\x7f\x7f\xff\xff\xff\xff\xff\xff\xff`,
    head(['Accept: text/event-stream'], 'GET', `${API}/events`),
    head([`Last-Event-ID: ${'9'.repeat(300)}`, 'Accept: text/event-stream'], 'GET', `${API}/events`),
    '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n',
    '\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x7f\0\0\x01\x7f\0\0\x01\0\x50\0\x50',
  ];
  const cut = Array.from({ length: 12 }, (_, i) => whole.slice(0, Math.floor((whole.length * (i + 1)) / 13)));
  return [...[...texts, ...cut].map((text) => Buffer.from(text, 'latin1')), ...noise(120)];
}

/** Pseudo-random bytes, the same in every run. */
function noise(count: number): Buffer[] {
  let seed = 12_345;
  const next = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed % below;
  };
  return Array.from({ length: count }, () => Buffer.from(Array.from({ length: 1 + next(400) }, () => next(256))));
}

/** Sends bytes and closes the connection at once, or when the server does. */
function throwAt(port: number, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(bytes);
      if (bytes.length % 3 === 0) socket.resetAndDestroy();
      else socket.end();
    });
    socket.setTimeout(1_500, () => socket.destroy());
    socket.on('error', () => {});
    socket.on('data', () => {});
    socket.once('close', () => resolve());
  });
}
