import t from 'tap';
import { listEvents, parseEventsQuery } from '../../src/domain/events/events.ts';
import { countRequest } from '../../src/domain/quotas/count-request.ts';
import { deleteUser, getUser, listUsers, putUser, recordUserFromToken } from '../../src/domain/users/users.ts';
import { adjustSocketCount, isOnline } from '../../src/domain/users/online.ts';
import type { EventEnvelope } from '../../src/model/event.ts';
import type { User } from '../../src/model/user.ts';
import { addComment, createWorld, itemsOf, query, START, startThread, type World } from './world.ts';
import { epochOf, streamOf } from '../../src/domain/events/streams.ts';

const at = (offset: number): string => new Date(START + offset).toISOString();

async function userEvents(world: World): Promise<EventEnvelope[]> {
  const events = await world.ctx.store.events(streamOf(world.environment), 0, 1000);
  return events.map(({ text }) => JSON.parse(text) as EventEnvelope).filter(({ type }) => type === 'user.updated');
}

await t.test('PUT creates a user or changes the given fields; repeating it changes nothing', async (t) => {
  const world = await createWorld(t);
  const put = async (fields: object) =>
    JSON.parse(await putUser(world.ctx, world.backend, 'cy/ü', fields)) as { user: User };
  const { user } = await put({ name: 'Cy', email: 'cy@example.com', kind: 'bot', metadata: { team: 'a' } });
  t.same(user, {
    id: 'cy/ü',
    userId: 'cy/ü',
    name: 'Cy',
    avatarUrl: null,
    email: 'cy@example.com',
    kind: 'bot',
    metadata: { team: 'a' },
    createdAt: at(0),
    updatedAt: at(0),
    firstSeenAt: null,
    lastSeenAt: null,
    online: false,
  });
  const before = (await userEvents(world)).length;
  world.clock.advance(5);
  t.same((await put({ name: 'Cy', metadata: { team: 'a' } })).user, user);
  t.equal((await userEvents(world)).length, before);
  t.match((await put({ avatarUrl: 'https://example.com/cy.png' })).user, {
    name: 'Cy',
    email: 'cy@example.com',
    updatedAt: at(5),
    createdAt: at(0),
  });
  const last = (await userEvents(world)).at(-1);
  const data = last?.data as object;
  t.match(last, {
    type: 'user.updated',
    actor: { userId: null, via: 'rest' },
    data: { id: 'cy/ü', avatarUrl: 'https://example.com/cy.png' },
  });
  t.notOk('email' in data, 'an e-mail address does not travel');
  t.notOk('roomId' in (last ?? {}));
});

await t.test('invalid fields of a user are named', async (t) => {
  const world = await createWorld(t);
  const cases: [object, string][] = [
    [{ avatarUrl: 'javascript:alert(1)' }, 'avatarUrl must be an http or https address'],
    [{ email: 'nobody' }, 'email must be an email address'],
    [{ name: 3 }, 'name must be a string'],
    [{ metadata: { a: 'x'.repeat(4001) } }, 'metadata.a must be at most 4000 characters'],
  ];
  for (const [fields, message] of cases)
    await t.rejects(putUser(world.ctx, world.backend, 'cy', fields), { code: 'invalid_request', message });
  await t.rejects(putUser(world.ctx, world.backend, 'x'.repeat(129), {}), {
    message: 'userId must be 1 to 128 characters',
  });
  await t.rejects(putUser(world.ctx, world.ann, 'ann', {}), { code: 'forbidden' });
  await t.rejects(putUser(world.ctx, { ...world.backend, scope: 'moderate' }, 'ann', {}), { code: 'forbidden' });
});

await t.test('email addresses are shown to backends only', async (t) => {
  const world = await createWorld(t);
  await putUser(world.ctx, world.backend, 'ann', { email: 'ann@example.com' });
  t.match(JSON.parse(await getUser(world.ctx, world.backend, 'ann')), { user: { email: 'ann@example.com' } });
  t.notOk((await getUser(world.ctx, world.bob, 'ann')).includes('email'));
  t.notOk(
    Buffer.from((await listUsers(world.ctx, world.bob, query('users'))).text)
      .toString()
      .includes('email'),
  );
  await t.rejects(getUser(world.ctx, world.backend, 'nobody'), { code: 'user_not_found', message: 'User not found' });
});

