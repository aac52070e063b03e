import t, { type Test } from 'tap';
import slack from '../../plugins/slack/index.ts';
import { environment, hostPlugin, type TestHost } from '../doubles/plugin-host.ts';
import { commentCreated, commentOf, notificationCreated } from '../helpers/plugin-events.ts';
import { type Receiver, startReceiver } from '../helpers/receiver.ts';

interface Setup {
  readonly host: TestHost;
  readonly receiver: Receiver;
}

async function setUp(
  t: Test,
  config: Record<string, unknown> = {},
  target: Record<string, unknown> = {},
): Promise<Setup> {
  const receiver = await startReceiver(t);
  const host = await hostPlugin(slack, {
    config: { targets: [{ url: `${receiver.url}/services/T/B/secret`, ...target }], ...config },
  });
  host.data.users.set('ann', {
    id: 'ann',
    userId: 'ann',
    name: 'Ann',
    avatarUrl: null,
    email: null,
    kind: 'user',
    metadata: {},
    createdAt: '',
    updatedAt: '',
    firstSeenAt: null,
    lastSeenAt: null,
  });
  return { host, receiver };
}

/** Stores a comment and emits its event. */
async function comment(host: TestHost, seq: number, body = 'Hello', roomId = 'page-1'): Promise<void> {
  const fields = { id: `com_${seq}`, body };
  host.data.allComments.set(fields.id, commentOf(fields));
  await host.emit(commentCreated(seq, fields, roomId));
}

/** Ends names and addresses, and shows nothing. */
const NOTHING = '\u200B';

const sent = ({ received }: Receiver): Record<string, unknown>[] =>
  received.map(({ body }) => JSON.parse(body.toString()) as Record<string, unknown>);

t.test('a comment is posted with its author, place, text and link', async (t) => {
  const { host, receiver } = await setUp(t, { linkTemplate: 'https://app.example.com/{roomId}?c={commentId}' });
  await comment(host, 1, 'Looks good.\nShip it.', 'page 1');
  await host.runJobs();
  const text = '*Ann* commented on <https://app.example.com/page%201?c=com_1|page 1>';
  t.same(sent(receiver), [
    {
      text: `${text}\n> Looks good.\n> Ship it.`,
      blocks: [
        { type: 'section', text: { type: 'mrkdwn', text, verbatim: true } },
        { type: 'section', text: { type: 'mrkdwn', text: '> Looks good.\n> Ship it.', verbatim: true } },
      ],
      unfurl_links: false,
      unfurl_media: false,
    },
  ]);
  t.match(receiver.received[0], {
    method: 'POST',
    path: '/services/T/B/secret',
    headers: { 'content-type': 'application/json' },
  });
});

t.test('a new thread is posted once, with the address of its room as link', async (t) => {
  const { host, receiver } = await setUp(t);
  const first = commentOf({ body: 'First' });
  host.data.allComments.set(first.id, first);
  await host.emit({
    ...commentCreated(1, {}, 'https://shop.example.com/cart'),
    type: 'thread.created',
    data: { thread: { id: 'thr_1' }, comment: first },
  });
  await host.runJobs();
  t.match(sent(receiver), [
    {
      text: `*Ann* started a thread on <https://shop.example.com/cart|https:${NOTHING}//shop.example.com/cart>\n> First`,
      blocks: [
        { text: { text: '*Ann* started a thread on <https://shop.example.com/cart|https://shop.example.com/cart>' } },
        {},
      ],
    },
  ]);
});

