import t, { type Test } from 'tap';
import type { RawConnection } from '../helpers/raw-http.ts';
import { startTestServer, type TestServer } from '../helpers/http.ts';
import { epochOf, streamOf } from '../../src/domain/events/streams.ts';

interface Message {
  readonly event: string;
  readonly id: string;
  readonly data: string;
}

/** Follows the stream over a raw connection and returns its messages so far. */
async function follow(
  server: TestServer,
  options: { headers?: string; key?: string; search?: string } = {},
): Promise<RawConnection> {
  const connection = await server.connect();
  await connection.send(
    `GET /api/v1/events${options.search ?? ''} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nAuthorization: Bearer ${options.key ?? server.key}\r\n${options.headers ?? ''}\r\n`,
  );
  return connection;
}

/** Waits until the stream has `count` messages with data besides the welcome. */
async function messages(
  connection: RawConnection,
  count: number,
): Promise<{ welcome: Message | undefined; events: Message[] }> {
  const text = await connection.until((received) => parse(received).length > count);
  const [welcome, ...events] = parse(text);
  return { welcome, events };
}

function parse(received: string): Message[] {
  const body = unchunked(received.slice(received.indexOf('\r\n\r\n') + 4));
  return body
    .split('\n\n')
    .slice(0, -1)
    .map((block) => {
      const field = (name: string) =>
        block
          .split('\n')
          .find((line) => line.startsWith(`${name}: `))
          ?.slice(name.length + 2) ?? '';
      return { event: field('event'), id: field('id'), data: field('data') };
    })
    .filter((message) => message.data !== '');
}

function unchunked(text: string): string {
  let rest = Buffer.from(text);
  let body = '';
  for (;;) {
    const end = rest.indexOf('\r\n');
    if (end < 0) return body;
    const size = Number.parseInt(rest.toString('latin1', 0, end), 16);
    if (Number.isNaN(size)) {
      rest = rest.subarray(end + 2);
      continue;
    }
    if (size === 0 || rest.length < end + 2 + size) return body;
    body += rest.toString('utf8', end + 2, end + 2 + size);
    rest = rest.subarray(end + 2 + size + 2);
  }
}

async function write(server: TestServer, count: number, roomId = 'r1'): Promise<void> {
  await server.request('PUT', '/users/ann', { body: {} });
  for (let i = 0; i < count; i++)
    await server.request('POST', `/rooms/${roomId}/threads`, { body: { userId: 'ann', body: `No ${i}` } });
}

const seqs = (events: readonly Message[]): number[] =>
  events.map(({ data }) => (JSON.parse(data) as { seq: number }).seq);
const upTo = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);

async function started(t: Test): Promise<TestServer> {
  const server = await startTestServer(t, { streamHeartbeatMs: 20 });
  await write(server, 4);
  return server;
}

t.test('the log is read in pages', async (t) => {
  const server = await started(t);
  const seen: number[] = [];
  let since = 0;
  for (;;) {
    const { json } = await server.request<{ items: { seq: number }[]; epoch: string; seq: number; nextSince?: number }>(
      'GET',
      `/events?since=${since}&limit=2`,
    );
    t.equal(json.epoch, epochOf(server.ctx.store, server.environment));
    t.equal(json.seq, 5);
    seen.push(...json.items.map(({ seq }) => seq));
    if (json.nextSince === undefined) break;
    since = json.nextSince;
  }
  t.strictSame(seen, upTo(1, 5));
  for (const bad of ['since=-1', 'since=x', 'limit=0', 'limit=1.5'])
    t.equal((await server.request('GET', `/events?${bad}`)).status, 400, bad);
});

t.test('a page of long events ends at 16 777 216 characters, as one of a list does', async (t) => {
  const server = await startTestServer(t);
  const padding = 'x'.repeat(400_000);
  for (let batch = 0; batch < 5; batch++) {
    await server.ctx.store.transact(async (tx) => {
      for (let i = 0; i < 10; i++)
        tx.emit(streamOf(server.environment), (seq) => `{"seq":${seq},"padding":"${padding}"}`);
    });
  }
  const read = async (since: number) =>
    (
      await server.request<{ items: { seq: number }[]; seq: number; nextSince?: number }>(
        'GET',
        `/events?since=${since}&limit=1000`,
      )
    ).json;
  const first = await read(0);
  t.strictSame(
    first.items.map(({ seq }) => seq),
    upTo(1, 41),
  );
  t.match(first, { seq: 50, nextSince: 41 });
  const second = await read(41);
  t.strictSame(
    second.items.map(({ seq }) => seq),
    upTo(42, 50),
  );
  t.equal(second.nextSince, undefined);
});

t.test('a stream without a position starts with the next event', async (t) => {
  const server = await started(t);
  const stream = await follow(server);
  const { welcome } = await messages(stream, 0);
  t.equal(welcome?.event, 'welcome');
  t.strictSame(JSON.parse(welcome?.data ?? ''), {
    epoch: epochOf(server.ctx.store, server.environment),
    seq: 5,
    recovered: false,
  });
  await write(server, 2);
  const { events } = await messages(stream, 2);
  t.strictSame(seqs(events), [6, 7]);
  t.equal(events[0]?.id, `${epochOf(server.ctx.store, server.environment)}:6`);
  t.match(JSON.parse(events[0]?.data ?? ''), {
    type: 'thread.created',
    seq: 6,
    roomId: 'r1',
    data: { thread: {}, comment: { body: 'No 0' } },
  });
});