await t.test('a user who authenticates gets the fields of the claims; absent claims change nothing', async (t) => {
  const world = await createWorld(t);
  const claims = { userId: 'dee', role: 'member', rooms: null, confinedKeyId: null, expiresAt: 0 } as const;
  await Promise.all(
    Array.from({ length: 10 }, (_, i) =>
      recordUserFromToken(i % 2 === 0 ? world.ctx : world.peer, world.environment, { ...claims, name: 'Dee' }, 'ws'),
    ),
  );
  t.equal(
    (await userEvents(world)).filter(({ actor }) => actor.userId === 'dee').length,
    1,
    'told once, however many tabs open at once',
  );
  world.clock.advance(59_999);
  t.match(await recordUserFromToken(world.ctx, world.environment, claims, 'ws'), {
    name: 'Dee',
    firstSeenAt: at(0),
    lastSeenAt: at(0),
  });
  world.clock.advance(1);
  t.match(await recordUserFromToken(world.ctx, world.environment, claims, 'ws'), {
    name: 'Dee',
    firstSeenAt: at(0),
    lastSeenAt: at(60_000),
    updatedAt: at(0),
  });
  t.equal((await userEvents(world)).filter(({ actor }) => actor.userId === 'dee').length, 1, 'being seen is not news');
  t.match(
    await recordUserFromToken(world.ctx, world.environment, { ...claims, name: 'Dee D', metadata: { a: 1 } }, 'ws'),
    { name: 'Dee D', metadata: { a: 1 } },
  );
  t.equal((await userEvents(world)).filter(({ actor }) => actor.userId === 'dee').length, 2);
  t.match(
    await recordUserFromToken(world.ctx, world.environment, { ...claims, userId: 'ann' }, 'ws'),
    { name: 'Ann', firstSeenAt: at(60_000) },
    'made by PUT before',
  );
});

await t.test(
  'a token that is used again is compared again only with a record that changed, and when lastSeenAt is due',
  async (t) => {
    const world = await createWorld(t);
    const claims = {
      userId: 'dee',
      role: 'member',
      rooms: null,
      confinedKeyId: null,
      expiresAt: 0,
      issuedAt: START,
      name: 'Dee',
    } as const;
    const record = (): Promise<User> => recordUserFromToken(world.ctx, world.environment, claims, 'rest');
    await record();
    const user = await record();
    t.equal(await record(), user, 'the same object: nothing was parsed');
    await putUser(world.peer, world.backend, 'dee', { name: 'Other' });
    t.match(await record(), { name: 'Dee' });
    t.match(JSON.parse(await getUser(world.ctx, world.backend, 'dee')), { user: { name: 'Dee' } });
    await record();
    world.clock.advance(60_000);
    t.match(await record(), { lastSeenAt: at(60_000) });
    await record();
    world.clock.advance(-60_000);
    t.match(await record(), { lastSeenAt: at(0) }, 'the clock was set back');
    await record();
    await deleteUser(world.ctx, world.backend, 'dee');
    t.match(await record(), { name: 'Dee' });
    t.match(
      JSON.parse(await getUser(world.ctx, world.backend, 'dee')),
      { user: { name: 'Dee' } },
      'a user who was erased is a new one',
    );
  },
);

await t.test('a user is online while a connection is open on any worker', async (t) => {
  const world = await createWorld(t);
  for (const owner of ['w1', 'w2']) await world.ctx.shared.beginLease(owner);
  t.equal(await adjustSocketCount(world.ctx, world.environment, 'ann', null, 'w1', 1), 1);
  t.equal(await adjustSocketCount(world.peer, world.environment, 'ann', null, 'w2', 1), 2);
  t.match(JSON.parse(await getUser(world.ctx, world.backend, 'ann')), { user: { online: true } });
  await adjustSocketCount(world.ctx, world.environment, 'ann', null, 'w1', -1);
  await adjustSocketCount(world.ctx, world.environment, 'ann', null, 'w2', -1);
  t.notOk(await isOnline(world.ctx, world.environment, 'ann'));
});

