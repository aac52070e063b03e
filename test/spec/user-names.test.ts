import t from 'tap';
import { startService, type Tenant } from '../helpers/service.ts';
import { addComment, addThread, addUser, done } from '../helpers/writer.ts';

type Users = Record<string, { userId: string; name: string | null; avatarUrl: string | null; kind: string }>;
type WithUsers = { users?: Users };

const service = await startService(t);
const tenant = await service.tenant('names');
for (const [id, name] of [
  ['ann', 'Ann Lee'],
  ['bob', 'Bob Ray'],
  ['cat', 'Cat Anders'],
  ['dan', 'Dan Secret'],
])
  await addUser(tenant, id ?? '', { name, email: `${id}@example.com` });
const thread = await addThread(tenant, 'docs/one', { userId: 'ann', body: 'hello', mentions: ['bob', 'nobody'] });
const comment = await addComment(tenant, thread.id, { userId: 'bob', body: 'reply' });
await tenant.request('POST', `/comments/${comment.id}/reactions`, { body: { userId: 'cat', emoji: '👍' } });
await addThread(tenant, 'private', { userId: 'dan', body: 'not for all' });

const get = async <T>(path: string): Promise<T> => done(200, await tenant.request<T>('GET', path));
const asUser = async (path: string, rooms?: string[], of: Tenant = tenant) =>
  of.request<{ users: Users; error: string }>('GET', path, {
    key: null,
    headers: await of.userHeaders({ userId: 'eve', rooms }),
  });

t.test('include=users | adds names and pictures of authors, mentioned users and those who reacted', async (t) => {
  const ann = { userId: 'ann', name: 'Ann Lee', avatarUrl: null, kind: 'user' };
  for (const path of [
    `/threads/${thread.id}?include=users`,
    '/rooms/docs%2Fone?include=comments,users',
    `/threads/${thread.id}/comments?include=users`,
  ]) {
    const { users = {} } = await get<WithUsers>(path);
    t.strictSame(users['ann'], ann, path);
    t.strictSame(
      Object.keys(users).toSorted(),
      ['ann', 'bob', 'cat'],
      'unknown users are absent, and no address is shown',
    );
  }
  t.strictSame(
    Object.keys((await get<WithUsers>('/rooms/docs%2Fone/threads?include=users')).users ?? {}),
    ['ann'],
    'a list of threads names their authors',
  );
  t.strictSame(Object.keys((await get<WithUsers>(`/comments/${comment.id}?include=users`)).users ?? {}).toSorted(), [
    'bob',
    'cat',
  ]);
  t.notOk('users' in (await get<WithUsers>(`/threads/${thread.id}`)), 'only who asks gets them');
  for (const path of [`/threads/${thread.id}`, '/rooms/docs%2Fone', `/comments/${comment.id}`]) {
    t.match(await tenant.request('GET', `${path}?include=nmaes`), { status: 400, json: { error: /^include must be/ } });
  }
});

t.test('include=users | follows a change of a name, also in a list that was cached', async (t) => {
  const name = async () => (await get<WithUsers>('/rooms/docs%2Fone?include=comments,users')).users?.['bob']?.name;
  t.equal(await name(), 'Bob Ray');
  await addUser(tenant, 'bob', { name: 'Bobby' });
  t.equal(await name(), 'Bobby');
  await addUser(tenant, 'bob', { name: 'Bob Ray' });
});

t.test('GET /comments/:commentId | one comment, in the rooms of the key', async (t) => {
  t.match(await get(`/comments/${comment.id}`), {
    comment: { id: comment.id, threadId: thread.id, body: 'reply', reactions: [{ emoji: '👍' }] },
  });
  t.match(await tenant.request('GET', '/comments/cm_unknown'), { status: 404, json: { error: 'Comment not found' } });
  const { value: key } = await tenant.newKey({ rooms: 'private' });
  t.equal((await tenant.request('GET', `/comments/${comment.id}`, { key })).status, 403);
});

t.test('user-lookup | by id: name, picture and kind, for backends and browsers', async (t) => {
  const path = '/user-lookup?id=ann&id=dan&id=nobody';
  const expected = {
    ann: { userId: 'ann', name: 'Ann Lee', avatarUrl: null, kind: 'user' },
    dan: { userId: 'dan', name: 'Dan Secret', avatarUrl: null, kind: 'user' },
  };
  t.strictSame((await get<WithUsers>(path)).users, expected);
  t.strictSame((await asUser(path)).json.users, expected);
  t.strictSame((await asUser(path, ['docs/*'])).json.users, expected, 'as user.updated tells every browser');
  const tooMany = Array.from({ length: 101 }, (_, n) => `id=u${n}`).join('&');
  t.match(await tenant.request('GET', `/user-lookup?${tooMany}`), {
    status: 400,
    json: { error: 'ids must hold at most 100 user ids' },
  });
  t.equal((await tenant.request('GET', path, { key: null })).status, 401);
});

t.test('user-lookup | a search finds names, words of names and ids that begin with the text', async (t) => {
  t.strictSame(
    Object.keys((await asUser('/user-lookup?q=an')).json.users),
    ['ann', 'cat'],
    'first the names that begin with it',
  );
  t.strictSame(Object.keys((await asUser('/user-lookup?q=DAN')).json.users), ['dan']);
  t.strictSame(Object.keys((await asUser('/user-lookup?q=an&limit=1')).json.users), ['ann']);
  t.strictSame(
    Object.keys((await asUser('/user-lookup?q=&limit=2')).json.users),
    ['ann', 'bob'],
    'an empty text finds all, in order of names',
  );
  t.match(await asUser(`/user-lookup?q=${'x'.repeat(257)}`), {
    status: 400,
    json: { error: /^q must be at most 256 characters/ },
  });
  for (const bad of ['limit=0', 'limit=101', 'limit=x'])
    t.match(await asUser(`/user-lookup?q=a&${bad}`), { status: 400, json: { error: /^limit must/ } });
  t.match(await asUser('/user-lookup?q=a&id=ann'), { status: 400 });
});

