import t, { type Test } from 'tap';
import * as Y from 'yjs';
import type { Comment } from '../../src/model/comment.ts';
import type { Reaction } from '../../src/model/reaction.ts';
import type { Room } from '../../src/model/room.ts';
import type { Thread } from '../../src/model/thread.ts';
import type { User } from '../../src/model/user.ts';
import { turnPassword } from '../../src/domain/access/turn-credentials.ts';
import { startService, type Tenant } from '../helpers/service.ts';
import { addComment, addThread, addUser, done, type Failure } from '../helpers/writer.ts';

// The endpoints that no other file here is about. Presence has a file of its own.

const turn = {
  urls: ['turn:127.0.0.1:3478?transport=udp', 'turn:127.0.0.1:3478?transport=tcp'],
  stun: 'stun:127.0.0.1:3478',
  secret: 'north',
};
const service = await startService(t, {
  workers: 2,
  flags: { 'turn.urls': turn.urls.join(','), 'turn.stunUrls': turn.stun, 'turn.secret': `${turn.secret},old` },
});
const STATE = '/rooms/board/p2p/state';
const BYTES = 'application/octet-stream';

async function tenantOf(slug: string, settings?: Parameters<typeof service.tenant>[1]): Promise<Tenant> {
  const tenant = await service.tenant(slug, settings);
  await addUser(tenant, 'ann');
  return tenant;
}

/** Asks for bytes, or sends them; with the secret key unless the headers say who asks. */
function raw(
  tenant: Tenant,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: Uint8Array,
  worker = 0,
): Promise<Response> {
  const all = new Headers(body === undefined ? {} : { 'Content-Type': BYTES });
  if (!('X-Service-Key' in headers)) all.set('Authorization', `Bearer ${tenant.secretKey}`);
  for (const [name, value] of Object.entries(headers)) all.set(name, value);
  return fetch(`${service.urls[worker]}/api/v1${path}`, { method, headers: all, body });
}

async function refusedWith(
  t: Test,
  answer: Promise<Response>,
  status: number,
  code: string,
  error?: string,
): Promise<void> {
  const response = await answer;
  const json = (await response.json()) as Failure;
  t.strictSame([response.status, response.headers.get('x-error-code')], [status, code], json.error);
  if (error !== undefined) t.match(json.error, error);
}

t.test('GET /rooms | list all rooms', async (t) => {
  const tenant = await tenantOf('rooms');
  await addThread(tenant, 'first');
  service.clock.advance(1000);
  await addThread(tenant, 'second/ö');
  const { items } = done(200, await tenant.request<{ items: Room[] }>('GET', '/rooms', { worker: 1 }));
  t.strictSame(
    items.map(({ id, roomId }) => [id, roomId]),
    [
      ['second/ö', 'second/ö'],
      ['first', 'first'],
    ],
  );
  t.strictSame(Object.keys(items[0] ?? {}), [
    'id',
    'roomId',
    'threadCount',
    'openThreadCount',
    'metadata',
    'createdAt',
    'updatedAt',
    'lastActivityAt',
  ]);
});

t.test('GET /rooms/:roomId | get a room with its threads', async (t) => {
  const tenant = await tenantOf('room');
  const thread = await addThread(tenant, 'page');
  const { room, threads } = done(200, await tenant.request<{ room: Room; threads: Thread[] }>('GET', '/rooms/page'));
  t.match(room, { id: 'page', threadCount: 1, openThreadCount: 1, metadata: {} });
  t.strictSame(
    threads.map(({ id }) => id),
    [thread.id],
  );
  const withComments = done(
    200,
    await tenant.request<{ threads: { comments: Comment[] }[] }>('GET', '/rooms/page?include=comments'),
  );
  t.strictSame(
    withComments.threads[0]?.comments.map(({ body }) => body),
    ['Hello'],
  );
});