await t.test('users are listed newest first, in pages and filtered', async (t) => {
  const world = await createWorld(t);
  world.clock.advance(10);
  await putUser(world.ctx, world.backend, 'zed', { name: 'Änne Two', kind: 'bot' });
  await recordUserFromToken(
    world.ctx,
    world.environment,
    { userId: 'bob', role: 'member', rooms: null, confinedKeyId: null, expiresAt: 0 },
    'ws',
  );
  const idsOf = async (search: string) =>
    itemsOf<User>(await listUsers(world.ctx, world.backend, query('users', search))).map(({ id }) => id);
  t.same(await idsOf(''), ['zed', 'bob', 'ann']);
  t.same(await idsOf('order=asc'), ['ann', 'bob', 'zed']);
  t.same(await idsOf('q=%C3%84NNE'), ['zed']);
  t.same(await idsOf(`q=${encodeURIComponent('Änne'.normalize('NFD'))}`), ['zed'], 'in any form of Unicode');
  t.same(await idsOf('q=AN'), ['zed', 'ann'], 'without accents too');
  t.same(await idsOf('kind=bot'), ['zed']);
  t.same(await idsOf(`seenSince=${at(10)}`), ['bob']);
  const page = await listUsers(world.ctx, world.backend, query('users', 'limit=2'));
  t.same(await idsOf(`limit=2&cursor=${page.nextCursor}`), ['ann']);
});

await t.test('events are read from a position, with the end of the stream', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world, 'a');
  await addComment(world, threadId);
  await startThread(world, 'b');
  const read = async (since: number, limit: number, actor = world.backend) =>
    JSON.parse(await listEvents(world.ctx, actor, since, limit)) as {
      items: EventEnvelope[];
      epoch: string;
      seq: number;
      oldestSeq: number;
      nextSince?: number;
    };
  const whole = await read(0, 100);
  t.same(
    whole.items.map(({ seq, type }) => `${seq} ${type}`),
    ['1 user.updated', '2 user.updated', '3 thread.created', '4 comment.created', '5 thread.created'],
  );
  t.match(whole, { seq: 5, oldestSeq: 1, epoch: epochOf(world.ctx.store, world.environment) });
  t.notOk('nextSince' in whole);
  t.match(await read(2, 1), { items: [{ seq: 3 }], nextSince: 3 });
  t.match(await read(5, 10), { items: [], seq: 5 });
  const confined = await read(0, 4, { ...world.backend, rooms: ['b'] });
  t.same(
    confined.items.map(({ seq }) => seq),
    [],
    'other rooms and users are left out',
  );
  t.equal(confined.nextSince, 4);
  t.same(
    (await read(0, 100, { ...world.backend, rooms: ['b'] })).items.map(({ seq }) => seq),
    [5],
  );
  await world.ctx.store.trimEvents(streamOf(world.environment), 3);
  t.match(await read(0, 1), { items: [{ seq: 4 }], oldestSeq: 4 });
  // Trims just before and just after the events are read.
  for (const moment of ['before', 'after'] as const) {
    await addComment(world, threadId);
    const oldest = await world.ctx.store.oldestSeq(streamOf(world.environment));
    const trim = (): Promise<void> => world.ctx.store.trimEvents(streamOf(world.environment), oldest);
    const store = new Proxy(world.ctx.store, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target);
        if (name !== 'events') return typeof member === 'function' ? member.bind(target) : member;
        return async (...args: Parameters<typeof target.events>) => {
          if (moment === 'before') await trim();
          const events = await target.events(...args);
          if (moment === 'after') await trim();
          return events;
        };
      },
    });
    const page = JSON.parse(await listEvents({ ...world.ctx, store }, world.backend, oldest - 1, 100)) as {
      items: EventEnvelope[];
      oldestSeq: number;
    };
    t.equal(page.items[0]?.seq, page.oldestSeq, 'a gap shows, and nothing else looks like one');
    t.equal(page.oldestSeq, moment === 'before' ? oldest + 1 : oldest);
  }
  t.same(parseEventsQuery(new URLSearchParams()), { since: 0, limit: 100 });
  t.same(parseEventsQuery(new URLSearchParams('since=7&limit=5000')), { since: 7, limit: 1000 });
  t.throws(() => parseEventsQuery(new URLSearchParams('since=-1')), {
    message: 'since must be an integer of at least 0',
  });
  t.throws(() => parseEventsQuery(new URLSearchParams('limit=0')), {
    message: 'limit must be an integer of at least 1',
  });
});

