import { Webhook } from 'standardwebhooks';
import t, { type Test } from 'tap';
import { RETRY_DELAYS_MS } from '../../plugins/webhook/deliver.ts';
import { pagesOf } from '../../plugins/webhook/deliveries.ts';
import webhook from '../../plugins/webhook/index.ts';
import { request } from '../doubles/plugin-data.ts';
import { environment, hostPlugin, type TestHost } from '../doubles/plugin-host.ts';
import { commentCreated, notificationCreated, userUpdated } from '../helpers/plugin-events.ts';
import { type Answer, type Received, type Receiver, startReceiver } from '../helpers/receiver.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

interface Added {
  readonly id: string;
  readonly url: string;
  readonly secret: string;
}

interface Setup {
  readonly host: TestHost;
  readonly receiver: Receiver;
  readonly added: Added;
}

/** The plugin with one endpoint. A receiver that does not answer is given up after a second, not after 15. */
async function setUp(t: Test, answer: Answer = 200, options: Record<string, string> = {}): Promise<Setup> {
  const receiver = await startReceiver(t, answer);
  const host = await hostPlugin(webhook, { http: (url, sent) => request(url, sent, answer === 200 ? 10_000 : 1_000) });
  return { host, receiver, added: await add(host, receiver.url, options) };
}

async function add(host: TestHost, url: string, options: Record<string, string> = {}): Promise<Added> {
  return (await host.command('add', { url, ...options })).json as unknown as Added;
}

async function listed(host: TestHost): Promise<Record<string, unknown>> {
  const { items } = (await host.command('list')).json as unknown as { items: Record<string, unknown>[] };
  return items[0] ?? {};
}

function bodyOf({ body }: Received): { type: string; timestamp: string; data: Record<string, unknown> } {
  return JSON.parse(body.toString()) as ReturnType<typeof bodyOf>;
}

const idsOf = ({ received }: Receiver): unknown[] => received.map(({ headers }) => headers['webhook-id']);

t.test('an event arrives signed, with its type, time, data and position', async (t) => {
  const { host, receiver, added } = await setUp(t);
  t.same(Object.keys(added).slice(0, 2), ['id', 'url']);
  await host.emit(commentCreated(7, { body: 'Grüße' }));
  await host.runJobs();
  t.equal(receiver.received.length, 1);
  const [received] = receiver.received as [Received];
  t.match(received, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'webhook-id': 'evt_7',
      'webhook-timestamp': String(host.clock.now() / 1_000),
    },
  });
  t.equal(
    received.headers['webhook-signature'],
    new Webhook(added.secret).sign('evt_7', new Date(host.clock.now()), received.body.toString()),
  );
  const body = bodyOf(received);
  t.same(Object.keys(body), ['type', 'timestamp', 'data']);
  t.match(body, {
    type: 'comment.created',
    timestamp: '2026-01-05T12:00:00.000Z',
    data: {
      id: 'com_1',
      body: 'Grüße',
      seq: 7,
      roomId: 'page-1',
      threadId: 'thr_1',
      actor: { userId: 'ann', via: 'rest' },
    },
  });
  t.equal(received.body.toString(), JSON.stringify(body), 'minified');
  t.same(await host.queue('deliveries').count(), { waiting: 0, dead: 0 });
});

t.test('an endpoint gets the types of events that it asked for', async (t) => {
  const { host, receiver } = await setUp(t, 200, { events: 'comment.created, comment.deleted' });
  await host.emit({ ...commentCreated(1), type: 'thread.resolved' });
  await host.emit(commentCreated(2));
  await host.runJobs();
  t.same(idsOf(receiver), ['evt_2']);
});

t.test('a long event is sent as ids alone', async (t) => {
  const { host, receiver } = await setUp(t);
  await host.emit(commentCreated(1, { body: 'é'.repeat(10_000), metadata: { note: 'x'.repeat(4_000) } }));
  await host.emit(commentCreated(2, { body: 'x'.repeat(10_000) }));
  const thread = {
    ...commentCreated(3),
    type: 'thread.created' as const,
    data: { thread: { id: 'thr_1', metadata: { a: 'x'.repeat(30_000) } }, comment: { id: 'com_1', body: 'Hi' } },
  };
  await host.emit(thread);
  await host.runJobs();
  const [thin, full, created] = receiver.received as [Received, Received, Received];
  t.ok(thin.body.length < 1_024);
  t.match(bodyOf(thin).data, { thin: true, id: 'com_1', threadId: 'thr_1', userId: 'ann', seq: 1, roomId: 'page-1' });
  t.notOk('body' in bodyOf(thin).data);
  t.equal(bodyOf(full).data['thin'], undefined, 'one of 20 KB or less is complete');
  t.match(bodyOf(created).data, { thin: true, thread: { id: 'thr_1' }, comment: { id: 'com_1' } });
  t.notOk(created.body.toString().includes('Hi'));
});

