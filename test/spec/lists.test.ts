import t, { type Test } from 'tap';
import type { Comment } from '../../src/model/comment.ts';
import type { Thread } from '../../src/model/thread.ts';
import { startService, type Tenant } from '../helpers/service.ts';
import { addComment, addThread, addUser, done, type Failure } from '../helpers/writer.ts';

// Pagination, filters, sort of every list.

interface Listed {
  readonly id: string;
  readonly createdAt: string;
  readonly updatedAt?: string;
  readonly editedAt?: string | null;
}
interface Page {
  readonly items: readonly Listed[];
  readonly nextCursor?: string;
}
type List = 'threads' | 'comments' | 'rooms' | 'users';

const service = await startService(t);
const tenant = await service.tenant('lists');
const COUNT = 7;

/** Seven of each kind, a second apart but for the last two, which have the same time. */
async function filled(tenant: Tenant): Promise<Record<List, string>> {
  for (let i = 0; i < COUNT; i++) {
    await addUser(tenant, `user-${i}`, { name: `Name ${i}` });
    await addThread(tenant, `room-${i}`, { userId: 'user-0' });
    if (i < COUNT - 2) service.clock.advance(1000);
  }
  const { id } = await addThread(tenant, 'room-0', { userId: 'user-0', body: 'No 0' });
  for (let i = 1; i < COUNT; i++) {
    service.clock.advance(i < COUNT - 1 ? 1000 : 0);
    await addComment(tenant, id, { userId: 'user-0', body: `No ${i}` });
    await addThread(tenant, 'full', { userId: 'user-0' });
  }
  await addThread(tenant, 'full', { userId: 'user-0' });
  const { items } = done(200, await tenant.request<{ items: Comment[] }>('GET', `/threads/${id}/comments`));
  service.clock.advance(1000);
  await tenant.request('PATCH', `/comments/${items[1]?.id}`, { body: { body: 'Edited' } });
  return { threads: '/rooms/full/threads', comments: `/threads/${id}/comments`, rooms: '/rooms', users: '/users' };
}

const paths = await filled(tenant);
const lists = Object.entries(paths) as [List, string][];
const get = async (path: string): Promise<Page> => done(200, await tenant.request<Page>('GET', path));
const idsOf = ({ items }: Page): string[] => items.map(({ id }) => id);

async function refused(t: Test, path: string, message: string | RegExp): Promise<void> {
  const { status, json } = await tenant.request<Failure>('GET', path);
  t.equal(status, 400, path);
  t.match(json.error, message);
  t.strictSame(Object.keys(json), ['error']);
}