t.test('a stream resumes after the last event of its client, without gaps or duplicates', async (t) => {
  const server = await started(t);
  const streams = await Promise.all([
    follow(server, { headers: `Last-Event-ID: ${epochOf(server.ctx.store, server.environment)}:2\r\n` }),
    follow(server, { search: '?since=2' }),
    follow(server, {
      search: '?since=0',
      headers: `Last-Event-ID: ${epochOf(server.ctx.store, server.environment)}:2\r\n`,
    }),
  ]);
  await write(server, 30);
  for (const stream of streams) {
    const { welcome, events } = await messages(stream, 33);
    t.match(JSON.parse(welcome?.data ?? ''), { seq: 2, recovered: true });
    t.strictSame(seqs(events), upTo(3, 35));
  }
});

t.test('a position of another epoch, after the end or before the beginning of the log is not resumed', async (t) => {
  const server = await started(t);
  await server.ctx.store.trimEvents(streamOf(server.environment), 3);
  for (const id of [
    'elsewhere:2',
    `${epochOf(server.ctx.store, server.environment)}:6`,
    `${epochOf(server.ctx.store, server.environment)}:2`,
  ]) {
    const stream = await follow(server, { headers: `Last-Event-ID: ${id}\r\n` });
    const { welcome } = await messages(stream, 0);
    t.match(JSON.parse(welcome?.data ?? ''), { seq: 5, recovered: false }, id);
  }
  const stream = await follow(server, {
    headers: `Last-Event-ID: ${epochOf(server.ctx.store, server.environment)}:3\r\n`,
  });
  t.strictSame(seqs((await messages(stream, 2)).events), [4, 5]);
  t.equal(
    (await server.request('GET', '/events', { headers: { Accept: 'text/event-stream', 'Last-Event-ID': 'nonsense' } }))
      .status,
    400,
  );
});

t.test(
  'events of users and of rooms that the key does not reach are left out, and their positions are sent',
  async (t) => {
    const server = await started(t);
    const key = await server.newKey({ rooms: 'mine*' });
    const stream = await follow(server, { key, search: '?since=0' });
    await write(server, 1, 'mine');
    await write(server, 1, 'theirs');
    const text = await stream.until((received) =>
      received.includes(`id: ${epochOf(server.ctx.store, server.environment)}:7\n: heartbeat`),
    );
    t.strictSame(seqs(parse(text).slice(1)), [6]);
  },
);

t.test('an idle stream sends heartbeats', async (t) => {
  const server = await started(t);
  const stream = await follow(server);
  await stream.until((received) => received.split(': heartbeat\n\n').length > 3);
});

t.test('a stream ends soon after its key is revoked, and those of other keys continue', async (t) => {
  // With the heartbeat of 15 s: the key is checked more often.
  const server = await startTestServer(t);
  const kept = await follow(server);
  await messages(kept, 0);
  const { createKey, revokeKey } = await import('../../src/domain/access/keys.ts');
  const { key, value } = await createKey(server.ctx, server.environment, { kind: 'secret' });
  const stream = await follow(server, { key: value });
  await messages(stream, 0);
  await revokeKey(server.ctx, key.id);
  const revokedAt = performance.now();
  await stream.until((received) => received.endsWith('\r\n0\r\n\r\n'));
  t.ok(performance.now() - revokedAt < 5_000, `${Math.round(performance.now() - revokedAt)} ms`);
  while (server.http.pending() > 1) await new Promise(setImmediate);
  await server.request('PUT', '/users/zoe', { body: {} });
  await kept.until((received) => received.includes('"zoe"'));
});

t.test('a reader that is far behind receives everything from the log', async (t) => {
  const server = await startTestServer(t);
  const stream = await follow(server);
  await messages(stream, 0);
  stream.pause();
  const padding = 'x'.repeat(100_000);
  for (let batch = 0; batch < 4; batch++) {
    await server.ctx.store.transact(async (tx) => {
      for (let i = 0; i < 50; i++)
        tx.emit(streamOf(server.environment), (seq) => `{"seq":${seq},"padding":"${padding}"}`);
    });
  }
  stream.resume();
  const text = await stream.until((received) => parse(received).length > 200, 200 * padding.length);
  t.strictSame(seqs(parse(text).slice(1)), upTo(1, 200));
});

t.test('shutting down ends the streams', async (t) => {
  const server = await started(t);
  const stream = await follow(server);
  await messages(stream, 0);
  t.equal(server.http.pending(), 1);
  server.status.draining = true;
  server.http.endStreams();
  t.match(await stream.ended, /\r\n0\r\n\r\n$/);
  t.equal(server.http.pending(), 0);
  const late = await follow(server);
  t.match(await late.ended, /event: welcome[^]*\r\n0\r\n\r\n$/, 'a stream that is opened later is ended too');
  t.equal(server.http.pending(), 0);
});

t.test('HEAD of the stream is answered like HEAD of the list', async (t) => {
  const server = await started(t);
  const { status, headers } = await server.request('HEAD', '/events', { headers: { Accept: 'text/event-stream' } });
  t.equal(status, 200);
  t.equal(headers.get('content-type'), 'application/json; charset=utf-8');
});