t.test('PATCH and DELETE /rooms/:roomId | additive: metadata; the room with all that is in it', async (t) => {
  const tenant = await tenantOf('room-changes');
  const thread = await addThread(tenant, 'page');
  const browser = await tenant.join({ userId: 'bob' }, { worker: 1 });
  t.match(done(200, await tenant.request('PATCH', '/rooms/page', { body: { metadata: { site: 'docs' } } })), {
    room: { id: 'page', metadata: { site: 'docs' } },
  });
  t.match(done(200, await tenant.request('GET', '/rooms?metadata.site=docs', { worker: 1 })), {
    items: [{ id: 'page' }],
  });
  t.strictSame(done(200, await tenant.request('DELETE', '/rooms/page')), { deleted: true });
  t.strictSame((await browser.frame('thread.deleted')).data, { threadId: thread.id });
  t.match(done(200, await tenant.request('GET', '/rooms/page', { worker: 1 })), {
    room: { metadata: {}, createdAt: null },
    threads: [],
  });
  t.equal((await tenant.request('GET', `/threads/${thread.id}`, { worker: 1 })).status, 404);
  t.strictSame(done(200, await tenant.request('GET', '/rooms/page/threads', { worker: 1 })), { items: [] });
  t.strictSame((await tenant.request<Failure>('DELETE', '/rooms/page')).json, { error: 'Room not found' });
});

t.test('POST /comments/:commentId/reactions | add a reaction', async (t) => {
  const tenant = await tenantOf('reactions');
  const thread = await addThread(tenant, 'page');
  const comment = await addComment(tenant, thread.id);
  const browser = await tenant.join({ userId: 'bob' }, { worker: 1 });
  const path = `/comments/${comment.id}/reactions`;
  const { reaction } = done(
    201,
    await tenant.request<{ reaction: Reaction }>('POST', path, { body: { userId: 'ann', emoji: '👍' } }),
  );
  t.strictSame(Object.keys(reaction), ['id', 'reactionId', 'commentId', 'threadId', 'userId', 'emoji', 'createdAt']);
  t.match(reaction, {
    reactionId: reaction.id,
    commentId: comment.id,
    threadId: thread.id,
    userId: 'ann',
    emoji: '👍',
  });
  t.strictSame((await browser.frame('reaction.created')).data, reaction);
  t.strictSame(
    done(200, await tenant.request('POST', path, { body: { userId: 'ann', emoji: '👍' }, worker: 1 })),
    { reaction },
    'the same again is 200',
  );
  for (const read of [`/threads/${thread.id}/comments`, `/threads/${thread.id}`, '/rooms/page?include=comments']) {
    t.ok(
      (await tenant.request('GET', read, { worker: 1 })).text.includes(`"reactions":[${JSON.stringify(reaction)}]`),
      read,
    );
  }
  t.match(done(200, await tenant.request('PATCH', `/comments/${comment.id}`, { body: { body: 'edited' } })), {
    comment: { reactions: [reaction] },
  });
  const once = { body: { userId: 'ann', emoji: ':ship:' }, headers: { 'Idempotency-Key': 'k1' } };
  const first = await tenant.request('POST', path, once);
  const again = await tenant.request('POST', path, { ...once, worker: 1 });
  t.strictSame([again.status, again.text, again.headers.get('idempotent-replayed')], [201, first.text, 'true']);

  const cases: [body: unknown, at: string, status: number, error: RegExp][] = [
    [{ userId: 'ann' }, path, 400, /^emoji is required$/],
    [{ emoji: '👍' }, path, 400, /^userId is required$/],
    [{ userId: 'ann', emoji: 'nice' }, path, 400, /^emoji must be one emoji or a :shortcode:/],
    [{ userId: 'ann', emoji: 7 }, path, 400, /^emoji must be a string(?:, not .+)?$/],
    [{ userId: 'zoe', emoji: '👍' }, path, 400, /^Unknown user: zoe\. /],
    [{ userId: 'ann', emoji: '👍' }, '/comments/cm_unknown/reactions', 404, /^Comment not found$/],
  ];
  for (const [body, at, status, error] of cases) {
    const answer = await tenant.request<Failure>('POST', at, { body });
    t.equal(answer.status, status, answer.text);
    t.match(answer.json.error, error);
  }
});

