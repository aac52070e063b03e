import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import t, { type Test } from 'tap';
import moderation from '../../plugins/moderation-http/index.ts';
import { hostPlugin, type TestHost } from '../doubles/plugin-host.ts';
import { type Answer, type Receiver, startReceiver, SWITCHES } from '../helpers/receiver.ts';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const comment = { userId: 'ann', body: 'Is this fine?', mentions: [], metadata: {}, attachmentIds: [] };
const payload = { roomId: 'room', threadId: 'th_1', comment };

async function setUp(t: Test, answer: Answer, config: object = {}): Promise<{ host: TestHost; receiver: Receiver }> {
  const receiver = await startReceiver(t, answer);
  return {
    receiver,
    host: await hostPlugin(moderation, { config: { url: receiver.url, secret: SECRET, timeoutMs: 9_000, ...config } }),
  };
}

const answers =
  (status: number, body: unknown): Answer =>
  (response) =>
    response
      .writeHead(status, { 'Content-Type': 'application/json' })
      .end(typeof body === 'string' ? body : JSON.stringify(body));

t.test('the service is asked with a signature of Standard Webhooks', async (t) => {
  const { host, receiver } = await setUp(t, 204);
  t.equal(await host.filter('comment.create', payload), undefined);
  const [request] = receiver.received;
  const text = request?.body.toString() ?? '';
  t.match(JSON.parse(text), {
    type: 'comment.create',
    timestamp: String,
    data: {
      environment: { slug: 'default' },
      actor: { kind: 'user', userId: 'ann' },
      roomId: 'room',
      threadId: 'th_1',
      comment,
    },
  });
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature } = request?.headers ?? {};
  const expected = createHmac('sha256', Buffer.from(SECRET.slice(6), 'base64'))
    .update(`${String(id)}.${String(timestamp)}.${text}`)
    .digest('base64');
  t.equal(signature, `v1,${expected}`);
  t.ok(
    new Webhook(SECRET).verify(text, request?.headers as Record<string, string>),
    'the signature is of now, whatever the time of the comment',
  );
});

const verdicts: readonly [string, Answer, object | undefined][] = [
  ['204', 204, undefined],
  ['allow', answers(200, { verdict: 'allow' }), undefined],
  [
    'hold with a reason',
    answers(200, { verdict: 'hold', reason: 'score 0.7' }),
    { outcome: 'hold', reason: 'score 0.7' },
  ],
  ['hold', answers(200, { verdict: 'hold' }), { outcome: 'hold', reason: /service/ }],
  [
    'reject with a reason',
    answers(200, { verdict: 'reject', reason: 'No insults.' }),
    { outcome: 'reject', message: 'No insults.', status: 403 },
  ],
  ['reject', answers(200, { verdict: 'reject' }), { outcome: 'reject', message: String }],
];
for (const [name, answer, expected] of verdicts) {
  t.test(`verdict: ${name}`, async (t) => {
    const { host } = await setUp(t, answer);
    const result = await host.filter('comment.create', payload);
    if (expected === undefined) t.equal(result, undefined);
    else t.match(result, expected);
  });
}

const failures: readonly [string, Answer][] = [
  ['no answer in time', () => {}],
  ['500', 500],
  ['201', 201],
  ['a redirect', { status: 302, headers: { Location: 'http://127.0.0.1/' } }],
  ['no JSON', answers(200, '<html>')],
  ['another verdict', answers(200, { verdict: 'maybe' })],
  ['a reason that is no text', answers(200, { verdict: 'hold', reason: 7 })],
  ['too long an answer', answers(200, { verdict: 'allow', reason: 'x'.repeat(20_000) })],
  ['a connection that is cut', (response) => response.destroy()],
  ['a switch to another protocol', (response) => void response.socket?.write(SWITCHES)],
];
for (const [name, answer] of failures) {
  t.test(`failure: ${name}`, async (t) => {
    for (const onError of ['hold', 'open', 'closed']) {
      const { host } = await setUp(t, answer, { onError, ...(name === 'no answer in time' ? { timeoutMs: 300 } : {}) });
      await t.rejects(host.filter('comment.create', payload), {
        name: 'FilterFailure',
        message: 'the moderation service failed',
        onError,
        cause: Error,
      });
    }
  });
}

t.test('a service that is not there counts as a failure, and backends are not checked', async (t) => {
  const { host } = await setUp(t, 204, { url: 'http://127.0.0.1:1' });
  await t.rejects(host.filter('thread.create', { roomId: 'room', position: null, metadata: {}, comment }), {
    name: 'FilterFailure',
    onError: 'hold',
  });
  t.equal(await host.filter('comment.create', payload, { kind: 'backend', userId: null, role: null }), undefined);
});

t.test('a configuration without an address or with another kind of secret is refused', async (t) => {
  await t.rejects(hostPlugin(moderation, { config: { secret: SECRET } }), /wrong configuration/);
  await t.rejects(
    hostPlugin(moderation, { config: { url: 'http://127.0.0.1', secret: 'abc' } }),
    /wrong configuration/,
  );
});