for (const [list, path] of lists) {
  t.test(`${list} | no limit | the whole list, without nextCursor and Link`, async (t) => {
    const answer = await tenant.request<Page>('GET', path);
    t.ok(answer.json.items.length >= COUNT);
    t.strictSame(Object.keys(answer.json), ['items'], 'the key is absent, not null');
    t.equal(answer.headers.get('link'), null);
  });

  t.test(`${list} | limit | 1 to 1000, larger is coerced to 1000, all else 400`, async (t) => {
    const whole = await get(path);
    for (const limit of [1, COUNT - 1])
      t.strictSame(idsOf(await get(`${path}?limit=${limit}`)), idsOf(whole).slice(0, limit));
    for (const limit of ['1000', '1001', '999999999999999']) t.strictSame(await get(`${path}?limit=${limit}`), whole);
    t.notOk(
      Object.hasOwn(await get(`${path}?limit=${whole.items.length}`), 'nextCursor'),
      'a limit that fits exactly has no next page',
    );
    for (const limit of ['0', '-1', '1.5', '1e2', 'x', '', '%20', '0x10', 'Infinity', '+5', '5 ']) {
      await refused(t, `${path}?limit=${encodeURIComponent(limit)}`, 'limit must be an integer between 1 and 1000');
    }
  });

  t.test(`${list} | cursor | pages by it hold every item once, in every order`, async (t) => {
    for (const sort of ['createdAt', 'updatedAt']) {
      for (const order of ['asc', 'desc']) {
        const query = `sort=${sort}&order=${order}`;
        const whole = idsOf(await get(`${path}?${query}`));
        for (const limit of [1, 3]) {
          const paged: string[] = [];
          for (let next = `${path}?${query}&limit=${limit}`; next !== '';) {
            const page = await get(next);
            paged.push(...idsOf(page));
            next = page.nextCursor === undefined ? '' : `${path}?${query}&limit=${limit}&cursor=${page.nextCursor}`;
          }
          t.strictSame(paged, whole, `${query}&limit=${limit}`);
        }
      }
    }
  });

  t.test(`${list} | cursor | malformed, or of other filters, order or list | 400 Invalid cursor`, async (t) => {
    const { nextCursor = '' } = await get(`${path}?limit=2`);
    t.match(nextCursor, /^[A-Za-z0-9_-]+$/, 'base64url');
    const json = JSON.parse(Buffer.from(nextCursor, 'base64url').toString()) as Record<string, unknown>;
    t.strictSame(Object.keys(json).sort(), ['f', 'id', 'k', 'v']);
    const altered = (change: object) => Buffer.from(JSON.stringify({ ...json, ...change })).toString('base64url');
    for (const cursor of [
      '',
      'x',
      '%00',
      nextCursor.slice(1),
      nextCursor.slice(0, -8),
      altered({ f: 'x' }),
      altered({ v: 2 }),
      altered({ k: 7 }),
      altered({ id: null }),
      altered({ k: '~' }),
      altered({ id: 'a\nb' }),
      'bnVsbA',
      'W10',
      'x'.repeat(3000),
    ]) {
      await refused(t, `${path}?limit=2&cursor=${cursor}`, 'Invalid cursor');
    }
    for (const other of [
      'sort=updatedAt',
      list === 'comments' ? 'order=desc' : 'order=asc',
      list === 'users' ? 'kind=bot' : 'updatedSince=2020-01-01T00:00:00.000Z',
    ]) {
      await refused(t, `${path}?limit=2&${other}&cursor=${nextCursor}`, 'Invalid cursor');
    }
    for (const [otherList, otherPath] of lists)
      if (otherList !== list) await refused(t, `${otherPath}?limit=2&cursor=${nextCursor}`, 'Invalid cursor');
    t.strictSame(
      idsOf(await get(`${path}?limit=3&cursor=${nextCursor}`)),
      idsOf(await get(path)).slice(2, 5),
      'another limit is no matter',
    );
  });

  t.test(`${list} | cursor | never expires`, async (t) => {
    const { nextCursor = '' } = await get(`${path}?limit=2`);
    const next = await get(`${path}?limit=2&cursor=${nextCursor}`);
    service.clock.advance(400 * 24 * 3_600_000);
    t.strictSame(await get(`${path}?limit=2&cursor=${nextCursor}`), next);
  });

  t.test(`${list} | Link | the next page, absolute, with every parameter`, async (t) => {
    const seen: string[] = [];
    const base = `${service.urls[0]}/api/v1`;
    const filter = list === 'users' ? 'q=NAME' : 'updatedSince=2020-01-01T00:00:00.000Z';
    let next = `${path}?limit=3&order=desc&${filter}`;
    for (;;) {
      const { json, headers } = await tenant.request<Page>('GET', next);
      seen.push(...idsOf(json));
      const link = headers.get('link');
      t.equal(link === null, json.nextCursor === undefined, 'there as long as nextCursor is');
      if (link === null) break;
      const [, url = ''] = /^<([^<>]+)>; rel="next"$/.exec(link) ?? [];
      t.ok(url.startsWith(base), url);
      t.equal(new URL(url).searchParams.get('cursor'), json.nextCursor);
      next = url.slice(base.length);
    }
    t.strictSame(seen, idsOf(await get(`${path}?order=desc&${filter}`)));
  });

  t.test(
    `${list} | sort, order | createdAt or updatedAt, asc or desc; ${list === 'comments' ? 'createdAt asc' : 'createdAt desc'} by default; tie-break id`,
    async (t) => {
      const whole = await get(path);
      const by = (key: (item: Listed) => string, direction: number) =>
        [...whole.items]
          .sort((a, b) => direction * (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : a.id < b.id ? -1 : 1))
          .map(({ id }) => id);
      const created = ({ createdAt }: Listed): string => createdAt;
      const updated = ({ createdAt, updatedAt, editedAt }: Listed): string => updatedAt ?? editedAt ?? createdAt;
      t.strictSame(idsOf(whole), by(created, list === 'comments' ? 1 : -1), 'default');
      t.strictSame(idsOf(await get(`${path}?sort=createdAt&order=asc`)), by(created, 1));
      t.strictSame(idsOf(await get(`${path}?sort=createdAt&order=desc`)), by(created, -1));
      t.strictSame(idsOf(await get(`${path}?sort=updatedAt&order=asc`)), by(updated, 1));
      t.strictSame(idsOf(await get(`${path}?sort=updatedAt&order=desc`)), by(updated, -1));
      await refused(t, `${path}?sort=name`, 'sort must be one of createdAt, updatedAt');
      await refused(t, `${path}?order=up`, 'order must be one of asc, desc');
    },
  );

  t.test(`${list} | parameters that are not known are ignored`, async (t) => {
    t.strictSame(await get(`${path}?page=2&offset=3&constructor=1&__proto__=x&=&limit=1000`), await get(path));
  });
}