t.test('DELETE /reactions/:reactionId | remove a reaction', async (t) => {
  const tenant = await tenantOf('unreact');
  const thread = await addThread(tenant, 'page');
  const commentId = thread.comments[0]?.id ?? '';
  const browser = await tenant.join({ userId: 'bob' }, { worker: 1 });
  const { reaction } = done(
    201,
    await tenant.request<{ reaction: Reaction }>('POST', `/comments/${commentId}/reactions`, {
      body: { userId: 'ann', emoji: '👍' },
    }),
  );
  t.strictSame(done(200, await tenant.request('DELETE', `/reactions/${reaction.id}`, { worker: 1 })), {
    deleted: true,
  });
  t.match((await browser.frame('reaction.deleted')).data, { reactionId: reaction.id, commentId, threadId: thread.id });
  const missing = await tenant.request<Failure>('DELETE', `/reactions/${reaction.id}`);
  t.strictSame(
    [missing.status, missing.json, missing.headers.get('x-error-code')],
    [404, { error: 'Reaction not found' }, 'reaction_not_found'],
  );
  t.match(done(200, await tenant.request('GET', `/threads/${thread.id}/comments`)), { items: [{ reactions: [] }] });
});

t.test('GET /users | list users, and what is known of each', async (t) => {
  const tenant = await tenantOf('users');
  await addUser(tenant, 'ci', { name: 'CI', kind: 'bot', email: 'ci@example.com', metadata: { team: 'infra' } });
  const socket = await tenant.join({ userId: 'bob', name: 'Bob' });
  const { items } = done(200, await tenant.request<{ items: User[] }>('GET', '/users', { worker: 1 }));
  const by = new Map(items.map((user) => [user.id, user]));
  const fields = [
    'id',
    'userId',
    'name',
    'avatarUrl',
    'email',
    'kind',
    'metadata',
    'createdAt',
    'updatedAt',
    'firstSeenAt',
    'lastSeenAt',
    'online',
  ];
  t.strictSame(Object.keys(by.get('ci') ?? {}), fields);
  t.match(by.get('ci'), {
    userId: 'ci',
    name: 'CI',
    kind: 'bot',
    email: 'ci@example.com',
    metadata: { team: 'infra' },
    lastSeenAt: null,
    online: false,
  });
  t.match(by.get('bob'), { name: 'Bob', kind: 'user', firstSeenAt: String, lastSeenAt: String, online: true });
  t.match(done(200, await tenant.request('GET', '/users?kind=bot')), { items: [{ id: 'ci' }] });
  await socket.close();
  const isOffline = async () =>
    (await tenant.request<{ user: { online: boolean } }>('GET', '/users/bob')).json.user.online === false;
  while (!(await isOffline())) await new Promise(setImmediate);

  t.strictSame(done(200, await tenant.request('DELETE', '/users/bob')), { deleted: true });
  t.equal((await tenant.request('GET', '/users/bob', { worker: 1 })).status, 404);
  t.strictSame((await tenant.request<Failure>('DELETE', '/users/bob')).json, { error: 'User not found' });
  const token = { body: { ttl: 600 }, headers: { 'Idempotency-Key': 't1' } };
  const first = await tenant.request('POST', '/users/carl/tokens', token);
  service.clock.advance(5000);
  t.equal(
    (await tenant.request('POST', '/users/carl/tokens', { ...token, worker: 1 })).text,
    first.text,
    'Idempotency-Key gives the same token',
  );
  t.not((await tenant.request('POST', '/users/carl/tokens', { body: { ttl: 600 } })).text, first.text);
});