t.test(
  'a failed delivery is tried eight times with the same id and body, then listed, and replayed on demand',
  async (t) => {
    const { host, receiver } = await setUp(t, 500);
    await host.emit(commentCreated(1));
    await host.runJobs();
    const delays = [5_000, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR];
    for (const [i, delay] of delays.entries()) {
      await host.runJobs(delay - 1);
      t.equal(receiver.received.length, i + 1, `not before ${delay} ms`);
      await host.runJobs(1);
      t.equal(receiver.received.length, i + 2);
    }
    await host.runJobs(100 * HOUR);
    t.equal(receiver.received.length, 8);
    t.equal(new Set(idsOf(receiver)).size, 1);
    t.equal(new Set(receiver.received.map(({ body }) => body.toString())).size, 1);
    t.equal(
      new Set(receiver.received.map(({ headers }) => headers['webhook-timestamp'])).size,
      8,
      'each attempt has its own time',
    );

    const { items } = (await host.command('failed')).json as unknown as { items: { id: string }[] };
    t.match(items, [{ eventId: 'evt_1', type: 'comment.created', seq: 1, attempts: 8, reason: 'answered 500' }]);
    t.match(
      host.logged.map(({ message }) => message),
      [/endpoint fails/, /not delivered after its last attempt/],
    );
    receiver.answer = 204;
    t.same((await host.command(`replay ${items[0]?.id}`)).json, { replayed: 1 });
    await host.runJobs();
    t.same(idsOf(receiver)[8], 'evt_1');
    t.same((await host.command('failed')).json, { items: [] });
    await t.rejects(host.command(`replay ${items[0]?.id}`), { name: 'UsageError', message: /no failed delivery/ });
  },
);

const failures: readonly (readonly [what: string, answer: Answer, reason: string | RegExp])[] = [
  ['an error', 500, 'answered 500'],
  [
    'a redirect, which is not followed',
    { status: 302, headers: { location: '/elsewhere' } },
    /answered 302: redirects are not followed/,
  ],
  ['a refusal', 404, 'answered 404'],
  ['no answer', () => {}, /time/],
  ['a cut connection', (response) => void response.destroy(), /./],
  ['an answer without end', (response) => void response.writeHead(200).write('x'), /./],
  ['an answer that is no HTTP', (response) => void response.socket?.end('hello\r\n\r\n'), /./],
];
for (const [what, answer, reason] of failures) {
  t.test(`${what} is tried again`, async (t) => {
    const { host, receiver } = await setUp(t, answer);
    await host.emit(commentCreated(1));
    await host.runJobs();
    const [job] = await host.queue('deliveries').list(environment, { state: 'waiting' });
    t.match(job, { attempts: 1, lastError: reason });
    t.match(await listed(host), { enabled: true, failingReason: reason, failingSince: '2026-01-05T12:00:00.000Z' });
    receiver.answer = 200;
    await host.runJobs(5_000);
    t.same(
      receiver.received.map(({ path }) => path),
      ['/', '/'],
    );
    t.match(await listed(host), { failingSince: null, failingReason: null });
    t.match(
      host.logged.map(({ message }) => message),
      [/endpoint fails/, /answers again/],
    );
  });
}

t.test('a slow answer is a delivery, once', async (t) => {
  const { host, receiver } = await setUp(t);
  receiver.answer = (response) => void setTimeout(() => response.writeHead(200).end('done'), 1_500);
  await host.emit(commentCreated(1));
  await host.runJobs();
  t.same(await host.queue('deliveries').count(), { waiting: 0, dead: 0 });
  await host.runJobs(60_000);
  t.equal(receiver.received.length, 1);
});

