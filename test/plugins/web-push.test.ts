import { importJWK, jwtVerify } from 'jose';
import t, { type Test } from 'tap';
import webPush from '../../plugins/web-push/index.ts';
import type { PluginNotification } from '../../src/plugins/api.ts';
import { environment, hostPlugin, type TestHost } from '../doubles/plugin-host.ts';
import { commentOf, notificationCreated, notificationOf, userUpdated } from '../helpers/plugin-events.ts';
import { type Browser, newBrowser } from '../helpers/push-receiver.ts';
import { type Received, type Receiver, startReceiver } from '../helpers/receiver.ts';

interface Setup {
  readonly host: TestHost;
  readonly receiver: Receiver;
  readonly browser: Browser;
  readonly publicKey: string;
}

async function setUp(t: Test): Promise<Setup> {
  const receiver = await startReceiver(t, 201);
  const host = await hostPlugin(webPush, {
    config: { subject: 'mailto:ops@example.com', linkTemplate: 'https://app.example.com/{roomId}' },
  });
  const { publicKey } = (await host.command('keys')).json as { publicKey: string };
  const browser = newBrowser();
  const subscribed = await subscribe(host, browser, `${receiver.url}/push/1`);
  t.equal(subscribed, 201);
  return { host, receiver, browser, publicKey };
}

async function subscribe(host: TestHost, { p256dh, auth }: Browser, endpoint: string, userId = 'bob'): Promise<number> {
  const body = JSON.stringify({ endpoint, expirationTime: null, keys: { p256dh, auth } });
  return (await host.route('POST subscription', { userId, body })).status;
}

async function notify(
  host: TestHost,
  seq: number,
  fields: Partial<PluginNotification> = {},
  body = 'Hello',
): Promise<void> {
  const ids = { id: `ntf_${seq}`, commentId: `com_${seq}`, ...fields };
  host.data.allComments.set(ids.commentId, commentOf({ id: ids.commentId, body }));
  host.data.notifications.set(ids.id, notificationOf(ids));
  await host.emit(notificationCreated(seq, ids));
}

t.test('a notification is pushed, encrypted for the browser and signed with the keys of the environment', async (t) => {
  const { host, receiver, browser, publicKey } = await setUp(t);
  await notify(host, 1, {}, `Grüße 👋 ${'x'.repeat(10_000)}`);
  await host.runJobs();
  const [{ headers, body, path }] = receiver.received as [Received];
  t.equal(path, '/push/1');
  t.match(headers, { ttl: '86400', 'content-encoding': 'aes128gcm', topic: 'ntf_1' });
  t.ok(body.length < 4_096);
  t.match(JSON.parse(browser.decrypt(body)), {
    title: 'ann mentioned you',
    body: /^Grüße 👋 x+…$/,
    url: 'https://app.example.com/page-1',
    notificationId: 'ntf_1',
    threadId: 'thr_1',
    commentId: 'com_1',
  });

  const [, token = '', key = ''] = /^vapid t=([^,]+), k=(.+)$/.exec(headers.authorization ?? '') ?? [];
  t.equal(key, publicKey);
  const point = Buffer.from(key, 'base64url');
  const jwk = {
    kty: 'EC',
    crv: 'P-256',
    x: point.subarray(1, 33).toString('base64url'),
    y: point.subarray(33).toString('base64url'),
  };
  const { payload } = await jwtVerify(token, await importJWK(jwk, 'ES256'));
  t.match(payload, { aud: receiver.url, sub: 'mailto:ops@example.com' });
});

t.test('each browser of the user gets it, and nobody else', async (t) => {
  const { host, receiver } = await setUp(t);
  await subscribe(host, newBrowser(), `${receiver.url}/push/2`);
  await subscribe(host, newBrowser(), `${receiver.url}/push/3`, 'cleo');
  await notify(host, 1);
  await host.runJobs();
  t.same(new Set(receiver.received.map(({ path }) => path)), new Set(['/push/1', '/push/2']));
});

t.test('a user can ask whether a browser is subscribed for them', async (t) => {
  const { host, receiver } = await setUp(t);
  const ask = async (userId: string, query: Record<string, string>) => {
    const { status, body } = await host.route('GET subscription', { userId, query });
    return [status, JSON.parse(body)] as const;
  };
  const endpoint = `${receiver.url}/push/1`;
  t.same(
    [await ask('bob', { endpoint }), await ask('cleo', { endpoint })],
    [
      [200, { subscribed: true }],
      [200, { subscribed: false }],
    ],
  );
  t.match(await ask('bob', {}), [400, { error: 'The query must have the endpoint of the subscription' }]);
});