t.test('GET /rooms/:roomId/p2p/state | fetch persisted CRDT state', async (t) => {
  const tenant = await tenantOf('state-get');
  const fresh = await tenant.request<object>('GET', STATE);
  t.strictSame(done(200, fresh), {
    roomId: 'board',
    state: null,
    version: 0,
    sizeBytes: 0,
    contentType: BYTES,
    updatedAt: null,
    updatedBy: null,
  });
  t.equal(fresh.headers.get('cache-control'), 'private, no-cache');
  const empty = await raw(tenant, 'GET', STATE, { Accept: BYTES });
  t.strictSame(
    [empty.status, (await empty.arrayBuffer()).byteLength, empty.headers.get('content-length')],
    [204, 0, null],
  );

  const bytes = Uint8Array.from({ length: 300_000 }, (_, i) => i % 251);
  t.equal((await raw(tenant, 'PUT', STATE, {}, bytes)).status, 200);
  const json = await tenant.request<{ state: string; updatedAt: string }>('GET', STATE, { worker: 1 });
  t.match(done(200, json), {
    roomId: 'board',
    version: 1,
    sizeBytes: 300_000,
    contentType: BYTES,
    updatedAt: String,
    updatedBy: null,
  });
  t.ok(Buffer.from(json.json.state, 'base64').equals(bytes));
  const etag = json.headers.get('etag') ?? '';
  t.match(etag, /^"1-[0-9a-f]{16}"$/);
  const whole = await raw(tenant, 'GET', STATE, { Accept: BYTES }, undefined, 1);
  t.strictSame(
    [whole.status, whole.headers.get('content-type'), whole.headers.get('etag'), whole.headers.get('cache-control')],
    [200, BYTES, etag, 'private, no-cache'],
  );
  t.ok(Buffer.from(await whole.arrayBuffer()).equals(bytes));
  for (const tag of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
    const kept = await raw(tenant, 'GET', STATE, { 'If-None-Match': tag });
    t.strictSame([kept.status, await kept.text(), kept.headers.get('etag')], [304, '', etag], tag);
  }
  t.equal((await raw(tenant, 'GET', STATE, { 'If-None-Match': '"0-e3b0c44298fc1c14"' })).status, 200);
  const head = await raw(tenant, 'HEAD', STATE, { Accept: BYTES });
  t.strictSame([head.status, head.headers.get('content-length'), head.headers.get('etag')], [200, '300000', etag]);
  t.equal((await raw(tenant, 'GET', STATE)).status, 200, 'the connection is still good');
});

t.test('PUT /rooms/:roomId/p2p/state | upsert a CRDT snapshot', async (t) => {
  const tenant = await tenantOf('state-put');
  const browser = await tenant.join({ userId: 'bob' }, { worker: 1 });
  const put = await tenant.request<{ updatedAt: string }>('PUT', STATE, { body: { state: 'AAEC/w==' } });
  t.strictSame(done(200, put), { roomId: 'board', version: 1, sizeBytes: 4, updatedAt: put.json.updatedAt });
  t.strictSame((await browser.frame('p2p.state.updated')).data, {
    roomId: 'board',
    version: 1,
    sizeBytes: 4,
    updatedAt: put.json.updatedAt,
    updatedBy: null,
  });
  t.match(done(200, await tenant.request('GET', '/rooms/board')), { room: { id: 'board', threadCount: 0 } });
  t.match(done(200, await tenant.request('PUT', STATE, { body: { state: 'eA==' }, worker: 1 })), {
    version: 2,
    sizeBytes: 1,
  });
  t.equal(await (await raw(tenant, 'GET', STATE, { Accept: BYTES })).text(), 'x');

  const etag = (await tenant.request('GET', STATE)).headers.get('etag') ?? '';
  const bytes = Buffer.from('y');
  for (const [name, value] of [
    ['If-Match', '"9-x"'],
    ['If-Match', `W/${etag}`],
    ['If-None-Match', '*'],
    ['If-None-Match', etag],
  ] as const) {
    await refusedWith(t, raw(tenant, 'PUT', STATE, { [name]: value }, bytes), 412, 'precondition_failed');
  }
  await refusedWith(
    t,
    raw(tenant, 'PUT', '/rooms/none/p2p/state', { 'If-Match': '*' }, bytes),
    412,
    'precondition_failed',
  );
  t.equal((await raw(tenant, 'PUT', '/rooms/none/p2p/state', { 'If-None-Match': '*' }, bytes)).status, 200);
  t.equal((await raw(tenant, 'PUT', STATE, { 'If-Match': `"z", ${etag}` }, bytes)).status, 200);
  await refusedWith(t, raw(tenant, 'PUT', STATE, { 'If-Match': etag }, bytes), 412, 'precondition_failed');

  await refusedWith(
    t,
    raw(tenant, 'PUT', STATE, {}, new Uint8Array()),
    400,
    'invalid_request',
    'The state must not be empty',
  );
  await refusedWith(
    t,
    raw(tenant, 'PUT', STATE, { 'Content-Type': 'text/plain' }, bytes),
    400,
    'invalid_content_type',
    'Content-Type must be application/octet-stream or application/json',
  );
  await refusedWith(
    t,
    raw(tenant, 'PUT', `${STATE}?merge=automerge`, {}, bytes),
    400,
    'invalid_request',
    'merge must be yjs',
  );
  const cases: [body: unknown, error: RegExp][] = [
    [{}, /^state is required$/],
    [{ state: '' }, /^The state must not be empty$/],
    [{ state: 5 }, /^state must be a string(?:, not .+)?$/],
    [{ state: 'AA=A' }, /^state must be base64(?:, not .+)?$/],
    [{ state: 'AAA' }, /^state must be base64(?:, not .+)?$/],
    [{ state: 'A_-A' }, /^state must be base64(?:, not .+)?$/],
    [[], /JSON object/],
    ['{', /not valid JSON/],
  ];
  for (const [body, error] of cases) {
    const answer = await tenant.request<Failure>('PUT', STATE, { body });
    t.equal(answer.status, 400, answer.text);
    t.match(answer.json.error, error);
  }
  t.match(
    done(200, await tenant.request('GET', STATE)),
    { version: 3, sizeBytes: 1 },
    'nothing that was refused is stored',
  );
});

