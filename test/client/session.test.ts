import t from 'tap';
import { CollabSession } from '../../src/client/session/session.ts';
import { CuttableSockets, openSession, snapshotOf, stateOf } from '../helpers/session.ts';
import { startService } from '../helpers/service.ts';
import { picture } from '../fixtures/media.ts';

t.test('what a session must not be given is refused in words', (t) => {
  const options = {
    serverUrl: 'https://x.example',
    publishableKey: 'pk_a',
    token: () => 'a.b.c',
    WebSocket: new CuttableSockets().WebSocket,
  };
  const cases: [change: object, message: RegExp][] = [
    [{ publishableKey: 'sk_live_1' }, /secret key.*Never put it into a page/],
    [{ publishableKey: 'x' }, /must be a key that begins with pk_/],
    [{ serverUrl: 'x.example' }, /must begin with https/],
    [{ serverUrl: undefined }, /serverUrl is missing/],
    [{ token: 'a.b.c' }, /must be a function/],
  ];
  for (const [change, message] of cases)
    t.throws(() => new CollabSession({ ...options, ...change }), { code: 'invalid_request', message });
  t.end();
});

t.test('a wrong key, a refused token and a refused origin end the session with a text for people', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const wrongKey = openSession(t, tenant, 'ann', { publishableKey: 'pk_default_doesnotexist' });
  t.match(await stateOf(wrongKey, ({ status }) => status === 'closed'), {
    reason: /publishable key/,
    error: { code: 'invalid_key' },
  });

  const reasons: string[] = [];
  const refused = openSession(t, tenant, 'ann', {
    token: ({ reason }) => {
      reasons.push(reason);
      return 'no.good.token';
    },
  });
  t.match(await stateOf(refused, ({ status }) => status === 'closed'), {
    reason: /sign-in/,
    error: { code: 'invalid_token' },
  });
  t.strictSame(reasons, ['connect', 'refused'], 'once more with a new token');
  await t.rejects(refused.room('page').createThread({ body: 'lost?' }), { code: 'closed' });
  await t.rejects(refused.room('page').ready(), { code: 'invalid_token' });
});

t.test('a token function that fails is called again, and its failure is named', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  let calls = 0;
  const session = openSession(t, tenant, 'ann', {
    token: () => {
      if (++calls < 3) throw new Error('401 from the backend');
      return tenant.token({ userId: 'ann' });
    },
  });
  t.match(await stateOf(session, ({ error }) => error !== null), {
    status: 'reconnecting',
    error: { code: 'token_failed', message: /401 from the backend/ },
  });
  t.match(await stateOf(session, ({ status }) => status === 'live'), { userId: 'ann', reason: '' });
});

t.test('a token function that fails after the connection was lost does not hide the loss', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const sockets = new CuttableSockets();
  let failures = 0;
  const session = openSession(t, tenant, 'ann', {
    WebSocket: sockets.WebSocket,
    token: () => {
      if (sockets.opened === 0 || failures === 3) return tenant.token({ userId: 'ann' });
      failures++;
      throw new TypeError('Failed to fetch');
    },
  });
  await stateOf(session, ({ status }) => status === 'live');
  const codes = new Set<string | undefined>();
  t.teardown(session.subscribe(() => codes.add(session.getSnapshot().error?.code)));
  sockets.cut();
  await stateOf(session, ({ status }) => status === 'reconnecting');
  await stateOf(session, ({ status }) => status === 'live');
  t.equal(failures, 3);
  t.strictSame(
    [...codes].filter((code) => code !== undefined),
    ['network'],
  );
});