t.test('a browser in which another user signs in no longer gets what is for the former', async (t) => {
  const { host, receiver, browser } = await setUp(t);
  await subscribe(host, browser, `${receiver.url}/push/1`, 'cleo');
  await notify(host, 1);
  await host.runJobs();
  t.equal(receiver.received.length, 0);
  await notify(host, 2, { userId: 'cleo' });
  await host.runJobs();
  t.equal(receiver.received.length, 1);
  await host.route('DELETE subscription', {
    userId: 'cleo',
    body: JSON.stringify({ endpoint: `${receiver.url}/push/1` }),
  });
  t.same(
    (await host.kv.list()).map(({ key }) => key),
    ['vapid-keys'],
  );
});

t.test('a push that is tried again does not reach a browser that the user has left meanwhile', async (t) => {
  const left: Record<string, (host: TestHost, endpoint: string) => Promise<unknown>> = {
    'the user unsubscribed': (host, endpoint) =>
      host.route('DELETE subscription', { userId: 'bob', body: JSON.stringify({ endpoint }) }),
    'another user subscribed': (host, endpoint) => subscribe(host, newBrowser(), endpoint, 'cleo'),
    'the user was erased': (host) => host.emit(userUpdated(2, 'bob', { erased: true })),
  };
  for (const [what, leave] of Object.entries(left)) {
    const { host, receiver } = await setUp(t);
    receiver.answer = 503;
    await notify(host, 1);
    await host.runJobs();
    t.equal(receiver.received.length, 1);
    receiver.answer = 201;
    await leave(host, `${receiver.url}/push/1`);
    await host.runJobs(60_000);
    t.equal(receiver.received.length, 1, what);
    t.same(await host.queue('pushes').count(), { waiting: 0, dead: 0 });
  }
});

t.test('a push that is tried again is encrypted for the keys with which the browser has subscribed last', async (t) => {
  const { host, receiver } = await setUp(t);
  receiver.answer = 503;
  await notify(host, 1);
  await host.runJobs();
  receiver.answer = 201;
  const renewed = newBrowser();
  await subscribe(host, renewed, `${receiver.url}/push/1`);
  await host.runJobs(60_000);
  t.match(JSON.parse(renewed.decrypt((receiver.received[1] as Received).body)), { notificationId: 'ntf_1' });
});

t.test(
  'the subscriptions of a user who is erased are removed, so that a later user with the id does not push to their browsers',
  async (t) => {
    const { host, receiver } = await setUp(t);
    await subscribe(host, newBrowser(), `${receiver.url}/push/2`);
    await subscribe(host, newBrowser(), `${receiver.url}/push/3`, 'cleo');
    await host.emit(userUpdated(1, 'bob'));
    t.equal((await host.kv.list({ prefix: 'subscription/' })).length, 3, 'a change removes none');
    await host.emit(userUpdated(2, 'bob', { erased: true }));
    t.strictSame(
      (await host.kv.list({ prefix: 'subscription/' })).map(({ value }) => (value as { endpoint: string }).endpoint),
      [`${receiver.url}/push/3`],
    );
    t.strictSame(
      (await host.kv.list({ prefix: 'owner/' })).map(({ value }) => value),
      ['cleo'],
    );
    await notify(host, 3);
    await notify(host, 4, { userId: 'cleo' });
    await host.runJobs();
    t.strictSame(
      receiver.received.map(({ path }) => path),
      ['/push/3'],
    );
  },
);

t.test('a subscription that has ended is removed', async (t) => {
  for (const status of [404, 410]) {
    const { host, receiver } = await setUp(t);
    receiver.answer = status;
    await notify(host, 1);
    await host.runJobs();
    t.same(await host.queue('pushes').count(), { waiting: 0, dead: 0 });
    t.same(await host.kv.list({ prefix: 'subscription/' }), []);
  }
});

t.test('429 and errors are tried again, and a refusal is not', async (t) => {
  const { host, receiver } = await setUp(t);
  receiver.answer = { status: 429, headers: { 'retry-after': '20' } };
  await notify(host, 1);
  await host.runJobs();
  await host.runJobs(19_999);
  t.equal(receiver.received.length, 1);
  receiver.answer = 403;
  await host.runJobs(1);
  t.equal(receiver.received.length, 2);
  t.match(await host.queue('pushes').list(environment, { state: 'dead' }), [{ lastError: /answered 403/ }]);
});

t.test(
  'a push service that is down is asked again by plan, whatever short wait it asks for, and the last failure is logged',
  async (t) => {
    const { host, receiver } = await setUp(t);
    receiver.answer = { status: 503, headers: { 'retry-after': '1' } };
    await notify(host, 1);
    for (const [attempt, wait] of [0, 10_000, 60_000, 600_000, 3_600_000].entries()) {
      if (wait > 0) await host.runJobs(wait - 1);
      t.equal(receiver.received.length, attempt);
      await host.runJobs(1);
      t.equal(receiver.received.length, attempt + 1);
    }
    t.same(await host.queue('pushes').count(), { waiting: 0, dead: 1 });
    t.match(host.logged, [{ level: 'error', message: /after its last attempt/, fields: { user: 'bob' } }]);
  },
);

