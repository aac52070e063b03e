import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { type EventPage, eventList } from '../../src/client/rest/event-pages.ts';
import { CollabClient, type QueueItem } from '../../src/client/rest/client.ts';
import { CollabSession } from '../../src/client/session/session.ts';
import { verifyWebhook, type WebhookDelivery } from '../../src/client/rest/webhooks.ts';
import { wav } from '../fixtures/media.ts';
import { HELD_TEXT, holdingFilters } from '../helpers/holding-filters.ts';
import { readSource } from '../helpers/sources.ts';
import { handled, startNotifying } from '../helpers/notifications.ts';
import { startService } from '../helpers/service.ts';

/** The items of a list. */
async function all<T>(list: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of list) items.push(item);
  return items;
}

t.test('every resource through a real server', async (t) => {
  const service = await startService(t);
  const tenant = await service.tenant('acme');
  const collab = new CollabClient({ serverUrl: `${service.urls[0]}/`, secretKey: tenant.secretKey });
  t.match(await collab.users.put('ci bot', { name: 'CI', kind: 'bot' }), { userId: 'ci bot', name: 'CI' });
  const thread = await collab.threads.create('docs/a b', {
    userId: 'ci bot',
    body: 'failed',
    position: { x: 0, y: 1 },
  });
  t.match(thread, { roomId: 'docs/a b', comments: [{ body: 'failed' }] });
  const comment = await collab.comments.create(thread.id, { userId: 'ci bot', body: 'again' });
  t.match(await collab.comments.update(comment.id, { body: 'once more' }), { body: 'once more' });
  t.match(await collab.comments.get(comment.id), { body: 'once more' });
  const reaction = await collab.reactions.add(comment.id, { userId: 'ci bot', emoji: '👍' });
  t.strictSame(await collab.reactions.remove(reaction.id), { deleted: true });
  t.strictSame(await collab.threads.update(thread.id, { resolved: true }), { threadId: thread.id, resolved: true });
  t.match(await collab.threads.get(thread.id), { thread: { resolved: true }, comments: [{}, {}] });
  t.match(await collab.rooms.get('docs/a b', { comments: true }), {
    room: { threadCount: 1 },
    threads: [{ comments: [{}, {}] }],
  });
  t.match(await collab.rooms.update('docs/a b', { metadata: { title: 'A' } }), { metadata: { title: 'A' } });
  t.strictSame(await collab.rooms.presence('docs/a b'), []);
  t.match(await collab.rooms.putP2pState('docs/a b', 'AQID'), { version: 1 });
  t.match(await collab.rooms.p2pState('docs/a b'), { state: 'AQID' });
  t.strictSame(await collab.rooms.clearP2pState('docs/a b'), { deleted: true });
  t.match(await collab.users.lookup(['ci bot', 'nobody']), { 'ci bot': { name: 'CI' } });
  t.match((await collab.users.createToken('ann', { role: 'viewer' })).token, /^ey/);
  t.match(await collab.turnCredentials({ userId: 'ann' }), { ttl: 0 });
  t.ok((await collab.events.list({ since: 0 })).items.length > 4);
  t.strictSame(await collab.comments.delete(comment.id, { userId: 'ann' }), { deleted: true });
  t.match((await collab.events.list({ limit: 1000 })).items.at(-1), {
    type: 'comment.deleted',
    actor: { userId: 'ann' },
  });
  t.strictSame(await collab.threads.delete(thread.id), { deleted: true });
  t.strictSame(await collab.rooms.delete('docs/a b'), { deleted: true });
  t.strictSame(await collab.users.delete('ci bot'), { deleted: true });
  await t.rejects(collab.threads.get('th_gone'), {
    name: 'CollabError',
    code: 'thread_not_found',
    status: 404,
    message: 'Thread not found',
    requestId: String,
  });
});

t.test('events are read page by page when they are awaited, and all of them when they are iterated', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const collab = new CollabClient({ serverUrl: tenant.service.urls[0] ?? '', secretKey: tenant.secretKey });
  for (let i = 0; i < 103; i++) await collab.users.put('ann', { name: `Ann ${i}` });
  t.match(await collab.events.list(), {
    items: { length: 100 },
    seq: 103,
    oldestSeq: 1,
    nextSince: 100,
    epoch: String,
  });
  const seqs: number[] = [];
  for await (const { seq } of collab.events.list()) seqs.push(seq);
  t.strictSame(
    seqs,
    Array.from({ length: 103 }, (_, i) => i + 1),
  );
  const list = collab.events.list({ since: 50, limit: 20 });
  for (const again of [1, 2]) {
    const from50: number[] = [];
    for await (const { seq } of list) from50.push(seq);
    t.strictSame(from50, seqs.slice(50), `iteration ${again}`);
  }
});