await t.test('requests are counted by address, by network for IPv6, or by key', async (t) => {
  const world = await createWorld(t);
  const config = { rateLimit: { perMinute: 2, files: 600, exempt: ['10.0.0.0/8'] } };
  const hit = (address: string) => countRequest(world.ctx, config, { kind: 'address', address });
  t.match(await hit('1.2.3.4'), { allowed: true, remaining: 1, limit: 2, resetMs: 60_000 });
  t.match(
    await hit('0000:0000:0000:0000:0000:ffff:0102:0304'),
    { allowed: true, remaining: 0 },
    'the same address, mapped',
  );
  t.match(await hit('1.2.3.4'), { allowed: false, remaining: 0 });
  t.ok((await hit('1.2.3.5')).allowed);
  t.ok((await hit('2001:db8::1')).allowed);
  t.ok((await hit('2001:db8::2')).allowed);
  t.notOk((await hit('2001:db8:0:0:ffff::3')).allowed, 'the same /64');
  t.ok((await hit('2001:db8:0:1::3')).allowed);
  for (let i = 0; i < 5; i++) t.match(await hit('10.1.2.3'), { allowed: true, limit: 0 });
  t.match(await countRequest(world.ctx, config, { kind: 'key', keyId: 'k', limit: 1 }), { allowed: true, limit: 1 });
  t.notOk((await countRequest(world.ctx, config, { kind: 'key', keyId: 'k', limit: 1 })).allowed);
  t.ok((await countRequest(world.ctx, config, { kind: 'key', keyId: 'u', limit: 0 })).allowed);
});

await t.test('a field that a backend has set stays until a token is issued later', async (t) => {
  const world = await createWorld(t);
  const claims = (issuedAt: number, fields: object) =>
    ({ userId: 'dee', rooms: null, confinedKeyId: null, issuedAt: START + issuedAt, ...fields }) as Parameters<
      typeof recordUserFromToken
    >[2];
  const early = claims(0, { name: 'Token', avatarUrl: 'https://example.com/token.png' });
  const read = async () => (JSON.parse(await getUser(world.ctx, world.backend, 'dee')) as { user: User }).user;
  await recordUserFromToken(world.ctx, world.environment, early, 'rest');
  world.clock.advance(5_000);
  await putUser(world.ctx, world.backend, 'dee', { name: 'Backend' });
  const events = (await userEvents(world)).length;
  await recordUserFromToken(world.ctx, world.environment, early, 'rest');
  t.match(await read(), { name: 'Backend', avatarUrl: 'https://example.com/token.png' }, 'the token is older');
  t.equal((await userEvents(world)).length, events, 'and changes nothing');
  t.notOk('setAt' in (await read()));
  await recordUserFromToken(
    world.ctx,
    world.environment,
    claims(0, { name: 'Token', avatarUrl: 'https://example.com/other.png' }),
    'rest',
  );
  t.match(
    await read(),
    { name: 'Backend', avatarUrl: 'https://example.com/other.png' },
    'what no backend has set follows the tokens',
  );
  await recordUserFromToken(world.ctx, world.environment, claims(5_000, { name: 'Renamed' }), 'rest');
  t.match(await read(), { name: 'Renamed' }, 'a token of the same second or later counts');
});

await t.test('presence is not read for a key that does not see it', async (t) => {
  const world = await createWorld(t);
  const total = (): never => t.fail('presence is read') as never;
  const ctx = {
    ...world.ctx,
    shared: new Proxy(world.ctx.shared, {
      get: (shared, name) => (name === 'total' ? total : Reflect.get(shared, name)),
    }),
  };
  t.match(JSON.parse(await getUser(ctx, { ...world.backend, rooms: ['room'] }, 'ann')), {
    user: { userId: 'ann', online: false },
  });
});