t.test('Retry-After of 429 and 503 makes the wait longer, but never shorter', async (t) => {
  const { host, receiver } = await setUp(t, { status: 429, headers: { 'retry-after': '60' } });
  await host.emit(commentCreated(1));
  await host.runJobs();
  await host.runJobs(MINUTE - 1);
  t.equal(receiver.received.length, 1);
  receiver.answer = { status: 503, headers: { 'retry-after': '1' } };
  await host.runJobs(1);
  t.equal(receiver.received.length, 2);
  await host.runJobs(5 * MINUTE - 1);
  t.equal(receiver.received.length, 2);
  await host.runJobs(1);
  t.equal(receiver.received.length, 3);
});

t.test(
  'the data of a user who was erased meanwhile is sent no more, neither at the next attempt nor by a replay',
  async (t) => {
    const at = '2026-01-05T12:00:00.000Z';
    const personal = { name: 'Zoe', avatarUrl: 'https://example.com/zoe.png', metadata: { phone: '555' } };
    const updated = (seq: number) => ({
      ...userUpdated(seq, 'zoe'),
      data: { ...(userUpdated(seq, 'zoe').data as object), ...personal },
    });
    const user = {
      id: 'zoe',
      userId: 'zoe',
      email: null,
      kind: 'user',
      createdAt: at,
      updatedAt: at,
      firstSeenAt: null,
      lastSeenAt: null,
      ...personal,
    } as const;
    const { host, receiver, added } = await setUp(t, 500);
    host.data.users.set('zoe', user);
    await host.emit(updated(1));
    await host.runJobs();
    t.match(bodyOf(receiver.received[0] as Received), { data: personal }, 'before');
    host.data.users.delete('zoe');
    await host.runJobs(5_000);
    t.match(bodyOf(receiver.received[1] as Received), {
      type: 'user.updated',
      timestamp: at,
      data: { userId: 'zoe', name: null, avatarUrl: null, metadata: {}, seq: 1 },
    });
    t.notMatch(receiver.received[1]?.body.toString(), /Zoe|zoe\.png|555/);
    host.data.users.set('zoe', { ...user, createdAt: '2026-01-05T12:00:05.000Z', name: 'Another Zoe' });
    for (const wait of RETRY_DELAYS_MS.slice(1)) await host.runJobs(wait);
    await host.command(`replay ${added.id}:evt_1`);
    receiver.answer = 200;
    await host.runJobs();
    t.notMatch(
      receiver.received
        .slice(1)
        .map(({ body }) => body.toString())
        .join(),
      /Zoe|zoe\.png|555/,
      'also if another user has the id since',
    );
  },
);

t.test('410 disables the endpoint until it is enabled', async (t) => {
  const { host, receiver, added } = await setUp(t, 410);
  await host.emit(commentCreated(1));
  await host.emit(commentCreated(2));
  await host.runJobs();
  t.equal(receiver.received.length, 1, 'deliveries that wait are not sent');
  t.match(await listed(host), { enabled: false, disabledReason: 'it answered 410 (gone)' });
  t.same(await host.queue('deliveries').count(), { waiting: 0, dead: 2 });
  await host.emit(commentCreated(3));
  await t.rejects(host.command(`replay ${added.id}`, { failed: true }), {
    message: /is disabled: it answered 410/,
    remedies: [/webhook enable .* enables it/],
  });

  receiver.answer = 200;
  await host.command(`enable ${added.id}`);
  t.same((await host.command(`replay ${added.id}`, { failed: true })).json, { replayed: 2 });
  t.same((await host.command(`replay ${added.id}`, { from: '3' })).json, { replayed: 1 });
  await host.runJobs();
  t.same(idsOf(receiver), ['evt_1', 'evt_1', 'evt_2', 'evt_3']);
});

t.test('an endpoint that has failed for five days is disabled', async (t) => {
  const { host, receiver } = await setUp(t, 500);
  await host.emit(commentCreated(1));
  await host.runJobs();
  host.clock.advance(5 * 24 * HOUR - 1);
  await host.emit(commentCreated(2));
  await host.runJobs();
  t.match(await listed(host), { enabled: true });
  await host.runJobs(5_000);
  t.match(await listed(host), { enabled: false, disabledReason: /every delivery has failed for 5 days: answered 500/ });
  t.match(host.logged.at(-1), { level: 'error', message: /disabled/, fields: { url: receiver.url } });
});