t.test('text of users can neither mention nor link, nor show a picture', async (t) => {
  const { host, receiver } = await setUp(t);
  const body =
    '<!channel> <@U1> <https://evil.example|Click> & @here @Channel @bob www.evil.example ![picture](https://evil.example/p.png) [a][b]\n[b]: https://evil.example';
  await comment(host, 1, body, '<!everyone>\n[a](https://evil.example)');
  await host.runJobs();
  const [message = {}] = sent(receiver);
  const text = String(message['text']);
  t.notMatch(text, /<[^>]*>/, 'nothing of it is Slack syntax');
  t.notMatch(text, /@\w/, 'nor a mention of Mattermost');
  t.notMatch(text, /:\/\/|www\.\w|\][([:]/, 'nor a link or picture of Markdown');
  t.equal(text.split('\n').length, 3, 'the heading is one line');
  t.match(text, '&lt;!channel&gt; &lt;@');
  t.match(
    text.replaceAll(NOTHING, ''),
    '@here @Channel @bob www.evil.example ![picture](https://evil.example/p.png)',
    'it shows as it was written',
  );
  for (const block of message['blocks'] as { text: { text: string; verbatim: boolean } }[]) {
    t.equal(block.text.verbatim, true, 'Slack makes nothing of it');
    t.notMatch(block.text.text, /<[^>]*>/);
  }
});

t.test('a link cannot leave its place', async (t) => {
  const { host, receiver } = await setUp(t);
  await comment(host, 1, 'x', 'https://a.example/?q=1&x=|Click> <!channel>');
  await host.runJobs();
  t.match(
    String(sent(receiver)[0]?.['text']),
    /^\*Ann\* commented on <https:\/\/a\.example\/\?q=1&amp;x=%7CClick[^<>|]*\|[^<>|]*\|[^<>]*>\n/,
  );
});

t.test('Discord gets its own payload, which mentions nobody', async (t) => {
  const { host, receiver } = await setUp(t, {}, { format: 'discord' });
  receiver.answer = 204;
  await comment(host, 1, '@everyone **x** [a](https://evil.example)', 'https://shop.example.com/');
  await host.runJobs();
  t.same(sent(receiver), [
    {
      content: '**Ann** commented on',
      embeds: [
        {
          title: `https:${NOTHING}//shop.example.com/`,
          description: String.raw`@${NOTHING}everyone \*\*x\*\* \[a\]\(https:${NOTHING}//evil.example\)`,
          url: 'https://shop.example.com/',
        },
      ],
      allowed_mentions: { parse: [] },
    },
  ]);
});

t.test('long texts are shortened', async (t) => {
  const { host, receiver } = await setUp(t);
  await comment(host, 1, '😀'.repeat(5_000), 'r'.repeat(512));
  await host.runJobs();
  const text = String(sent(receiver)[0]?.['text']);
  t.ok(text.length < 700);
  t.ok(text.isWellFormed());
  t.match(text, /…$/);
});

t.test('a link that is too long for the target is left out, and the message is posted', async (t) => {
  for (const format of ['slack', 'discord']) {
    const { host, receiver } = await setUp(
      t,
      { linkTemplate: `https://app.example.com/${'p'.repeat(1_500)}/{roomId}` },
      { format },
    );
    await comment(host, 1, 'short', 'room');
    await comment(host, 2, '&'.repeat(10_000), '漢'.repeat(512));
    await host.runJobs();
    const [linked, long] = sent(receiver).map((message) => JSON.stringify(message));
    t.match(linked, 'https://app.example.com/', format);
    t.notMatch(long, 'https://app.example.com/', format);
    t.match(long, '漢漢', format);
    for (const { blocks = [] } of sent(receiver) as { blocks?: { text: { text: string } }[] }[])
      t.ok(blocks.every(({ text }) => text.text.length <= 3_000));
  }
});

t.test('rooms decide where a comment is posted', async (t) => {
  const { host, receiver } = await setUp(t, {}, { rooms: ['shop/*', 'home'] });
  for (const [i, room] of ['shop/cart', 'home', 'homes', 'blog/1'].entries()) await comment(host, i, room, room);
  await host.runJobs();
  t.same(
    sent(receiver).map(({ text }) => /> (.*)/.exec(String(text))?.[1]),
    ['shop/cart', 'home'],
  );
});

t.test('429 is tried again when it says, and an error by plan', async (t) => {
  const { host, receiver } = await setUp(t);
  receiver.answer = { status: 429, headers: { 'retry-after': '30' } };
  await comment(host, 1);
  await host.runJobs();
  await host.runJobs(29_999);
  t.equal(receiver.received.length, 1);
  receiver.answer = 500;
  await host.runJobs(1);
  t.equal(receiver.received.length, 2);
  receiver.answer = 200;
  await host.runJobs(60_000);
  t.equal(receiver.received.length, 3);
  t.same(await host.queue('posts').count(), { waiting: 0, dead: 0 });
});

t.test('a target that asks for a short wait gets the message after it, within the same attempt', async (t) => {
  const { host, receiver } = await setUp(t);
  receiver.answer = (response) =>
    void response.writeHead(receiver.received.length < 3 ? 429 : 200, { 'retry-after': '0.2' }).end();
  await comment(host, 1);
  await host.runJobs();
  t.equal(receiver.received.length, 3);
  t.same(await host.queue('posts').count(), { waiting: 0, dead: 0 });
  const [first, second] = receiver.received.map(({ at }) => at) as [number, number];
  t.ok(second - first >= 990, 'a second later: a target that takes a message per second is not asked more often');
});

t.test(
  'a target that is down is tried again by plan, whatever short wait it asks for, and the last failure is logged',
  async (t) => {
    const { host, receiver } = await setUp(t);
    receiver.answer = { status: 503, headers: { 'retry-after': '1' } };
    await comment(host, 1);
    for (const [attempt, wait] of [0, 10_000, 60_000, 300_000, 1_800_000, 7_200_000].entries()) {
      if (wait > 0) await host.runJobs(wait - 1);
      t.equal(receiver.received.length, attempt);
      await host.runJobs(1);
      t.equal(receiver.received.length, attempt + 1);
    }
    t.same(await host.queue('posts').count(), { waiting: 0, dead: 1 });
    t.match(host.logged, [
      { level: 'error', message: /after its last attempt/, fields: { comment: 'com_1', reason: '127.0.0.1:' } },
    ]);
  },
);

t.test('a refusal is final and logged without the URL, which is a secret', async (t) => {
  const { host, receiver } = await setUp(t);
  receiver.answer = (response) => void response.writeHead(404).end('no_service');
  await comment(host, 1);
  await host.runJobs();
  t.same(await host.queue('posts').count(), { waiting: 0, dead: 1 });
  t.match(host.logged, [{ level: 'error', message: /check the URL/, fields: { reason: /answered 404: no_service/ } }]);
  const [job] = await host.queue('posts').list(environment, { state: 'dead' });
  t.notMatch(JSON.stringify([job, host.logged]), 'secret');
});

t.test('a deleted comment is not posted', async (t) => {
  const { host, receiver } = await setUp(t);
  await comment(host, 1);
  host.data.allComments.clear();
  await host.runJobs();
  t.equal(receiver.received.length, 0);
});

t.test('with `post: notifications`, a comment is posted once if a user who wants it is notified', async (t) => {
  const { host, receiver } = await setUp(t, { post: 'notifications' });
  host.data.off.add('bob slack reply');
  await comment(host, 1);
  await host.emit(notificationCreated(2, { commentId: 'com_1', userId: 'bob', kind: 'reply' }));
  await host.runJobs();
  t.equal(receiver.received.length, 0, 'nobody who wants it');
  await host.emit(notificationCreated(3, { commentId: 'com_1', userId: 'cleo' }));
  await host.runJobs();
  await host.emit(notificationCreated(4, { commentId: 'com_1', userId: 'dan' }));
  await host.runJobs();
  t.equal(receiver.received.length, 1);
  host.data.verdict = (name) => name !== 'notification.deliver';
  host.data.allComments.set('com_5', commentOf({ id: 'com_5' }));
  await host.emit(notificationCreated(5, { commentId: 'com_5', createdAt: '2026-01-09T00:00:00.000Z' }));
  await host.runJobs();
  t.equal(receiver.received.length, 1, 'a filter keeps it back');
  host.data.verdict = () => true;
  await host.emit(notificationCreated(6, { commentId: 'com_5', createdAt: '2026-01-09T00:00:00.000Z' }));
  t.same(
    (await host.kv.list({ prefix: 'posted/' })).map(({ key }) => key),
    ['posted/2026-01-09/com_5'],
    'old marks are removed',
  );
});

t.test('a wrong configuration is refused', async (t) => {
  await t.rejects(hostPlugin(slack, { config: { targets: [{ url: 'hooks.slack.com/x' }] } }));
  await t.rejects(hostPlugin(slack, { config: { targets: [{ url: 'https://hooks.slack.com/x', format: 'teams' }] } }));
});