t.test('what was read, and what settings or filters keep back, is not pushed', async (t) => {
  const { host, receiver } = await setUp(t);
  await notify(host, 1);
  host.data.notifications.set('ntf_1', notificationOf({ readAt: '2026-01-05T12:00:01.000Z' }));
  host.data.off.add('bob web-push reply');
  await notify(host, 2, { kind: 'reply' });
  host.data.verdict = (_, payload) => (payload as { channel: string }).channel !== 'web-push';
  await notify(host, 3);
  await host.runJobs();
  t.equal(receiver.received.length, 0);
});

t.test('a browser can ask for the key and unsubscribe', async (t) => {
  const { host, receiver, publicKey } = await setUp(t);
  t.same(JSON.parse((await host.route('GET key', { userId: 'bob' })).body), { publicKey });
  t.match(
    await host.route('DELETE subscription', {
      userId: 'ann',
      body: JSON.stringify({ endpoint: `${receiver.url}/push/1` }),
    }),
    { status: 200 },
  );
  t.equal((await host.kv.list({ prefix: 'subscription/' })).length, 1, 'of another user it is left alone');
  t.match(
    await host.route('DELETE subscription', {
      userId: 'bob',
      body: JSON.stringify({ endpoint: `${receiver.url}/push/1` }),
    }),
    { status: 200 },
  );
  t.same(await host.kv.list({ prefix: 'subscription/' }), []);
  t.same((await host.command('keys')).json, { publicKey, created: false }, 'the keys are made once');
});

t.test('a wrong subscription is refused with the reason', async (t) => {
  const { host } = await setUp(t);
  const { p256dh, auth } = newBrowser();
  const endpoint = 'https://push.example.com/1';
  const cases: [unknown, RegExp][] = [
    ['{', /not JSON/],
    [{ endpoint }, /must be a push subscription/],
    [{ endpoint: 'http://push.example.com/1', keys: { p256dh, auth } }, /endpoint must be an https URL/],
    [{ endpoint, keys: { p256dh: auth, auth } }, /keys\.p256dh must be/],
    [{ endpoint, keys: { p256dh: Buffer.alloc(65, 4).toString('base64url'), auth } }, /keys\.p256dh must be/],
    [{ endpoint, keys: { p256dh, auth: p256dh } }, /keys\.auth must be 16 bytes/],
  ];
  for (const [body, message] of cases) {
    const answer = await host.route('POST subscription', {
      userId: 'bob',
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    t.match([answer.status, JSON.parse(answer.body)], [400, { error: message }]);
  }
  for (let i = 2; i <= 20; i++) t.equal(await subscribe(host, newBrowser(), `${endpoint}${i}`), 201);
  t.equal(await subscribe(host, newBrowser(), `${endpoint}21`), 400, 'the twenty-first');
});

t.test('of sixty browsers that subscribe at the same time, as many are taken as a user may have', async (t) => {
  const { host } = await setUp(t);
  const browser = newBrowser();
  const endpoints = Array.from({ length: 60 }, (_, i) => `https://push.example.com/${i}`);
  const statuses = await Promise.all(endpoints.map((endpoint) => subscribe(host, browser, endpoint, 'cleo')));
  t.equal(statuses.filter((status) => status === 201).length, 20);
  t.equal(statuses.filter((status) => status === 400).length, 40);
  const taken = endpoints.filter((_, i) => statuses[i] === 201);
  const again = await Promise.all(
    [...taken, ...taken].map((endpoint) => subscribe(host, newBrowser(), endpoint, 'cleo')),
  );
  t.strictSame(new Set(again), new Set([201]), 'a browser that is known takes no place more');
  await host.emit(userUpdated(1, 'cleo', { erased: true }));
  t.strictSame((await host.kv.list({ prefix: 'subscription/' })).length, 1, 'only that of the other user is left');
});

t.test(
  'the erasure of a user removes more subscriptions than there may be, as older versions could store them',
  async (t) => {
    const { host } = await setUp(t);
    const [first] = await host.kv.list({ prefix: 'subscription/' });
    const prefix = first?.key.slice(0, -2) ?? '';
    const value = (n: number) => ({
      ...(first?.value as { keys: { p256dh: string; auth: string } }),
      endpoint: `https://push.example.com/${n}`,
    });
    for (let n = 0; n < 45; n++) await host.kv.put(`${prefix}${'0'.repeat(30)}${n}`, value(n));
    t.equal(await subscribe(host, newBrowser(), 'https://push.example.com/46'), 400);
    await host.emit(userUpdated(1, 'bob', { erased: true }));
    t.strictSame(await host.kv.list({ prefix: 'subscription/' }), []);
  },
);