t.test('PUT of a large state | up to maxP2pStateMb of the environment, 413 beyond', async (t) => {
  const tenant = await tenantOf('state-size');
  const most = Buffer.alloc(10 * 1024 * 1024, 7);
  const varied = Uint8Array.from({ length: 2_000_000 }, (_, i) => (i * 2_654_435_761) >>> 24);
  t.match(await (await raw(tenant, 'PUT', STATE, {}, most)).json(), { sizeBytes: most.length });
  t.match(done(200, await tenant.request('PUT', STATE, { body: { state: most.toString('base64') } })), {
    sizeBytes: most.length,
  });
  t.match(
    done(
      200,
      await tenant.request('PUT', STATE, {
        body: `{"state":"${Buffer.from(varied).toString('base64').replaceAll('/', '\\/')}"}`,
      }),
    ),
    { version: 3 },
    'as PHP writes it',
  );
  t.equal(
    (await (await raw(tenant, 'GET', STATE, { Accept: BYTES }, undefined, 1)).arrayBuffer()).byteLength,
    2_000_000,
  );
  const refusal = ['payload_too_large', 'State too large (max 10MB)'] as const;
  for (const size of [most.length + 1, most.length + 2000])
    await refusedWith(t, raw(tenant, 'PUT', STATE, {}, Buffer.alloc(size)), 413, ...refusal);
  const tooMuch = await tenant.request<Failure>('PUT', STATE, {
    body: { state: Buffer.alloc(most.length + 1).toString('base64') },
  });
  t.strictSame([tooMuch.status, tooMuch.json], [413, { error: refusal[1] }]);
  const large = await tenantOf('state-large', { maxP2pStateMb: 11 });
  const eleven = Buffer.alloc(11 * 1024 * 1024, 7);
  t.match(await (await raw(large, 'PUT', STATE, {}, eleven)).json(), { sizeBytes: eleven.length });
  t.ok(
    Buffer.from(await (await raw(large, 'GET', STATE, { Accept: BYTES }, undefined, 1)).arrayBuffer()).equals(eleven),
  );
  t.equal(done(200, await large.request<{ state: string }>('GET', STATE)).state, eleven.toString('base64'));
  await refusedWith(
    t,
    raw(large, 'PUT', STATE, {}, Buffer.alloc(eleven.length + 1)),
    413,
    'payload_too_large',
    'State too large (max 11MB)',
  );
  const small = await tenantOf('state-small', { maxP2pStateMb: 1 });
  await refusedWith(
    t,
    raw(small, 'PUT', STATE, {}, Buffer.alloc(1024 * 1024 + 1)),
    413,
    'payload_too_large',
    'State too large (max 1MB)',
  );
  await refusedWith(
    t,
    raw(
      small,
      'PUT',
      STATE,
      { 'X-Service-Key': small.publishableKey, 'X-Service-Token': 'none' },
      Buffer.alloc(300_000),
    ),
    401,
    'invalid_token',
  );
  t.equal((await small.request('GET', STATE)).status, 200);
});