for (const [list, path] of lists) {
  if (list === 'users') continue;
  t.test(`${list} | ETag | 304 to who has it, until something changes`, async (t) => {
    const url = `${path}?limit=3`;
    const first = await tenant.request<Page>('GET', url);
    const tag = first.headers.get('etag') ?? '';
    t.match(tag, /^W\/"[^"]+"$/, 'weak');
    t.equal(first.headers.get('cache-control'), 'private, no-cache');
    for (const sent of [tag, `"x", ${tag}`]) {
      const { status, text, headers } = await tenant.request('GET', url, { headers: { 'If-None-Match': sent } });
      t.equal(status, 304, sent);
      t.equal(text, '');
      t.equal(headers.get('etag'), tag);
    }
    t.equal(
      (await tenant.request('GET', `${path}?limit=2`, { headers: { 'If-None-Match': tag } })).status,
      200,
      'of another address it says nothing',
    );
    t.equal(
      (await tenant.request('GET', url, { headers: { 'If-None-Match': tag }, key: null })).status,
      401,
      'the credential comes first',
    );
    await addThread(tenant, 'anywhere', { userId: 'user-0' });
    const after = await tenant.request('GET', url, { headers: { 'If-None-Match': tag } });
    t.equal(after.status, 200);
    t.not(after.headers.get('etag'), tag);
  });
}

t.test('ETag | 304 never to who lacks what was answered on another worker', async (t) => {
  const two = await startService(t, { workers: 2 });
  const world = await two.tenant('workers');
  await addUser(world, 'ann');
  const { id } = await addThread(world, 'page');
  for (let i = 0; i < 40; i++) {
    const worker = i % 2;
    const path = `/threads/${id}/comments`;
    const before = await world.request('GET', path, { worker });
    const comment = await addComment(world, id, {}, { worker: 1 - worker });
    const after = await world.request('GET', path, {
      worker,
      headers: { 'If-None-Match': before.headers.get('etag') ?? '' },
    });
    if (after.status !== 200 || !after.text.includes(comment.id)) return t.fail(`round ${i}: ${after.status}`);
  }
  t.pass('forty times');
});

t.test('threads | cursor | stays in its place while others write', async (t) => {
  for (let i = 0; i < 10; i++) {
    service.clock.advance(1000);
    await addThread(tenant, 'busy', { userId: 'user-0' });
  }
  const before = idsOf(await get('/rooms/busy/threads'));
  const paged: string[] = [];
  let path = '/rooms/busy/threads?limit=3';
  for (let page = await get(path); ; page = await get(path)) {
    paged.push(...idsOf(page));
    if (page.nextCursor === undefined) break;
    path = `/rooms/busy/threads?limit=3&cursor=${page.nextCursor}`;
    service.clock.advance(1000);
    await addThread(tenant, 'busy', { userId: 'user-0' });
    await tenant.request('DELETE', `/threads/${paged.at(-1)}`);
  }
  t.strictSame(paged, before, 'what was there is seen once each, though the item of the cursor is gone');
});