t.test('one that succeeds in between is not disabled', async (t) => {
  const { host, receiver } = await setUp(t, 500);
  await host.emit(commentCreated(1));
  await host.runJobs();
  receiver.answer = 200;
  await host.runJobs(5_000);
  receiver.answer = 500;
  host.clock.advance(6 * 24 * HOUR);
  await host.emit(commentCreated(2));
  await host.runJobs();
  t.match(await listed(host), { enabled: true });
});

t.test('one endpoint that fails leaves the others alone', async (t) => {
  const { host } = await setUp(t, () => {});
  const other = await startReceiver(t);
  await add(host, other.url);
  for (let seq = 1; seq <= 2; seq++) await host.emit(commentCreated(seq));
  await host.runJobs();
  t.same(idsOf(other), ['evt_1', 'evt_2']);
});

t.test('after a rotation both secrets sign until the overlap ends', async (t) => {
  const { host, receiver, added } = await setUp(t);
  const { secret } = (await host.command(`rotate ${added.id}`, { overlapHours: '2' })).json as unknown as Added;
  t.not(secret, added.secret);
  await host.emit(commentCreated(1));
  await host.runJobs();
  host.clock.advance(2 * HOUR);
  await host.emit(commentCreated(2));
  await host.runJobs();
  const [both, one] = receiver.received.map((received) => String(received.headers['webhook-signature']).split(' '));
  const signatures = (at: number, id: string, body: string): string[] =>
    [secret, added.secret].map((key) => new Webhook(key).sign(id, new Date(at), body));
  t.same(both, signatures(host.clock.now() - 2 * HOUR, 'evt_1', String(receiver.received[0]?.body)));
  t.same(one, signatures(host.clock.now(), 'evt_2', String(receiver.received[1]?.body)).slice(0, 1));
  await t.rejects(
    host.command(`rotate ${added.id}`, { overlapHours: '200' }),
    /--overlap-hours must be an integer from 0 to 168/,
  );
});

t.test('each secret signs until its own overlap ends, whatever is rotated meanwhile', async (t) => {
  const { host, receiver, added } = await setUp(t);
  const rotate = async (hours: string): Promise<string> =>
    ((await host.command(`rotate ${added.id}`, { overlapHours: hours })).json as unknown as Added).secret;
  const secrets = [added.secret, await rotate('4'), await rotate('2')];
  const signers = async (seq: number): Promise<number[]> => {
    await host.emit(commentCreated(seq));
    await host.runJobs();
    const { headers, body } = receiver.received.at(-1) ?? {};
    const signatures = String(headers?.['webhook-signature']).split(' ');
    return secrets.flatMap((secret, n) =>
      signatures.includes(new Webhook(secret).sign(`evt_${seq}`, new Date(host.clock.now()), String(body))) ? [n] : [],
    );
  };
  t.same(await signers(1), [0, 1, 2]);
  host.clock.advance(2 * HOUR);
  t.same(await signers(2), [0, 2]);
  for (let n = 0; n < 4; n++) await rotate('3');
  await t.rejects(rotate('3'), { name: 'UsageError', message: /5 earlier secrets of wh_\S+ sign too/ });
  secrets.push(await rotate('0'));
  t.same(await signers(3), [0, 2, 3]);
});

t.test('a secret that was replaced before secrets were kept in a list signs until its time', async (t) => {
  const { host, receiver, added } = await setUp(t);
  const { kv } = host;
  const stored = (await kv.get(`endpoint/${added.id}`)) as object;
  const old = 'whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';
  await kv.put(`endpoint/${added.id}`, { ...stored, previous: { secret: old, until: host.clock.now() + HOUR } });
  await host.command(`rotate ${added.id}`, { overlapHours: '1' });
  await host.emit(commentCreated(1));
  await host.runJobs();
  t.ok(
    String(receiver.received[0]?.headers['webhook-signature']).includes(
      new Webhook(old).sign('evt_1', new Date(host.clock.now()), String(receiver.received[0]?.body)),
    ),
  );
});