t.test('an iteration of events says when the log was replaced meanwhile', async (t) => {
  const page = (epoch: string, seq: number) => ({ items: [{ seq }], epoch, seq: 9, oldestSeq: 1, nextSince: seq });
  const seen: number[] = [];
  const read = async (): Promise<void> => {
    for await (const { seq } of eventList(
      (since) => Promise.resolve(page(since < 2 ? 'a' : 'b', since + 1) as unknown as EventPage),
      0,
    ))
      seen.push(seq);
  };
  await t.rejects(read(), { code: 'protocol', message: /^The events after position 2 are gone: read all data again/ });
  t.strictSame(seen, [1, 2]);
});

t.test('a file is uploaded for a user, and attached to a comment', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const collab = new CollabClient({ serverUrl: tenant.service.urls[0] ?? '', secretKey: tenant.secretKey });
  await collab.users.put('ann', { name: 'Ann' });
  const file = await collab.upload(new Blob([new Uint8Array(wav(0.1))], { type: 'audio/wav' }), 'note.wav', {
    userId: 'ann',
  });
  t.match(file, { type: 'audio', filename: 'note.wav' });
  t.match(await collab.threads.create('docs', { userId: 'ann', body: '', attachmentIds: [file.id] }), {
    comments: [{ attachments: [{ id: file.id }] }],
  });
  const missing = { name: 'CollabError', code: 'invalid_request', message: /^userId is missing/ };
  await t.rejects(collab.upload(new Blob(['x']), 'x.wav', { userId: '' }), missing);
  const upload = collab.upload.bind(collab) as (file: Blob, filename: string) => Promise<unknown>;
  await t.rejects(upload(new Blob(['x']), 'x.wav'), missing, 'JavaScript can leave out the third argument');
});

t.test('the inbox, the settings and the subscriptions of a user', async (t) => {
  const service = await startService(t);
  const tenant = await service.tenant('acme');
  const consumers = await startNotifying(t, service.ctx);
  const collab = new CollabClient({ serverUrl: service.urls[0] ?? '', secretKey: tenant.secretKey });
  for (const id of ['ann', 'bob']) await collab.users.put(id, { name: id });
  const thread = await collab.threads.create('docs', { userId: 'ann', body: 'Look', mentions: ['bob'] });
  t.match(await collab.threads.setSubscription(thread.id, { userId: 'bob', action: 'subscribe' }), {
    threadId: thread.id,
    userId: 'bob',
    state: 'subscribed',
  });
  service.clock.advance(1_000);
  await collab.comments.create(thread.id, { userId: 'ann', body: 'Again' });
  await handled(consumers, service.ctx, tenant.environment);
  const found = await all(collab.notifications.list('bob', { unread: true, limit: 1 }));
  t.match(found, [{ kind: 'reply', threadId: thread.id }, { kind: 'mention' }]);
  t.equal(await collab.notifications.unreadCount('bob'), 2);
  t.equal(await collab.notifications.markRead('bob', { ids: [found[0]?.id ?? ''] }), 1);
  t.equal(await collab.notifications.markRead('bob', { all: true }), 0);
  t.match(await collab.notifications.putSettings('bob', { email: { reply: false } }), {
    email: { mention: true, reply: false },
  });
  t.match(await collab.notifications.settings('bob'), { inApp: { reply: true }, email: { reply: false } });
});

t.test('reports and held content are listed and decided', async (t) => {
  const service = await startService(t, { filters: holdingFilters });
  const tenant = await service.tenant('acme');
  const collab = new CollabClient({ serverUrl: service.urls[0] ?? '', secretKey: tenant.secretKey });
  const queue = (state: string): Promise<QueueItem[]> => all(collab.moderation.list({ state }));
  for (const id of ['ann', 'bob']) await collab.users.put(id, { name: id });
  const { id: threadId, comments } = await collab.threads.create('docs', { userId: 'ann', body: 'Buy this' });
  const commentId = comments[0]?.id ?? '';
  t.match(await collab.comments.report(commentId, { reason: 'Advertising', userId: 'bob' }), {
    commentId,
    userId: 'bob',
    reason: 'Advertising',
  });
  const [reported] = await queue('reported');
  t.match(reported, {
    kind: 'report',
    commentId,
    reportCount: 1,
    reports: [{ userId: 'bob' }],
    comment: { body: 'Buy this' },
  });
  t.match(await collab.moderation.approve(reported?.id ?? ''), { state: 'approved' });

  await collab.comments.create(threadId, { userId: 'ann', body: HELD_TEXT });
  const [held] = await queue('held');
  t.match(await collab.moderation.get(held?.id ?? ''), {
    kind: 'comment',
    userId: 'ann',
    reason: 'it says so',
    comment: { body: HELD_TEXT },
  });
  t.match(await collab.moderation.reject(held?.id ?? '', { reason: 'Not here' }), { id: held?.id, state: 'rejected' });
  t.match(await all(collab.users.held('ann')), [{ id: held?.id, state: 'rejected', rejection: 'Not here' }]);
  t.strictSame(await queue('held'), []);
});