t.test('threads, comments | cursor | of another room or thread | 400 Invalid cursor', async (t) => {
  const pathOf: Record<string, string> = {};
  for (const name of ['here', 'there']) {
    const { id } = await addThread(tenant, name, { userId: 'user-0' });
    await addThread(tenant, name, { userId: 'user-0' });
    await addComment(tenant, id, { userId: 'user-0' });
    pathOf[`threads ${name}`] = `/rooms/${name}/threads?limit=1`;
    pathOf[`comments ${name}`] = `/threads/${id}/comments?limit=1`;
  }
  for (const list of ['threads', 'comments']) {
    const { nextCursor } = await get(pathOf[`${list} here`] ?? '');
    t.equal(idsOf(await get(`${pathOf[`${list} here`]}&cursor=${nextCursor}`)).length, 1);
    await refused(t, `${pathOf[`${list} there`]}&cursor=${nextCursor}`, 'Invalid cursor');
  }
});

t.test('comments | cursor | one who reads on sees every comment that is written meanwhile', async (t) => {
  const { id } = await addThread(tenant, 'growing', { userId: 'user-0' });
  const written = [(await get(`/threads/${id}/comments`)).items[0]?.id];
  const seen: string[] = [];
  let path = `/threads/${id}/comments?limit=2`;
  for (let round = 0; ; round++) {
    service.clock.advance(1);
    if (round < 12) for (let i = 0; i < 2; i++) written.push((await addComment(tenant, id, { userId: 'user-0' })).id);
    const page = await get(path);
    seen.push(...idsOf(page));
    if (page.nextCursor === undefined) break;
    path = `/threads/${id}/comments?limit=2&cursor=${page.nextCursor}`;
  }
  t.strictSame(seen, written);
});

t.test('rooms, users | cursor | whatever their ids look like', async (t) => {
  const odd = await service.tenant('odd');
  const ids = ['~', 'a~b', 'ä'.repeat(128), '😀'.repeat(64), '%', 'a b', '~~~', '\u{10ffff}', "!'()*", 'x'.repeat(128)];
  for (const id of ids) {
    await addUser(odd, id);
    await addThread(odd, id, { userId: id });
  }
  for (const path of ['/rooms', '/users']) {
    for (const order of ['asc', 'desc']) {
      const seen: string[] = [];
      let next = `${path}?limit=1&order=${order}`;
      for (;;) {
        const page = done(200, await odd.request<Page>('GET', next));
        seen.push(...idsOf(page));
        if (page.nextCursor === undefined) break;
        next = `${path}?limit=1&order=${order}&cursor=${page.nextCursor}`;
      }
      t.equal(seen.length, ids.length);
      t.strictSame(new Set(seen), new Set(ids), `${path} ${order}`);
    }
  }
});

t.test('listHardCap | without limit at most so many, with nextCursor and Link', async (t) => {
  const capped = await service.tenant('capped', { limits: { listHardCap: 3 } });
  const capPaths = await filled(capped);
  for (const path of Object.values(capPaths)) {
    const { json, headers } = await capped.request<Page>('GET', path);
    t.equal(json.items.length, 3, path);
    t.type(json.nextCursor, 'string');
    t.match(headers.get('link'), /rel="next"/);
    t.equal(
      done(200, await capped.request<Page>('GET', `${path}?limit=5`)).items.length,
      5,
      'an explicit limit may ask for more',
    );
  }
});