t.test('a range of the log is sent again, without what the endpoint does not receive', async (t) => {
  const { host, receiver, added } = await setUp(t, 200, { events: 'comment.created' });
  for (let seq = 1; seq <= 6; seq++)
    await host.emit(seq === 4 ? { ...commentCreated(seq), type: 'thread.resolved' } : commentCreated(seq));
  await host.runJobs();
  receiver.received.length = 0;
  t.same((await host.command(`replay ${added.id}`, { from: '2', to: '5' })).json, { replayed: 3 });
  await host.runJobs();
  t.same(idsOf(receiver), ['evt_2', 'evt_3', 'evt_5']);
  host.data.log.splice(0, 3);
  const partly = await host.command(`replay ${added.id}`, { from: '2' });
  t.same(partly.json, { replayed: 2, missing: { from: 2, to: 3 } });
  t.equal(
    partly.text,
    '2 deliveries are due now. The events 2 to 3 are no longer in the log, so they cannot be delivered again.',
  );
  t.same((await host.command(`replay ${added.id}`, { from: '1', to: '2' })).json, {
    replayed: 0,
    missing: { from: 1, to: 2 },
  });
  t.same((await host.command(`replay ${added.id}`, { from: '7' })).json, { replayed: 0 });
  await t.rejects(host.command(`replay ${added.id}`, { from: '0' }), /--from must be an integer, at least 1/);
  await t.rejects(host.command(`replay ${added.id}`, { from: '5', to: '4' }), /--to must be an integer, at least 5/);
  await t.rejects(host.command(`replay ${added.id}`), /--failed or --from/);
});

t.test('a test message is sent at once and its outcome shown', async (t) => {
  const { host, receiver, added } = await setUp(t);
  t.match((await host.command(`test ${added.id}`)).json, {
    ok: true,
    status: 200,
    reason: null,
    webhookId: /^evt_test_/,
  });
  t.match(bodyOf(receiver.received[0] as Received), { type: 'webhook.test', data: { endpointId: added.id } });
  receiver.answer = 503;
  const failed = await host.command(`test ${added.id}`);
  t.match(failed, {
    json: { ok: false, status: 503, reason: 'answered 503' },
    text: /must answer 2xx within 15 seconds/,
  });
  t.same(await host.queue('deliveries').count(), { waiting: 0, dead: 0 }, 'it is not tried again');
});

t.test('filters and the settings of users keep events from an endpoint', async (t) => {
  const { host, receiver } = await setUp(t);
  host.data.verdict = (name, payload) =>
    name !== 'webhook.deliver' || (payload as { event: { seq: number } }).event.seq !== 1;
  host.data.off.add('bob webhook reply');
  await host.emit(commentCreated(1));
  await host.emit(commentCreated(2));
  await host.emit(notificationCreated(3));
  await host.emit(notificationCreated(4, { kind: 'reply' }));
  await host.runJobs();
  t.same(idsOf(receiver), ['evt_2', 'evt_3']);
  host.data.verdict = (name) => name !== 'notification.deliver';
  await host.emit(notificationCreated(5));
  await host.runJobs();
  t.equal(receiver.received.length, 2);
});

t.test('a removed endpoint receives nothing more', async (t) => {
  const { host, receiver, added } = await setUp(t);
  await host.emit(commentCreated(1));
  await host.command(`remove ${added.id}`);
  await host.emit(commentCreated(2));
  await host.runJobs();
  t.equal(receiver.received.length, 0);
  t.same(await host.queue('deliveries').count(), { waiting: 0, dead: 0 });
  for (const line of ['remove', 'test', 'rotate', 'enable', 'replay'])
    await t.rejects(host.command(`${line} ${added.id}`, { from: '1' }), {
      name: 'UsageError',
      message: /has no webhook endpoint/,
    });
});