t.test('an expired token is replaced once, and a token that is about to expire without a reconnect', async (t) => {
  const service = await startService(t);
  const tenant = await service.tenant('acme');
  const reasons: string[] = [];
  const expired = await tenant.token({ userId: 'ann', ttlSeconds: 60 });
  service.clock.advance(120_000);
  let renewed: Promise<string> | undefined;
  const sockets = new CuttableSockets();
  const session = openSession(t, tenant, 'ann', {
    WebSocket: sockets.WebSocket,
    token: ({ reason }) => {
      reasons.push(reason);
      if (reason === 'connect') return expired;
      return (renewed = tenant.token({ userId: 'ann', ttlSeconds: 300 }));
    },
  });
  await stateOf(session, ({ status }) => status === 'live');
  t.strictSame(reasons, ['connect', 'refused']);
  const opened = sockets.opened;
  while (!reasons.includes('expiring')) {
    service.clock.advance(1_000);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await renewed;
  // Messages of a connection are handled in their order: after this one the new token is known.
  await new Promise(setImmediate);
  await session.room('before').ready();
  service.clock.advance(120_000);
  const room = session.room('page');
  t.match(await room.ready(), { status: 'ready' });
  t.equal(sockets.opened, opened, 'on the same connection');
});

t.test(
  'a file that is too large or of a refused type is refused in words; a good one reaches the comment',
  async (t) => {
    const tenant = await (
      await startService(t)
    ).tenant('acme', { maxFileSizeMb: 1, media: { image: true, audio: true, video: false } });
    const session = openSession(t, tenant, 'ann');
    const { files } = session;
    await t.rejects(files.upload(new Blob([Buffer.alloc(2_000_000)], { type: 'image/png' }), { filename: 'big.png' }), {
      code: 'file_too_large',
      status: 413,
      message: /max 1MB/,
    });
    await t.rejects(files.upload(new Blob(['x'], { type: 'text/plain' })), { code: 'unsupported_media', status: 400 });
    await t.rejects(files.upload(new Blob(['x'], { type: 'video/mp4' })), {
      code: 'media_disabled',
      status: 403,
      message: /Video uploads are disabled/,
    });
    await t.rejects(files.upload(new Blob(['x'], { type: 'image/png' }), { signal: AbortSignal.abort() }), {
      code: 'aborted',
    });
    t.ok(files.accepts('audio/webm;codecs=opus'));
    t.notOk(files.accepts('image/svg+xml'));

    const progress: [number, number][] = [];
    const bytes = await picture(8, 8).png().toBuffer();
    const attachment = await files.upload(new Blob([bytes], { type: 'image/png' }), {
      filename: 'dot.png',
      onProgress: (sent, total) => progress.push([sent, total]),
    });
    t.match(attachment, { type: 'image', filename: 'dot.png', width: 8 });
    t.strictSame(progress.at(-1), [bytes.length, bytes.length]);
    const room = session.room('page');
    await room.ready();
    const created = room.createThread({ body: '', attachmentIds: [attachment.id] });
    t.match(
      room.getSnapshot().threads,
      [{ pending: 'create', comments: [{ attachments: [{ filename: 'dot.png' }] }] }],
      'the upload shows at once',
    );
    await created;
    const address = await files.url(attachment);
    t.match(address, /^blob:/);
    t.equal(await files.url(attachment), address, 'fetched once');
    t.equal((await files.blob(attachment)).size, bytes.length);
    files.release(attachment);
  },
);

t.test('presence, typing, cursors and broadcasts reach the others in the room', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  await tenant.request('PUT', '/users/ann', { body: { name: 'Ann Lee' } });
  const ann = openSession(t, tenant, 'ann').room('page');
  const bob = openSession(t, tenant, 'bob').room('page');
  for (const room of [ann, bob]) t.teardown(room.subscribe(() => {}));
  ann.setPresence({ page: 'intro' });
  t.match(
    (await snapshotOf(bob, ({ presence }) => presence.length === 2)).presence.map(({ userId }) => userId).toSorted(),
    ['ann', 'bob'],
  );
  t.match((await snapshotOf(bob, ({ users }) => users['ann'] !== undefined)).users, { ann: { name: 'Ann Lee' } });
  await snapshotOf(bob, ({ presence }) =>
    presence.some(({ userId, state }) => userId === 'ann' && state['page'] === 'intro'),
  );
  ann.setTyping(null, true);
  t.strictSame((await snapshotOf(bob, ({ typing }) => typing.length === 1)).typing, [
    { userId: 'ann', threadId: null },
  ]);
  ann.setTyping(null, false);
  await snapshotOf(bob, ({ typing }) => typing.length === 0);
  const cursor = new Promise((resolve) => bob.on('cursor', resolve));
  ann.sendCursor({ x: 0.25, y: 0.5 });
  t.match(await cursor, { userId: 'ann', position: { x: 0.25, y: 0.5 } });
  const broadcast = new Promise((resolve) => bob.on('broadcast', resolve));
  ann.broadcast({ wave: true });
  t.match(await broadcast, { actor: { userId: 'ann' }, data: { wave: true } });
});

t.test('names come with the room, and change with the user', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  await tenant.request('PUT', '/users/bot', { body: { name: 'CI', kind: 'bot' } });
  await tenant.request('POST', '/rooms/page/threads', { body: { userId: 'bot', body: 'failed' } });
  const session = openSession(t, tenant, 'ann');
  const room = session.room('page');
  t.match(await room.ready(), { users: { bot: { name: 'CI', kind: 'bot' } } });
  t.teardown(room.subscribe(() => {}));
  await tenant.request('PUT', '/users/bot', { body: { name: 'Build' } });
  await snapshotOf(room, ({ users }) => users['bot']?.name === 'Build');
  await tenant.request('PUT', '/users/eve', { body: { name: 'Eve' } });
  await tenant.request('POST', '/rooms/page/threads', { body: { userId: 'eve', body: 'hello' } });
  await snapshotOf(room, ({ users }) => users['eve']?.name === 'Eve');
  t.match(await session.searchUsers('bui'), [{ userId: 'bot', name: 'Build' }]);
  t.match(await session.users(['eve', 'nobody']), { eve: { name: 'Eve' } });
});

t.test('many reconnects in a row lose nothing', async (t) => {
  const reconnects = Number(process.env['RECONNECTS'] ?? 40);
  const service = await startService(t);
  const tenant = await service.tenant('acme');
  await tenant.request('PUT', '/users/bot', { body: {} });
  const { json } = await tenant.request<{ thread: { id: string } }>('POST', '/rooms/page/threads', {
    body: { userId: 'bot', body: '0' },
  });
  const sockets = new CuttableSockets();
  const session = openSession(t, tenant, 'ann', { WebSocket: sockets.WebSocket, backoff: { firstMs: 1, maxMs: 3 } });
  const events: number[] = [];
  session.on('event', ({ seq }) => events.push(seq));
  const room = session.room('page');
  await room.ready();
  t.teardown(room.subscribe(() => {}));
  const first = session.getSnapshot().connectionId;
  for (let n = 1; n <= reconnects; n++) {
    const before = session.getSnapshot().connectionId;
    sockets.cut();
    await tenant.request('POST', `/threads/${json.thread.id}/comments`, { body: { userId: 'bot', body: String(n) } });
    await stateOf(session, ({ status, connectionId }) => status === 'live' && connectionId !== before);
  }
  const { threads } = await snapshotOf(room, (snapshot) => snapshot.threads[0]?.commentCount === reconnects + 1);
  t.strictSame(
    threads[0]?.comments.map(({ body }) => Number(body)).toSorted((a, b) => a - b),
    Array.from({ length: reconnects + 1 }, (_, n) => n),
  );
  t.strictSame(
    events,
    events.map((_, n) => (events[0] ?? 0) + n),
    'every event, in order, once',
  );
  t.not(first, session.getSnapshot().connectionId);
});