t.test('DELETE /rooms/:roomId/p2p/state | clear the P2P state of a room', async (t) => {
  const tenant = await tenantOf('state-clear');
  const browser = await tenant.join({ userId: 'bob' }, { worker: 1 });
  t.strictSame(done(200, await tenant.request('DELETE', STATE)), { deleted: true }, 'even if empty');
  await raw(tenant, 'PUT', STATE, {}, Buffer.from('x'));
  t.strictSame(done(200, await tenant.request('DELETE', STATE, { worker: 1 })), { deleted: true });
  t.match((await browser.frame('p2p.state.cleared')).data, { roomId: 'board', version: 2, sizeBytes: 0 });
  t.match(done(200, await tenant.request('GET', STATE)), { state: null, sizeBytes: 0, updatedAt: null });
});

t.test('P2P state | GET and PUT accept the secret key or JWT auth, DELETE the secret key only', async (t) => {
  const tenant = await tenantOf('state-auth');
  const user = await tenant.userHeaders({ userId: 'carl', name: 'Carl' });
  t.equal((await raw(tenant, 'PUT', STATE, user, Buffer.from('x'))).status, 200);
  t.match(await (await raw(tenant, 'GET', STATE, user, undefined, 1)).json(), { updatedBy: 'carl' });
  await refusedWith(t, raw(tenant, 'DELETE', STATE, user), 401, 'missing_credentials');
  t.match(
    done(200, await tenant.request('GET', '/users/carl')),
    { user: { name: 'Carl', lastSeenAt: String } },
    'who shows a token is known',
  );
  t.equal((await raw(tenant, 'GET', STATE, { ...user, Authorization: `Bearer ${tenant.secretKey}` })).status, 200);
  await refusedWith(t, raw(tenant, 'GET', STATE, { ...user, Authorization: 'Bearer sk_wrong' }), 401, 'invalid_key');
  const [key, token] = [user['X-Service-Key'] ?? '', user['X-Service-Token'] ?? ''];
  const other = await tenantOf('state-auth-other');
  const refusals: [headers: Record<string, string>, code: string][] = [
    [{ 'X-Service-Key': key }, 'missing_credentials'],
    [{ 'X-Service-Key': '', 'X-Service-Token': token }, 'missing_credentials'],
    [{ 'X-Service-Key': 'pk_wrong', 'X-Service-Token': token }, 'invalid_key'],
    [{ 'X-Service-Key': tenant.secretKey, 'X-Service-Token': token }, 'invalid_key'],
    [{ 'X-Service-Key': key, 'X-Service-Token': `${token}x` }, 'invalid_token'],
    [{ 'X-Service-Key': other.publishableKey, 'X-Service-Token': token }, 'invalid_token'],
  ];
  for (const [headers, code] of refusals)
    for (const method of ['GET', 'PUT'])
      await refusedWith(
        t,
        raw(tenant, method, STATE, headers, method === 'PUT' ? Buffer.from('x') : undefined),
        401,
        code,
      );
  await refusedWith(t, fetch(`${service.urls[0]}/api/v1${STATE}`), 401, 'missing_credentials');

  const viewer = await tenant.userHeaders({ userId: 'vera', role: 'viewer' });
  t.equal((await raw(tenant, 'GET', STATE, viewer)).status, 200);
  await refusedWith(t, raw(tenant, 'PUT', STATE, viewer, Buffer.from('x')), 403, 'forbidden');
  const confined = await tenant.userHeaders({ userId: 'cora', rooms: ['docs/*'] });
  await refusedWith(t, raw(tenant, 'GET', STATE, confined), 403, 'forbidden');
  await refusedWith(t, raw(tenant, 'PUT', STATE, confined, Buffer.from('x')), 403, 'forbidden');
  t.equal((await raw(tenant, 'PUT', '/rooms/docs%2Fa/p2p/state', confined, Buffer.from('x'))).status, 200);
});