t.test('the deliveries of a removed endpoint are removed, however many, and those to others stay', async (t) => {
  const { host, added } = await setUp(t, 410);
  const waits = await startReceiver(t, 500);
  const other = await add(host, waits.url);
  await host.emit(commentCreated(1));
  await host.runJobs();
  await host.command(`enable ${added.id}`);
  const queue = host.queue('deliveries');
  const payload = { ...((await queue.get(environment, `${added.id}:evt_1`))?.payload as object) };
  await queue.add(
    environment,
    Array.from({ length: 2_100 }, (_, i) => ({ id: `${added.id}:evt_w${i}`, payload, delayMs: HOUR, group: added.id })),
  );
  await queue.add(environment, [
    { id: `${other.id}:evt_w`, payload: { ...payload, endpointId: other.id }, delayMs: 2 * HOUR, group: other.id },
  ]);
  t.same(await queue.count(), { waiting: 2_102, dead: 1 });

  t.match(await host.command(`remove ${added.id}`), {
    json: { deleted: true, deliveries: 2_101 },
    text: `Removed webhook ${added.id} and 2101 deliveries.`,
  });
  t.same(await queue.count(), { waiting: 2, dead: 0 });
  t.same((await host.command('failed')).json, { items: [] });
  t.match(await host.command(`remove ${other.id}`), { json: { deliveries: 2 } });
});

t.test(
  'deliveries that an interrupted removal has left are removed by the next one, and are not replayed',
  async (t) => {
    const { host, receiver, added } = await setUp(t, 410);
    await host.emit(commentCreated(1));
    await host.runJobs();
    await host.kv.delete(`endpoint/${added.id}`);
    const delivery = `${added.id}:evt_1`;
    t.match((await host.command('failed')).json, { items: [{ id: delivery }] });
    await t.rejects(host.command(`replay ${delivery}`), {
      name: 'UsageError',
      message: `Environment default has no webhook endpoint ${added.id}.`,
    });
    t.same(await host.queue('deliveries').count(), { waiting: 0, dead: 1 });
    t.match(await host.command(`remove ${added.id}`), {
      json: { deliveries: 1 },
      text: `Removed webhook ${added.id} and 1 delivery.`,
    });
    t.same((await host.command('failed')).json, { items: [] });
    await t.rejects(host.command(`remove ${added.id}`), { name: 'UsageError', message: /has no webhook endpoint/ });
    t.equal(receiver.received.length, 1);
  },
);

t.test('a failed delivery to a disabled endpoint is not replayed', async (t) => {
  const { host, added } = await setUp(t, 410);
  await host.emit(commentCreated(1));
  await host.runJobs();
  await t.rejects(host.command(`replay ${added.id}:evt_1`), {
    name: 'UsageError',
    message: /is disabled: it answered 410/,
    remedies: [/webhook enable .* enables it/],
  });
});

t.test('a list of deliveries that change while it is read is complete', async (t) => {
  const { host, added } = await setUp(t, 410);
  await host.emit(commentCreated(1));
  await host.runJobs();
  const queue = host.queue('deliveries');
  const payload = (await queue.get(environment, `${added.id}:evt_1`))?.payload ?? null;
  await queue.add(
    environment,
    Array.from({ length: 1_500 }, (_, i) => ({ id: `${added.id}:evt_w${i}`, payload, delayMs: HOUR, group: added.id })),
  );
  const seen = new Set<string>();
  for await (const page of pagesOf(queue, environment, 'waiting')) {
    for (const { id } of page) seen.add(id);
    if (seen.size === 1_000) await queue.remove(environment, page.at(-1)?.id ?? '');
  }
  t.equal(seen.size, 1_500);
});

t.test('a mistake in `webhook add` is named', async (t) => {
  const host = await hostPlugin(webhook);
  const cases: [Record<string, string>, RegExp][] = [
    [{ url: 'example.com/hook' }, /--url must be an http or https URL/],
    [{ url: 'ftp://example.com/' }, /--url must be an http or https URL/],
    [{ url: 'https://user:pass@example.com/' }, /--url must not contain a user name/],
    [{ url: `https://example.com/${'x'.repeat(2_048)}` }, /--url has 2068 characters; at most 2048/],
    [{ url: 'https://example.com/', events: 'comment.created,comment.made' }, /--events contains "comment.made"/],
    [{ url: 'https://example.com/', secret: 'hunter2' }, /--secret must be whsec_/],
  ];
  for (const [options, message] of cases)
    await t.rejects(host.command('add', options), { name: 'UsageError', message });
  t.same((await host.command('list')).json, { items: [] });
  for (let i = 0; i < 100; i++) await add(host, 'https://example.com/');
  await t.rejects(add(host, 'https://example.com/'), /has 100 webhook endpoints/);
  const secret = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;
  const other = await hostPlugin(webhook);
  t.equal((await add(other, 'https://example.com/', { secret })).secret, secret);
});
