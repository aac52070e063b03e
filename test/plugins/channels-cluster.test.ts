import { Webhook } from 'standardwebhooks';
import t from 'tap';
import { until } from '../helpers/cluster.ts';
import { collab, collabJson } from '../helpers/command.ts';
import { startMailServer } from '../helpers/mail-server.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { startPluginCluster } from '../helpers/plugin-cluster.ts';
import { newBrowser } from '../helpers/push-receiver.ts';
import { type Received, type Receiver, startReceiver } from '../helpers/receiver.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { userToken } from '../helpers/user-token.ts';

interface Added {
  readonly id: string;
  readonly url: string;
  readonly secret: string;
}

const typesOf = ({ received }: Receiver): string[] =>
  received.map(({ body }) => (JSON.parse(body.toString()) as { type: string }).type);

const slack = await startReceiver(t);
const cluster = await startPluginCluster(t, [
  { use: 'webhook', allowPrivate: true },
  { use: 'slack', allowPrivate: true, config: { targets: [{ url: slack.url }] } },
]);

t.test('a comment arrives by webhook and in Slack', async (t) => {
  const hook = await startReceiver(t);
  const added = await cluster.run<Added>('webhook', 'add', '--url', hook.url);
  t.match(added, { id: /^wh_/, url: hook.url, secret: /^whsec_/ });
  await cluster.thread('Hello <!channel>');
  await until(() => hook.received.length > 0 && slack.received.length > 0);
  const [{ headers, body }] = hook.received as [Received];
  t.match(new Webhook(added.secret).verify(body, headers as Record<string, string>), {
    type: 'thread.created',
    data: { comment: { body: 'Hello <!channel>' }, roomId: 'home' },
  });
  t.match(JSON.parse(String(slack.received[0]?.body)), {
    text: '*Ann* started a thread on home\n> Hello &lt;!channel&gt;',
  });
});

t.test(
  'a mention arrives by webhook, mail, Slack and push, unless the settings of the user switch that off',
  async (t) => {
    const [hook, slack, push, smtp] = [
      await startReceiver(t),
      await startReceiver(t),
      await startReceiver(t, 201),
      await startMailServer(t),
    ];
    const { url, keys, run, call, thread } = await startPluginCluster(t, [
      { use: 'webhook', allowPrivate: true },
      { use: 'slack', allowPrivate: true, config: { targets: [{ url: slack.url }], post: 'notifications' } },
      {
        use: 'email',
        config: {
          smtp: { host: '127.0.0.1', port: smtp.port, tls: 'none' },
          from: 'comments@example.com',
          delayMinutes: 0,
        },
      },
      { use: 'web-push', allowPrivate: true, config: { subject: 'mailto:ops@example.com' } },
    ]);
    const notified = (): string[] =>
      hook.received
        .map(({ body }) => JSON.parse(String(body)) as { type: string; data: { userId: string } })
        .flatMap(({ type, data }) => (type === 'notification.created' ? [data.userId] : []));
    const posts = (): string[] => slack.received.map(({ body }) => (JSON.parse(String(body)) as { text: string }).text);
    const recipients = (): string[] => smtp.mails.flatMap((mail) => mail.recipients);
    const pushes = (): (string | undefined)[] => push.received.map(({ path }) => path);
    await run('webhook', 'add', '--url', hook.url);
    await run('web-push', 'keys');
    await call('PUT', '/users/cem', { name: 'Cem', email: 'cem@example.com' });
    for (const user of ['bob', 'cem']) {
      const token = await userToken(keys, user);
      const { p256dh, auth } = newBrowser();
      const body = JSON.stringify({ endpoint: `${push.url}/${user}`, keys: { p256dh, auth } });
      const subscribed = await fetch(`${url}/api/v1/plugins/web-push/-/subscription`, {
        method: 'POST',
        headers: { 'X-Service-Key': keys.publishableKey, 'X-Service-Token': token },
        body,
      });
      t.equal(subscribed.status, 201);
    }

    const id = await thread('No mention');
    const comment = (body: string, mentions: string[]) =>
      call('POST', `/threads/${id}/comments`, { userId: 'ann', body, mentions });
    await comment('Hello @bob', ['bob']);
    await until(() => notified().length > 0 && posts().length > 0 && recipients().length > 0 && pushes().length > 0);
    t.match(smtp.mails[0], {
      subject: 'Ann mentioned you on home',
      recipients: ['bob@example.com'],
      text: /Hello @bob/,
    });

    const off = { mention: false };
    await call('PUT', '/users/bob/notification-settings', { email: off, webhook: off, slack: off, 'web-push': off });
    await comment('Again @bob', ['bob']);
    await comment('The end @cem', ['cem']);
    // Each channel handles the notifications of a thread in order, so what comes after bob's second one shows that it
    // has none.
    await until(
      () =>
        notified().includes('cem') &&
        posts().length > 1 &&
        recipients().includes('cem@example.com') &&
        pushes().includes('/cem'),
    );
    t.strictSame(notified(), ['bob', 'cem']);
    t.match(posts(), [/Hello @\u200Bbob/, /The end @\u200Bcem/]);
    t.strictSame(recipients(), ['bob@example.com', 'cem@example.com']);
    t.strictSame(pushes(), ['/bob', '/cem']);
    t.match(await call('GET', '/users/bob/notifications'), { body: { unreadCount: 2 } }, 'the inbox has both');
  },
);

