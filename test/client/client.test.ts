import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { CollabClient } from '../../src/client/rest/client.ts';
import { verifyWebhook } from '../../src/client/rest/webhooks.ts';
import { startService } from '../helpers/service.ts';

t.test('every resource through a real server', async (t) => {
  const service = await startService(t);
  const tenant = await service.tenant('acme');
  const collab = new CollabClient({ serverUrl: `${service.urls[0]}/`, secretKey: tenant.secretKey });
  t.match(await collab.users.put('ci bot', { name: 'CI', kind: 'bot' }), { userId: 'ci bot', name: 'CI' });
  const thread = await collab.threads.create('docs/a b', { userId: 'ci bot', body: 'failed', position: { x: 0, y: 1 } });
  t.match(thread, { roomId: 'docs/a b', comments: [{ body: 'failed' }] });
  const comment = await collab.comments.create(thread.id, { userId: 'ci bot', body: 'again' });
  t.match(await collab.comments.update(comment.id, { body: 'once more' }), { body: 'once more' });
  t.match(await collab.comments.get(comment.id), { body: 'once more' });
  const reaction = await collab.reactions.add(comment.id, { userId: 'ci bot', emoji: '👍' });
  t.strictSame(await collab.reactions.remove(reaction.id), { deleted: true });
  t.strictSame(await collab.threads.update(thread.id, { resolved: true }), { threadId: thread.id, resolved: true });
  t.match(await collab.threads.get(thread.id), { thread: { resolved: true }, comments: [{}, {}] });
  t.match(await collab.rooms.get('docs/a b', { comments: true }), { room: { threadCount: 1 }, threads: [{ comments: [{}, {}] }] });
  t.match(await collab.rooms.update('docs/a b', { metadata: { title: 'A' } }), { metadata: { title: 'A' } });
  t.strictSame(await collab.rooms.presence('docs/a b'), []);
  t.match(await collab.rooms.putP2pState('docs/a b', 'AQID'), { version: 1 });
  t.match(await collab.rooms.p2pState('docs/a b'), { state: 'AQID' });
  t.strictSame(await collab.rooms.clearP2pState('docs/a b'), { deleted: true });
  t.match(await collab.users.lookup(['ci bot', 'nobody']), { 'ci bot': { name: 'CI' } });
  t.match((await collab.users.createToken('ann', { role: 'viewer' })).token, /^ey/);
  t.match(await collab.turnCredentials({ userId: 'ann' }), { ttl: 0 });
  t.ok((await collab.events.list({ since: 0 })).items.length > 4);
  t.strictSame(await collab.comments.delete(comment.id), { deleted: true });
  t.strictSame(await collab.threads.delete(thread.id), { deleted: true });
  t.strictSame(await collab.rooms.delete('docs/a b'), { deleted: true });
  t.strictSame(await collab.users.delete('ci bot'), { deleted: true });
  await t.rejects(collab.threads.get('th_gone'), { name: 'CollabError', code: 'thread_not_found', status: 404, message: 'Thread not found', requestId: String });
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
const status = (code: number, headers: Record<string, string> = {}, body = '{"error":"busy"}') => (response: ServerResponse) => void response.writeHead(code, headers).end(body);
const cut = (response: ServerResponse): void => void response.socket?.destroy();

t.test('429, 5xx and lost connections are repeated, a POST with the same idempotency key', async (t) => {
  const { got, collab } = await misbehaving(t, [status(429, { 'Retry-After': '0' }), status(503), cut, status(502, {}, '<html>'), status(201, {}, '{"thread":{"id":"th_1"}}')]);
  t.match(await collab.threads.create('r', { userId: 'u', body: 'b' }), { id: 'th_1' });
  t.equal(got.length, 5);
  t.equal(new Set(got.map(({ key }) => key)).size, 1);
  t.match(got[0]?.key, /^[\w-]{36}$/);
});

t.test('other refusals, a long Retry-After and an endless failure are reported', async (t) => {
  const refused = await misbehaving(t, [status(409, { 'X-Error-Code': 'id_taken', 'X-Request-Id': 'r1' }, '{"error":"The id is taken"}')]);
  await t.rejects(refused.collab.threads.create('r', { userId: 'u', body: 'b' }), { code: 'id_taken', status: 409, requestId: 'r1', message: 'The id is taken' });
  const long = await misbehaving(t, [status(429, { 'Retry-After': '3600' })]);
  await t.rejects(long.collab.rooms.get('r'), { code: 'rate_limited', retryAfter: 3600 });
  const endless = await misbehaving(t, Array.from({ length: 9 }, () => status(500)));
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
  t.throws(() => new CollabClient({ serverUrl: 'https://x', secretKey: 'pk_x' }), { code: 'invalid_request', message: /sk_/ });
  t.throws(() => new CollabClient({ serverUrl: 'x', secretKey: 'sk_x' }), { code: 'invalid_request', message: /serverUrl/ });
  t.end();
});

t.test('webhooks: the vector of Standard Webhooks, and everything that is not signed', async (t) => {
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const headers = { 'Webhook-Id': 'msg_p5jXN8AQM9LWM0D4loKWxJek', 'webhook-timestamp': '1614265330', 'webhook-signature': 'v1,AAAA v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=' };
  const body = '{"test": 2432232314}';
  const now = 1_614_265_330_000;
  t.match(await verifyWebhook({ body, headers, secret, now }), { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', sentAt: new Date(now) });
  t.match(await verifyWebhook({ body: Buffer.from(body), headers: new Headers(headers), secret: ['whsec_AAAA', secret], now }), { id: String }, 'one of two secrets');
  const wrong = [
    { body: '{"test": 2432232315}', headers, secret, now },
    { body, headers, secret: 'whsec_AAAA', now },
    { body, headers, secret, now: now + 301_000 },
    { body, headers, secret, now: now - 301_000 },
    { body, headers: { ...headers, 'Webhook-Id': 'msg_other' }, secret, now },
    { body, headers: { ...headers, 'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OA=' }, secret, now },
    { body, headers: { ...headers, 'webhook-signature': 'v1,%%%' }, secret, now },
    { body, headers: {}, secret, now },
  ];
  for (const delivery of wrong) await t.rejects(verifyWebhook(delivery), { code: 'invalid_signature' });
});