t.test('user-lookup | a search ignores accents and forms of Unicode, and finds parts of double names', async (t) => {
  const found = await service.tenant('accents');
  const names = {
    emile: 'Émile Durkheim'.normalize('NFC'),
    ibo: 'İbrahim',
    luc: 'Jean-Luc',
    nfd: 'Zoë'.normalize('NFD'),
    obrien: 'Pat O’Brien',
  };
  for (const [id, name] of Object.entries(names)) await addUser(found, `u-${id}`, { name });
  const room = await addThread(found, 'docs', { userId: 'u-ibo' });
  const idsOf = async (q: string, more = '') =>
    Object.keys((await asUser(`/user-lookup?q=${encodeURIComponent(q)}${more}`, undefined, found)).json.users);
  for (const q of ['ibr', 'IBR', 'ıbr', 'İbr']) t.strictSame(await idsOf(q), ['u-ibo'], q);
  for (const q of ['emile', 'Émi'.normalize('NFD'), 'Émi'.normalize('NFC')])
    t.strictSame(await idsOf(q), ['u-emile'], q);
  for (const q of ['Zoë'.normalize('NFC'), 'zoe']) t.strictSame(await idsOf(q), ['u-nfd'], q);
  t.strictSame(await idsOf('luc'), ['u-luc']);
  for (const q of ['brien', "o'b", 'O’B']) t.strictSame(await idsOf(q), ['u-obrien'], q);
  t.strictSame(await idsOf('rahim'), [], 'not within a word');
  t.strictSame(await idsOf('ibr', `&roomId=${room.roomId}`), ['u-ibo'], 'in a room too');
});

t.test('user-lookup | a confined token searches one of its rooms, and finds who is in it', async (t) => {
  for (const text of ['', 'an'])
    t.match(await asUser(`/user-lookup?q=${text}`, ['docs/*']), {
      status: 403,
      json: { error: /name one of them with roomId/ },
    });
  t.equal((await asUser('/user-lookup?q=an&roomId=private', ['docs/*'])).status, 403);
  t.strictSame(Object.keys((await asUser('/user-lookup?q=a&roomId=docs/one', ['docs/*'])).json.users), ['ann']);
  t.strictSame(
    Object.keys((await asUser('/user-lookup?q=dan&roomId=docs/one', ['docs/*'])).json.users),
    [],
    'of another room',
  );
  t.strictSame(
    Object.keys((await asUser('/user-lookup?q=b&roomId=docs/one')).json.users),
    ['bob'],
    'anybody may narrow a search so',
  );
  const longest = 'r'.repeat(512);
  await addThread(tenant, longest, { userId: 'bob', body: 'hello' });
  t.strictSame(
    Object.keys((await asUser(`/user-lookup?q=b&roomId=${longest}`)).json.users),
    ['bob'],
    'a room id may have 512 characters',
  );
  t.match(await asUser(`/user-lookup?q=b&roomId=${longest}r`), {
    status: 400,
    json: { error: 'roomId must be 1 to 512 characters' },
  });
});

t.test('user-lookup | does not show an erased user, or one of another environment', async (t) => {
  await addUser(tenant, 'gone', { name: 'Gone Soon' });
  t.strictSame(
    Object.keys((await asUser('/user-lookup?q=gone')).json.users).length,
    0,
    'a search may be some seconds old',
  );
  service.clock.advance(5_000);
  t.strictSame(Object.keys((await asUser('/user-lookup?q=gone')).json.users), ['gone']);
  await tenant.request('DELETE', '/users/gone');
  t.strictSame((await asUser('/user-lookup?q=gone')).json.users, {}, 'but an erasure counts at once');
  t.strictSame((await asUser('/user-lookup?id=gone')).json.users, {});
  const other = await service.tenant('other');
  t.strictSame((await asUser('/user-lookup?id=ann', undefined, other)).json.users, {});
});

t.test('over WebSocket the same', async (t) => {
  const socket = await tenant.join({ userId: 'eve', rooms: ['docs/*'] });
  const reply = await socket.request('room.get', { roomId: 'docs/one', includeComments: true, includeUsers: true });
  t.match(reply, { type: 'ok', data: { users: { ann: { name: 'Ann Lee' }, bob: {}, cat: {} } } });
  t.match(await socket.request('thread.get', { threadId: thread.id, includeUsers: true }), {
    type: 'ok',
    data: { users: { ann: { name: 'Ann Lee' } } },
  });
  t.match(await socket.request('users.lookup', { ids: ['ann'] }), {
    type: 'ok',
    data: { users: { ann: { name: 'Ann Lee' } } },
  });
  t.match(await socket.request('users.lookup', { q: 'a' }), { type: 'error', error: { code: 'forbidden' } });
  t.match(await socket.request('users.lookup', { q: 'a', roomId: 'docs/one' }), {
    type: 'ok',
    data: { users: { ann: {} } },
  });
  t.match(await socket.request('users.lookup', { q: 'a', roomId: 'private' }), {
    type: 'error',
    error: { code: 'forbidden' },
  });
});