t.test('GET /rooms/:roomId | its threads are a list: limit, cursor, Link, order and filters', async (t) => {
  interface RoomPage {
    readonly room: { readonly id: string; readonly threadCount: number };
    readonly threads: readonly { readonly id: string; readonly comments?: readonly unknown[] }[];
    readonly nextCursor?: string;
  }
  const small = await service.tenant('room-pages', { limits: { listHardCap: 4 } });
  await addUser(small, 'ann');
  const ids: string[] = [];
  for (let i = 0; i < 7; i++) {
    service.clock.advance(1);
    ids.unshift((await addThread(small, 'paged')).id);
  }
  const get = (search: string) => small.request<RoomPage>('GET', `/rooms/paged${search}`);
  const idsOf = ({ threads }: RoomPage): string[] => threads.map(({ id }) => id);

  const capped = await get('');
  t.strictSame(idsOf(capped.json), ids.slice(0, 4), 'no limit: up to listHardCap');
  t.match(capped.headers.get('link'), new RegExp(`/rooms/paged\\?cursor=${capped.json.nextCursor}>; rel="next"$`));
  const rest = await get(`?cursor=${capped.json.nextCursor}`);
  t.strictSame(idsOf(rest.json), ids.slice(4));
  t.notOk('nextCursor' in rest.json);
  t.equal(rest.headers.get('link'), null);
  t.match(rest.json.room, { id: 'paged', threadCount: 7 }, 'each page has the room');

  const first = await get('?include=comments&limit=2');
  t.strictSame(idsOf(first.json), ids.slice(0, 2));
  t.ok(first.json.threads.every(({ comments }) => comments?.length === 1));
  t.strictSame(idsOf((await get(`?include=comments&limit=2&cursor=${first.json.nextCursor}`)).json), ids.slice(2, 4));
  t.strictSame(idsOf((await get('?order=asc&limit=3')).json), [...ids].reverse().slice(0, 3));
  t.strictSame(idsOf((await get('?resolved=true')).json), []);
  for (const [search, error] of [
    ['?limit=0', 'limit must be an integer between 1 and 1000'],
    ['?cursor=x', 'Invalid cursor'],
    [`?order=asc&cursor=${capped.json.nextCursor}`, 'Invalid cursor'],
  ] as const) {
    t.match(await get(search), { status: 400, json: { error } }, search);
  }
});