t.test('a burst of comments is posted as fast as the target takes messages, and none is lost', async (t) => {
  let accepted = 0;
  let openAt = 0;
  const before = slack.received.length;
  slack.answer = (response, { at }) => {
    const taken = at >= openAt;
    if (taken) {
      accepted++;
      openAt = at + 300;
    }
    response.writeHead(taken ? 200 : 429, { 'retry-after': '0.3' }).end();
  };
  for (let i = 0; i < 8; i++) await cluster.thread(`Thread ${i}`);
  await until(() => accepted === 8);
  t.ok(slack.received.length - before < 3 * 8, 'those that wait do not ask');
  slack.answer = 200;
});

t.test('a webhook that is tried again after its user was erased has no personal data', async (t) => {
  // Fails once the user is gone, so that it is tried again after that.
  let fail = (): void => {};
  const hook = await startReceiver(t, (response) => {
    fail = () => void response.writeHead(500).end();
  });
  const { call, run } = cluster;
  await run('webhook', 'add', '--url', hook.url, '--events', 'user.updated');
  await call('PUT', '/users/zoe', { name: 'Zoe Example', metadata: { phone: '555' } });
  const about = () =>
    hook.received
      .map(({ body }) => String(body))
      .filter((body) => body.includes('"userId":"zoe"') && !body.includes('"erased"'));
  await until(() => about().length === 1);
  t.match(about()[0], /Zoe Example/);
  await call('DELETE', '/users/zoe');
  hook.answer = 500;
  fail();
  await until(() => about().length === 2);
  t.match(JSON.parse(about()[1] ?? ''), { data: { userId: 'zoe', name: null, metadata: {} } });
  t.notMatch(about()[1], /Zoe Example|555/);
});

t.test('an endpoint that does not answer delays no other', async (t) => {
  const [silent, healthy] = [await startReceiver(t, () => {}), await startReceiver(t)];
  await cluster.run('webhook', 'add', '--url', silent.url);
  await cluster.run('webhook', 'add', '--url', healthy.url);
  for (let i = 0; i < 50; i++) await cluster.thread(`Thread ${i}`);
  await until(() => typesOf(healthy).filter((type) => type === 'thread.created').length === 50);
  t.ok(silent.received.length < 50, 'the silent one still holds its own deliveries');
});

t.test('requests to private and local addresses are refused in every form', async (t) => {
  const local = await startReceiver(t);
  const port = new URL(local.url).port;
  const dir = tempFolder(t);
  await newFolder(dir);
  const at = ['--env', 'default', '--dir', dir];
  for (const host of ['localhost', '2130706433', '[::ffff:127.0.0.1]', '169.254.169.254']) {
    const { id } = await collabJson<Added>(t, ['webhook', 'add', '--url', `http://${host}:${port}/`, ...at]);
    const { code, stdout } = await collab(['webhook', 'test', id, ...at, '--json']);
    t.equal(code, 1, host);
    t.match(JSON.parse(stdout), { ok: false, status: null, reason: /private|local|public|special/i }, host);
  }
  t.equal(local.received.length, 0);
});