t.test('a list is read page after page, as far as it is needed', async (t) => {
  const service = await startService(t);
  const tenant = await service.tenant('acme');
  const collab = new CollabClient({ serverUrl: service.urls[0] ?? '', secretKey: tenant.secretKey });
  for (let n = 0; n < 7; n++) await collab.users.put(`u${n}`, { name: `User ${n}` });
  const read: string[] = [];
  for await (const { id } of collab.users.list({ limit: 3, order: 'asc' })) read.push(id);
  t.equal(new Set(read).size, 7);
  for await (const { id } of collab.users.list({ limit: 3, q: 'u4' })) t.equal(id, 'u4');
});

t.test('a list that is read again begins anew', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const collab = new CollabClient({ serverUrl: tenant.service.urls[0] ?? '', secretKey: tenant.secretKey });
  const users = collab.users.list({ limit: 2 });
  t.equal((await all(users)).length, 0);
  for (let n = 0; n < 5; n++) await collab.users.put(`u${n}`, { name: `User ${n}` });
  t.equal((await all(users)).length, 5);
  t.equal((await all(users)).length, 5);
});

/** A server that answers as the test says, in turn, and remembers what it got. */
async function misbehaving(t: Test, answers: ((response: ServerResponse) => void)[]) {
  const got: { method: string | undefined; key: string | undefined }[] = [];
  const server = createServer((request: IncomingMessage, response) => {
    request.resume().on('end', () => {
      const answer = answers[got.length];
      got.push({ method: request.method, key: request.headers['idempotency-key'] as string | undefined });
      answer?.(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.closeAllConnections());
  t.teardown(() => server.close());
  const serverUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { got, collab: new CollabClient({ serverUrl, secretKey: 'sk_x', retryDelayMs: 1, timeoutMs: 5_000 }) };
}
const status =
  (code: number, headers: Record<string, string> = {}, body = '{"error":"busy"}') =>
  (response: ServerResponse) =>
    void response.writeHead(code, headers).end(body);
const cut = (response: ServerResponse): void => void response.socket?.destroy();

t.test('429, 5xx and lost connections are repeated, a POST with the same idempotency key', async (t) => {
  const { got, collab } = await misbehaving(t, [
    status(429, { 'Retry-After': '0' }),
    status(503),
    cut,
    status(502, {}, '<html>'),
    status(201, {}, '{"thread":{"id":"th_1"}}'),
  ]);
  t.match(await collab.threads.create('r', { userId: 'u', body: 'b' }), { id: 'th_1' });
  t.equal(got.length, 5);
  t.equal(new Set(got.map(({ key }) => key)).size, 1);
  t.match(got[0]?.key, /^[\w-]{36}$/);
});

t.test('a DELETE whose answer was lost has succeeded if the repetition finds nothing', async (t) => {
  const gone = status(404, { 'X-Error-Code': 'comment_not_found' }, '{"error":"Comment not found"}');
  for (const lost of [cut, status(502, {}, '<html>')]) {
    const { got, collab } = await misbehaving(t, [lost, gone]);
    t.strictSame(await collab.comments.delete('cm_1'), { deleted: true });
    t.equal(got.length, 2);
  }
  const first = await misbehaving(t, [gone]);
  await t.rejects(first.collab.comments.delete('cm_1'), { code: 'comment_not_found' }, 'not if nothing was lost');
  const refused = await misbehaving(t, [status(429, { 'Retry-After': '0' }), gone]);
  await t.rejects(refused.collab.comments.delete('cm_1'), { code: 'comment_not_found' }, 'nor after a refusal');
  const read = await misbehaving(t, [cut, gone]);
  await t.rejects(read.collab.comments.get('cm_1'), { code: 'comment_not_found' }, 'nor if it was a GET');
  const elsewhere = await misbehaving(t, [cut, status(404, {}, '<html>')]);
  await t.rejects(
    elsewhere.collab.comments.delete('cm_1'),
    { code: 'route_not_found' },
    'nor if it is not the server that answers',
  );
});

t.test('other refusals, a long Retry-After and an endless failure are reported', async (t) => {
  const refused = await misbehaving(t, [
    status(409, { 'X-Error-Code': 'id_taken', 'X-Request-Id': 'r1' }, '{"error":"The id is taken"}'),
  ]);
  await t.rejects(refused.collab.threads.create('r', { userId: 'u', body: 'b' }), {
    code: 'id_taken',
    status: 409,
    requestId: 'r1',
    message: 'The id is taken',
  });
  const long = await misbehaving(t, [status(429, { 'Retry-After': '3600' })]);
  await t.rejects(long.collab.rooms.get('r'), { code: 'rate_limited', retryAfter: 3600 });
  const endless = await misbehaving(
    t,
    Array.from({ length: 9 }, () => status(500)),
  );
  await t.rejects(endless.collab.rooms.get('r'), { code: 'internal', status: 500 });
  t.equal(endless.got.length, 5, 'after four repetitions');
  const other = await misbehaving(t, [status(200, {}, '<html>a proxy</html>')]);
  await t.rejects(other.collab.rooms.get('r'), { code: 'protocol', message: /proxies/ });
});

t.test('a call ends with its signal', async (t) => {
  const { collab } = await misbehaving(t, [() => {}]);
  const abort = new AbortController();
  const call = collab.rooms.get('r', { signal: abort.signal });
  abort.abort();
  await t.rejects(call, { code: 'aborted' });
  await t.rejects(collab.rooms.get('r', { signal: AbortSignal.abort() }), { code: 'aborted' });
});

t.test('a key of the wrong kind is refused before it is sent anywhere', (t) => {
  t.throws(() => new CollabClient({ serverUrl: 'https://x', secretKey: 'pk_x' }), {
    code: 'invalid_request',
    message: /sk_/,
  });
  t.throws(() => new CollabClient({ serverUrl: 'x', secretKey: 'sk_x' }), {
    code: 'invalid_request',
    message: /serverUrl/,
  });
  const unset = undefined as unknown as string;
  t.throws(() => new CollabClient({ serverUrl: 'https://x', secretKey: unset }), {
    name: 'CollabError',
    code: 'invalid_request',
    message: /secretKey/,
  });
  t.throws(() => new CollabSession({ serverUrl: 'https://x', publishableKey: unset, token: () => '' }), {
    name: 'CollabError',
    code: 'invalid_request',
    message: /publishableKey/,
  });
  t.end();
});

t.test('request takes one object, and says so', async (t) => {
  const service = await startService(t);
  const { secretKey } = await service.tenant('acme');
  const collab = new CollabClient({ serverUrl: service.urls[0] ?? '', secretKey });
  t.strictSame(await collab.request({ method: 'GET', path: '/rooms', query: { limit: 1 } }), { items: [] });
  const request = collab.request.bind(collab) as unknown as (...args: readonly unknown[]) => Promise<unknown>;
  const refusal = {
    code: 'invalid_request',
    message: /^request takes one object, such as \{ method: 'GET', path: '\/rooms' \}/,
  };
  for (const args of [
    ['GET', '/rooms'],
    [],
    [{ path: '/rooms' }],
    [{ method: 'GET' }],
    [{ method: 'GET', path: 'rooms' }],
  ])
    await t.rejects(request(...args), refusal);
});

t.test('docs/sdk.md lists the methods of each resource', (t) => {
  const client: object = new CollabClient({ serverUrl: 'https://x', secretKey: 'sk_x' });
  const resources = Object.entries(client).map(([name, methods]) => [`\`${name}\``, Object.keys(methods as object)]);
  const others = Object.getOwnPropertyNames(CollabClient.prototype).filter((name) => name !== 'constructor');
  const sections = readSource('docs/sdk.md').split('\n#### ').slice(1);
  const tables = sections.map((section) => [
    section.split('\n')[0],
    Array.from(section.matchAll(/^\| `(\w+)\(/gm), ([, name]) => name),
  ]);
  t.strictSame(tables, [...resources, ['Without a resource', others]]);
  t.end();
});

t.test('webhooks: the vector of Standard Webhooks, and everything that is not signed', async (t) => {
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const headers = {
    'Webhook-Id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,AAAA v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  };
  const body = '{"test": 2432232314}';
  const now = 1_614_265_330_000;
  t.match(await verifyWebhook({ body, headers, secret, now }), {
    id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    sentAt: new Date(now),
  });
  t.match(
    await verifyWebhook({
      body: Buffer.from(body),
      headers: new Headers(headers),
      secret: [`whsec_${'A'.repeat(32)}`, secret],
      now,
    }),
    { id: String },
    'one of two secrets',
  );
  const wrong = [
    { body: '{"test": 2432232315}', headers, secret, now },
    { body, headers, secret: `whsec_${'A'.repeat(32)}`, now },
    { body, headers, secret, now: now + 301_000 },
    { body, headers, secret, now: now - 301_000 },
    { body, headers: { ...headers, 'Webhook-Id': 'msg_other' }, secret, now },
    {
      body,
      headers: { ...headers, 'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OA=' },
      secret,
      now,
    },
    { body, headers: { ...headers, 'webhook-signature': 'v1,%%%' }, secret, now },
    { body, headers: {}, secret, now },
  ];
  for (const delivery of wrong) await t.rejects(verifyWebhook(delivery), { code: 'invalid_signature' });
});

/** 24 bytes, the least. */
const KEY = 'c2VjcmV0'.repeat(4);

/** A delivery that is rightly signed now. */
function signed(
  body: string | Uint8Array,
): Omit<WebhookDelivery, 'headers'> & { readonly headers: Record<string, string> } {
  const at = Math.floor(Date.now() / 1_000);
  const signature = createHmac('sha256', Buffer.from(KEY, 'base64'))
    .update(`msg_1.${at}.`)
    .update(body)
    .digest('base64');
  return {
    body,
    secret: `whsec_${KEY}`,
    headers: { 'webhook-id': 'msg_1', 'webhook-timestamp': String(at), 'webhook-signature': `v1,${signature}` },
  };
}

t.test('webhooks: several headers with signatures are all read', async (t) => {
  const delivery = signed('{"type":"comment.created"}');
  const right = delivery.headers['webhook-signature'] ?? '';
  for (const value of [
    ['v1,AAAA', right],
    [right, 'v1,AAAA'],
    ['v1,BBBB v1,AAAA', right],
    `v1,AAAA, ${right}`,
    `${right}, v1,AAAA`,
  ]) {
    t.match(await verifyWebhook({ ...delivery, headers: { ...delivery.headers, 'webhook-signature': value } }), {
      type: 'comment.created',
    });
  }
  await t.rejects(
    verifyWebhook({ ...delivery, headers: { ...delivery.headers, 'webhook-signature': ['v1,AAAA', 'v1,BBBB'] } }),
    { code: 'invalid_signature' },
  );
});

t.test('webhooks: the bytes of the body count, with a byte order mark and what is not UTF-8', async (t) => {
  const marked = '\uFEFF{"type":"comment.created"}';
  t.match(await verifyWebhook(signed(marked)), { type: 'comment.created' });
  t.match(await verifyWebhook(signed(Buffer.from(marked))), { type: 'comment.created' });
  t.match(await verifyWebhook({ ...signed(marked), body: new TextEncoder().encode(marked).buffer }), {
    type: 'comment.created',
  });
  t.match(await verifyWebhook(signed(Buffer.from('{"type":"\xFF"}', 'latin1'))), { type: '\uFFFD' });
});

t.test('webhooks: a wrong secret or body of the application, and content of somebody else, are named', async (t) => {
  const delivery = signed('{"type":"comment.created"}');
  for (const secret of [
    '',
    'whsec_',
    undefined,
    null,
    [undefined],
    'whsec_AAAA',
    'whsec_c2VjcmV0',
    [`whsec_${KEY}`, ''],
  ]) {
    await t.rejects(verifyWebhook({ ...delivery, secret: secret as string }), {
      name: 'CollabError',
      code: 'invalid_request',
      message: /secret/,
    });
  }
  for (const body of [{ type: 'comment.created' }, undefined, null]) {
    await t.rejects(verifyWebhook({ ...delivery, body: body as unknown as string }), {
      name: 'CollabError',
      code: 'invalid_request',
      message: /body/,
    });
  }
  for (const text of ['hello', '', 'null', '5', '"comment.created"'])
    await t.rejects(verifyWebhook(signed(text)), { name: 'CollabError', code: 'protocol' });
});
