import t, { type Test } from 'tap';
import type { EventEnvelope } from '../../src/model/event.ts';
import { startService, type Tenant } from '../helpers/service.ts';
import type { TestSocket } from '../helpers/socket.ts';
import { epochOf, streamOf } from '../../src/domain/events/streams.ts';

// Deleting a user: no personal data in the log as it is read, no socket and no presence on any worker.

type UserEvent = EventEnvelope & { readonly data: Record<string, unknown> };

async function deployment(t: Test): Promise<Tenant> {
  const service = await startService(t, { workers: 2 });
  return service.tenant('default');
}

const usersIn = (texts: readonly string[]): UserEvent[] =>
  texts.map((text) => JSON.parse(text) as UserEvent).filter(({ type }) => type === 'user.updated');

async function overRest({ request }: Tenant): Promise<UserEvent[]> {
  const { json } = await request<{ items: UserEvent[] }>('GET', '/events?since=0', { worker: 1 });
  return json.items.filter(({ type }) => type === 'user.updated');
}

/** The events up to a position, as server-sent events. */
async function overStream(t: Test, { service, secretKey }: Tenant, seq: number): Promise<UserEvent[]> {
  const ended = new AbortController();
  t.teardown(() => ended.abort());
  const headers = { Authorization: `Bearer ${secretKey}`, Accept: 'text/event-stream' };
  const { body } = await fetch(`${service.urls[1]}/api/v1/events?since=0`, { headers, signal: ended.signal });
  let text = '';
  for await (const chunk of body ?? []) {
    text += Buffer.from(chunk as Uint8Array).toString();
    if (text.includes(`:${seq}\ndata: `) && text.endsWith('\n\n')) break;
  }
  return usersIn(text.split('\n').flatMap((line) => (line.startsWith('data: {"type"') ? [line.slice(6)] : [])));
}

/** The events up to a position, as a resuming socket receives them. */
async function overSocket({ service, join, environment }: Tenant, seq: number): Promise<UserEvent[]> {
  const socket = await join(
    { userId: 'reader' },
    { worker: 1, search: `?epoch=${epochOf(service.ctx.store, environment)}&since=0` },
  );
  await socket.until(() => socket.seqs.includes(seq));
  const events = socket.frames.filter((frame) => frame.type === 'user.updated' && (frame.seq ?? 0) <= seq);
  return events as unknown as UserEvent[];
}

const about = (events: readonly UserEvent[], userId: string): UserEvent[] =>
  events.filter(({ data }) => data['userId'] === userId);

t.test('no reader of the log receives the personal data of an erased user', async (t) => {
  const tenant = await deployment(t);
  const { request, service } = tenant;
  await request('PUT', '/users/reader', { body: { name: 'Reader' } });
  await request('PUT', '/users/ann', {
    body: { name: 'Ann Smith', avatarUrl: 'https://example.com/ann.png', metadata: { phone: '555' } },
  });
  await request('PUT', '/users/ann', { body: { name: 'Ann Jones', kind: 'bot' } });
  const before = await overRest(tenant);
  t.equal(about(before, 'ann')[0]?.data['name'], 'Ann Smith', 'before the deletion');
  service.clock.advance(1_000);
  t.equal((await request('DELETE', '/users/ann')).status, 200);
  service.clock.advance(1_000);
  await request('PUT', '/users/ann', { body: { name: 'Another Ann' } });
  const seq = await service.ctx.store.lastSeq(streamOf(tenant.environment));

  for (const [reader, events] of [
    ['REST', await overRest(tenant)],
    ['SSE', await overStream(t, tenant, seq)],
    ['WebSocket', await overSocket(tenant, seq)],
  ] as const) {
    const shown = JSON.stringify(events);
    for (const personal of ['Smith', 'Jones', 'ann.png', '555'])
      t.notOk(shown.includes(personal), `${reader}: ${personal}`);
    t.strictSame(about(events, 'reader')[0], about(before, 'reader')[0], `${reader}: other users are unchanged`);
    const [first, second, erasure, anew] = about(events, 'ann');
    const [given] = about(before, 'ann');
    const data = {
      ...given?.data,
      name: null,
      avatarUrl: null,
      metadata: {},
      firstSeenAt: null,
      lastSeenAt: null,
      online: false,
    };
    t.strictSame(first, { ...given, data }, `${reader}: the envelope stays`);
    t.match(second?.data, { id: 'ann', userId: 'ann', name: null, kind: 'bot' }, reader);
    t.match(erasure?.data, { userId: 'ann', name: null, erased: true }, reader);
    t.match(anew?.data, { userId: 'ann', name: 'Another Ann' }, `${reader}: a user created again is a new user`);
  }
});

t.test('deleting a user closes its sockets on every worker and removes it from its rooms', async (t) => {
  const tenant = await deployment(t);
  const { request, join, service } = tenant;
  const enter = async (userId: string, worker: number): Promise<TestSocket> => {
    const socket = await join({ userId, name: `Name of ${userId}` }, { worker });
    await socket.request('room.join', { roomId: 'lobby', state: { of: userId } });
    return socket;
  };
  const [here, there, bob] = [await enter('ann', 0), await enter('ann', 1), await enter('bob', 1)];
  const lost = await enter('ann', 1);
  await lost.terminate();
  service.clock.advance(1_000);
  t.equal((await request('DELETE', '/users/ann')).status, 200);
  for (const worker of [0, 1]) {
    const { json } = await request<{ items: { userId: string }[] }>('GET', '/rooms/lobby/presence', { worker });
    t.strictSame(
      json.items.map(({ userId }) => userId),
      ['bob'],
      'at once',
    );
  }
  for (const socket of [here, there]) t.strictSame(await socket.closed, { code: 4403, reason: 'forbidden' });
  t.match(await bob.frame('presence.left'), { data: { userId: 'ann' } });
  t.equal((await bob.request('thread.create', { roomId: 'lobby', body: 'hi' })).type, 'ok', 'others stay');

  const back = await enter('ann', 0);
  t.equal((await back.request('pong')).type, 'ok', 'a token that is still valid creates a new user');
  t.match((await request('GET', '/users/ann')).json, {
    user: { createdAt: new Date(service.clock.now()).toISOString() },
  });
});

t.test('a lost connection of an erased user has no grace period', async (t) => {
  const tenant = await deployment(t);
  const { request, join, service } = tenant;
  const [ann, bob] = [await join({ userId: 'ann' }), await join({ userId: 'bob' }, { worker: 1 })];
  for (const socket of [bob, ann]) await socket.request('room.join', { roomId: 'lobby' });
  await bob.frame('presence.joined');
  await ann.terminate();
  service.clock.advance(1_000);
  await request('DELETE', '/users/ann');
  t.match(await bob.frame('presence.left'), { data: { userId: 'ann' } });
});