t.test('P2P state | two Yjs documents converge through the server while both write', async (t) => {
  const tenant = await tenantOf('converge');
  const write = async (userId: string, document: Y.Doc, worker: number): Promise<void> => {
    const headers = await tenant.userHeaders({ userId });
    const text = document.getText('text');
    for (let i = 0; i < 20; i++) {
      text.insert(i % 2 === 0 ? text.length : 0, `[${userId}${i}]`);
      const update = Y.encodeStateAsUpdate(document);
      t.equal((await raw(tenant, 'PUT', `${STATE}?merge=yjs`, headers, update, worker)).status, 200);
      const vector = Buffer.from(Y.encodeStateVector(document)).toString('base64url');
      const diff = await raw(
        tenant,
        'GET',
        `${STATE}?sv=${vector}`,
        { ...headers, Accept: BYTES },
        undefined,
        1 - worker,
      );
      Y.applyUpdate(document, new Uint8Array(await diff.arrayBuffer()));
    }
  };
  const [one, two] = [new Y.Doc(), new Y.Doc()];
  await Promise.all([write('ann', one, 0), write('bob', two, 1)]);
  for (const document of [one, two])
    Y.applyUpdate(document, new Uint8Array(await (await raw(tenant, 'GET', STATE, { Accept: BYTES })).arrayBuffer()));
  const text = one.getText('text').toJSON();
  t.equal(two.getText('text').toJSON(), text);
  for (const userId of ['ann', 'bob'])
    for (let i = 0; i < 20; i++) t.ok(text.includes(`[${userId}${i}]`), `${userId} ${i}`);
  await refusedWith(
    t,
    raw(tenant, 'PUT', `${STATE}?merge=yjs`, {}, Buffer.from('garbage')),
    400,
    'invalid_request',
    'The state must be a Yjs update (encoding 1)',
  );
  await refusedWith(
    t,
    raw(tenant, 'GET', `${STATE}?sv=CQk`),
    400,
    'invalid_request',
    'sv must be a Yjs state vector as base64url',
  );
  await refusedWith(t, raw(tenant, 'GET', `${STATE}?sv=`), 400, 'invalid_request');

  const byDefault = await tenantOf('converge-by-default', { crdt: 'yjs' });
  for (const document of [new Y.Doc(), new Y.Doc()]) {
    document.getArray('items').push(['x']);
    const update = Y.encodeStateAsUpdate(document);
    const first = (await (await raw(byDefault, 'PUT', STATE, {}, update)).json()) as { changed: boolean };
    t.match(first, { changed: true });
    const again = await (await raw(byDefault, 'PUT', STATE, {}, update)).json();
    t.strictSame(again, { ...first, changed: false }, 'a merge says whether it added something');
  }
  const merged = new Y.Doc();
  Y.applyUpdate(merged, new Uint8Array(await (await raw(byDefault, 'GET', STATE, { Accept: BYTES })).arrayBuffer()));
  t.equal(merged.getArray('items').length, 2, 'the environment may say that states are Yjs documents');
});

t.test('GET /turn-credentials | mint time-limited TURN credentials, for the secret key or JWT auth', async (t) => {
  const tenant = await tenantOf('turn');
  const now = Math.floor(service.clock.now() / 1000);
  const answer = await tenant.request('GET', '/turn-credentials');
  const username = `${now + 3600}:${tenant.environment.id}.backend`;
  const password = turnPassword(turn.secret, username);
  t.strictSame(done(200, answer), {
    iceServers: [{ urls: [turn.stun] }, { urls: turn.urls, username, credential: password }],
    username,
    password,
    ttl: 3600,
    uris: turn.urls,
    expiresAt: new Date((now + 3600) * 1000).toISOString(),
  });
  t.equal(answer.headers.get('cache-control'), 'no-store');
  t.match(done(200, await tenant.request('GET', '/turn-credentials?ttl=60&userId=ann')), {
    username: `${now + 60}:${tenant.environment.id}.ann`,
    ttl: 60,
  });
  const user = await tenant.userHeaders({ userId: 'carl', role: 'viewer', rooms: ['docs'] });
  t.match(await (await raw(tenant, 'GET', '/turn-credentials?userId=ann', user)).json(), {
    username: `${now + 3600}:${tenant.environment.id}.carl`,
  });
  await refusedWith(t, fetch(`${service.urls[0]}/api/v1/turn-credentials`), 401, 'missing_credentials');
  for (const ttl of ['59', '86401', 'x', ''])
    t.equal((await tenant.request('GET', `/turn-credentials?ttl=${ttl}`)).status, 400, ttl);
  t.equal((await tenant.request('GET', '/turn-credentials?userId=')).status, 400);
});