t.test('filters', async (t) => {
  const world = await service.tenant('filters');
  const find = async <T = Thread>(path: string): Promise<T[]> =>
    done(200, await world.request<{ items: T[] }>('GET', path)).items;
  const time = () => new Date(service.clock.now()).toISOString();
  for (const user of ['ann', 'bob', 'eve']) await addUser(world, user, { name: `Mr ${user.toUpperCase()}` });
  const beginning = time();
  const one = await addThread(world, 'room', { userId: 'ann', mentions: ['eve'] });
  service.clock.advance(1000);
  const later = time();
  const two = await addThread(world, 'room', { userId: 'bob' });
  const reply = await addComment(world, two.id, { userId: 'ann', mentions: ['zoe'] });
  await world.request('PATCH', `/threads/${two.id}`, { body: { resolved: true } });
  service.clock.advance(1000);
  const end = time();

  const threads: [query: string, expected: readonly string[]][] = [
    ['resolved=true', [two.id]],
    ['resolved=false', [one.id]],
    ['userId=ann', [one.id]],
    ['userId=nobody', []],
    ['participantId=ann', [two.id, one.id]],
    ['participantId=bob', [two.id]],
    ['mentions=eve', [one.id]],
    ['mentions=zoe', [two.id]],
    [`createdSince=${later}`, [two.id]],
    [`createdSince=${beginning}`, [two.id, one.id]],
    [`createdSince=${end}`, []],
    [`updatedSince=${later}`, [two.id]],
    ['userId=ann&resolved=true', []],
    ['participantId=ann&mentions=zoe&resolved=true', [two.id]],
    [`createdSince=${encodeURIComponent(later.replace('Z', '+00:00'))}`, [two.id]],
    [`createdSince=${later.slice(0, 10)}`, [two.id, one.id]],
  ];
  for (const [query, expected] of threads)
    t.strictSame(
      (await find(`/rooms/room/threads?${query}`)).map(({ id }) => id),
      expected,
      `threads?${query}`,
    );

  const comments: [query: string, expected: readonly (string | undefined)[]][] = [
    ['userId=ann', [reply.id]],
    ['userId=bob', [two.comments[0]?.id]],
    ['mentions=zoe', [reply.id]],
    [`createdSince=${end}`, []],
    [`createdSince=${later}`, [two.comments[0]?.id, reply.id]],
    [`updatedSince=${end}`, []],
  ];
  for (const [query, expected] of comments)
    t.strictSame(
      (await find<Comment>(`/threads/${two.id}/comments?${query}`)).map(({ id }) => id),
      expected,
      `comments?${query}`,
    );
  await world.request('PATCH', `/comments/${reply.id}`, { body: { body: 'Edited' } });
  t.strictSame(
    (await find<Comment>(`/threads/${two.id}/comments?updatedSince=${end}`)).map(({ id }) => id),
    [reply.id],
    'updatedSince counts the edit',
  );
  t.strictSame(
    (await find(`/rooms/room/threads?updatedSince=${end}`)).map(({ id }) => id),
    [two.id],
    'of the thread too',
  );

  await addThread(world, 'room/sub', { userId: 'ann' });
  await addThread(world, 'other', { userId: 'ann' });
  const rooms: [query: string, expected: readonly string[]][] = [
    ['prefix=room', ['room', 'room/sub']],
    ['prefix=room%2F', ['room/sub']],
    ['prefix=zzz', []],
    [`updatedSince=${end}`, ['other', 'room', 'room/sub']],
  ];
  for (const [query, expected] of rooms)
    t.strictSame((await find(`/rooms?${query}`)).map(({ id }) => id).sort(), expected, `rooms?${query}`);
  service.clock.advance(1000);
  const past = time();
  t.strictSame(await find(`/rooms?updatedSince=${past}`), []);
  await addComment(world, one.id, { userId: 'ann' });
  t.strictSame(
    (await find(`/rooms?updatedSince=${past}`)).map(({ id }) => id),
    ['room'],
    'what happens in a room updates it',
  );

  await addUser(world, 'robot', { kind: 'bot', name: 'Ci' });
  service.clock.advance(1000);
  await (await world.join({ userId: 'eve' })).close();
  const users: [query: string, expected: readonly string[]][] = [
    ['q=AN', ['ann']],
    ['q=mr', ['ann', 'bob', 'eve']],
    ['q=.', []],
    ['kind=bot', ['robot']],
    ['kind=user', ['ann', 'bob', 'eve']],
    [`seenSince=${past}`, ['eve']],
    [`seenSince=${time()}&kind=user&q=e`, ['eve']],
  ];
  for (const [query, expected] of users)
    t.strictSame((await find(`/users?${query}`)).map(({ id }) => id).sort(), expected, `users?${query}`);
});

t.test('filters | a bad value of a known one is 400, naming it', async (t) => {
  const anyText = ['', 'x'.repeat(257)];
  const times = [
    '',
    'yesterday',
    '1700000000',
    '2026-02-30T00:00:00.000Z',
    '2026-01-01T25:00:00Z',
    '2026-01-01 00:00:00',
    '2026-01-01T00:00:00',
  ];
  const bad: Record<List, Record<string, readonly string[]>> = {
    threads: {
      resolved: ['', 'yes', '1', 'TRUE'],
      userId: anyText,
      participantId: anyText,
      mentions: anyText,
      createdSince: times,
      updatedSince: times,
    },
    comments: { userId: anyText, mentions: anyText, createdSince: times, updatedSince: times },
    rooms: { updatedSince: times, prefix: anyText },
    users: { q: anyText, seenSince: times, kind: ['', 'human', 'Bot'] },
  };
  for (const [list, path] of lists) {
    for (const [name, values] of Object.entries(bad[list])) {
      for (const value of values)
        await refused(t, `${path}?${name}=${encodeURIComponent(value)}`, new RegExp(`^${name} must be `));
    }
  }
});
