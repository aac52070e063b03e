import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SMTPServerOptions } from 'smtp-server';
import t, { type Test } from 'tap';
import email from '../../plugins/email/index.ts';
import type { PluginNotification } from '../../src/plugins/api.ts';
import { environment, hostPlugin, type TestHost } from '../doubles/plugin-host.ts';
import { commentOf, notificationCreated, notificationOf } from '../helpers/plugin-events.ts';
import { type MailServer, type ReceivedMail, startMailServer } from '../helpers/mail-server.ts';

const MINUTE = 60_000;

interface Setup {
  readonly host: TestHost;
  readonly server: MailServer;
}

async function setUp(
  t: Test,
  config: Record<string, unknown> = {},
  publicUrl = 'https://collab.example.com',
): Promise<Setup> {
  const server = await startMailServer(t);
  const host = await hostPlugin(email, {
    publicUrl,
    config: {
      smtp: { host: '127.0.0.1', port: server.port, tls: 'none' },
      from: 'Comments <comments@example.com>',
      ...config,
    },
  });
  user(host, 'ann', 'Ann');
  user(host, 'bob', 'Bob');
  return { host, server };
}

function user(host: TestHost, id: string, name: string, address: string | null = `${id}@example.com`): void {
  host.data.users.set(id, {
    id,
    userId: id,
    name,
    avatarUrl: null,
    email: address,
    kind: 'user',
    metadata: {},
    createdAt: '',
    updatedAt: '',
    firstSeenAt: null,
    lastSeenAt: null,
  });
}

/** Stores a notification of bob about a new comment, and emits its event. */
async function notify(
  host: TestHost,
  seq: number,
  fields: Partial<PluginNotification> = {},
  body = `Comment ${seq}`,
): Promise<void> {
  const ids = {
    id: `ntf_${seq}`,
    commentId: `com_${seq}`,
    createdAt: new Date(host.clock.now()).toISOString(),
    ...fields,
  };
  host.data.allComments.set(ids.commentId, commentOf({ id: ids.commentId, body }));
  host.data.notifications.set(ids.id, notificationOf(ids));
  await host.emit(notificationCreated(seq, ids));
}

function only({ mails }: MailServer): ReceivedMail {
  const [mail, ...others] = mails;
  if (mail === undefined || others.length > 0) throw new Error(`${mails.length} mails`);
  return mail;
}

t.test('what is unread after five minutes is mailed as text and HTML', async (t) => {
  const { host, server } = await setUp(t, {
    linkTemplate: 'https://app.example.com/{roomId}#{commentId}',
    replyTo: 'help@example.com',
  });
  await notify(host, 1, {}, 'Grüße <b>& 👋</b>');
  await host.runJobs(5 * MINUTE - 1);
  t.equal(server.mails.length, 0);
  await host.runJobs(1);
  const mail = only(server);
  t.match(mail, {
    subject: 'Ann mentioned you on page-1',
    from: { text: '"Comments" <comments@example.com>' },
    replyTo: { text: 'help@example.com' },
    to: { text: 'bob@example.com' },
    messageId: /^<ntf_1\.env_1@example\.com>$/,
    text: /Hello Bob,\n\nAnn mentioned you on page-1 \(2026-01-05 12:00 UTC\):\n\nGrüße <b>& 👋<\/b>\n\nhttps:\/\/app\.example\.com\/page-1#com_1\n/,
    html: /Grüße &lt;b&gt;&amp; 👋&lt;&#x2F;b&gt;/,
  });
  t.match(mail.html, 'href="https:&#x2F;&#x2F;app.example.com&#x2F;page-1#com_1"');
  t.match(mail.source, /^Auto-Submitted: auto-generated\r$/m);
  t.same(await host.kv.list({ prefix: 'pending/' }), []);
});

t.test('an address that was stored before addresses were checked reaches no second recipient', async (t) => {
  for (const address of [
    'bob@example.com, eve@example.com',
    'bob@example.com\r\nBcc: eve@example.com',
    'bob@example.com;eve@example.com',
    'Eve <eve@example.com>',
  ]) {
    const { host, server } = await setUp(t);
    user(host, 'bob', 'Bob', address);
    await notify(host, 1);
    await host.runJobs(5 * MINUTE);
    t.strictSame(
      server.mails.flatMap(({ recipients }) => recipients).filter((recipient) => recipient.startsWith('eve')),
      [],
      address,
    );
    t.ok(
      server.mails.every(({ recipients, source }) => recipients.length === 1 && !/^Bcc:/m.test(source)),
      address,
    );
  }
});

t.test('what came meanwhile is in the same mail, once', async (t) => {
  const { host, server } = await setUp(t);
  await notify(host, 1);
  host.clock.advance(3 * MINUTE);
  await notify(host, 2, { kind: 'reply' });
  await host.runJobs(2 * MINUTE);
  t.match(only(server), {
    subject: '2 unread comments for you',
    text: /Ann mentioned you[^]*Comment 1[^]*Ann replied[^]*Comment 2/,
  });
  await host.runJobs(10 * MINUTE);
  t.equal(server.mails.length, 1);
  await notify(host, 3);
  await host.runJobs(5 * MINUTE);
  t.equal(server.mails.length, 2);
});

t.test('what was read, deleted or is in the room of the user is not mailed', async (t) => {
  const { host, server } = await setUp(t);
  await notify(host, 1);
  await notify(host, 2, { roomId: 'page-2' });
  await notify(host, 3);
  await notify(host, 4);
  await notify(host, 5);
  host.data.notifications.set('ntf_1', notificationOf({ id: 'ntf_1', readAt: '2026-01-05T12:01:00.000Z' }));
  host.data.present.add('bob page-2');
  host.data.notifications.delete('ntf_3');
  host.data.allComments.delete('com_4');
  await host.runJobs(5 * MINUTE);
  const { text, subject } = only(server);
  t.equal(subject, 'Ann mentioned you on page-1');
  t.match(text, 'Comment 5');
  for (const n of [1, 2, 3, 4]) t.notMatch(text, `Comment ${n}`);
});

t.test('no mail is sent if nothing is left, to users without address, and against settings and filters', async (t) => {
  const { host, server } = await setUp(t);
  host.data.off.add('bob email reply');
  await notify(host, 1, { kind: 'reply' });
  t.same(await host.queue('digests').count(), { waiting: 0, dead: 0 });
  await notify(host, 2);
  host.data.off.add('bob email mention');
  await host.runJobs(5 * MINUTE);
  host.data.off.clear();
  user(host, 'cleo', 'Cleo', null);
  await notify(host, 3, { userId: 'cleo' });
  host.data.verdict = (name, payload) =>
    name !== 'notification.deliver' || (payload as { channel: string }).channel !== 'email';
  await notify(host, 4);
  await host.runJobs(5 * MINUTE);
  t.equal(server.mails.length, 0);
  t.same(await host.queue('digests').count(), { waiting: 0, dead: 0 });
  t.same(await host.kv.list({ prefix: 'pending/' }), []);
});

t.test('users get their own mails', async (t) => {
  const { host, server } = await setUp(t);
  await notify(host, 1);
  await notify(host, 2, { userId: 'ann', actorId: 'bob' });
  await host.runJobs(5 * MINUTE);
  t.same(
    new Set(server.mails.map(({ recipients }) => recipients.join())),
    new Set(['ann@example.com', 'bob@example.com']),
  );
});

t.test('one click ends the mails, a visit of the link does not, and nobody can forge it', async (t) => {
  const { host, server } = await setUp(t);
  await notify(host, 1);
  await host.runJobs(5 * MINUTE);
  const mail = only(server);
  t.match(mail.source, /^List-Unsubscribe-Post: List-Unsubscribe=One-Click\r$/m);
  const { url } = (mail.headers.get('list') as { unsubscribe: { url: string } }).unsubscribe;
  t.match(url, 'https://collab.example.com/api/v1/plugins/email/default/unsubscribe?user=bob&signature=');
  t.match(mail.text, url);
  const query = Object.fromEntries(new URL(url).searchParams);
  t.match(await host.route('GET unsubscribe', { query }), {
    status: 200,
    contentType: 'text/html; charset=utf-8',
    body: /<form method="post">/,
  });
  t.equal(host.data.off.size, 0);
  for (const forged of [{ ...query, user: 'ann' }, { user: 'bob' }, { ...query, signature: 'x' }, {}])
    t.match(await host.route('POST unsubscribe', { query: forged }), { status: 403 });
  t.equal(host.data.off.size, 0);
  t.match(await host.route('POST unsubscribe', { query, body: 'List-Unsubscribe=One-Click' }), { status: 200 });
  t.same([...host.data.off], ['bob email mention', 'bob email reply']);
});

t.test('a click after the erasure of the user stores nothing about them', async (t) => {
  const { host, server } = await setUp(t);
  await notify(host, 1);
  await host.runJobs(5 * MINUTE);
  const { url } = (only(server).headers.get('list') as { unsubscribe: { url: string } }).unsubscribe;
  host.data.users.delete('bob');
  t.match(await host.route('POST unsubscribe', { query: Object.fromEntries(new URL(url).searchParams) }), {
    status: 200,
    body: /no more mails/,
  });
  t.same([...host.data.off], []);
});

t.test('without publicUrl there is no link to unsubscribe', async (t) => {
  const { host, server } = await setUp(t, {}, '');
  await notify(host, 1);
  await host.runJobs(5 * MINUTE);
  t.notMatch(only(server).source, /unsubscribe/i);
});

t.test('templates of the operator replace the built-in ones, and their values are escaped', async (t) => {
  const templates = t.testdir({
    'subject.txt': '[Acme]\n{{count}} for {{name}}',
    'digest.html': '<h1>{{name}}</h1>{{#notifications}}<p>{{author}}: {{text}}</p>{{/notifications}}',
  });
  const { host, server } = await setUp(t, { templates });
  user(host, 'bob', 'Bob <Bobby> & Co');
  await notify(host, 1, {}, '<script>alert(1)</script>');
  await host.runJobs(5 * MINUTE);
  const mail = only(server);
  t.equal(mail.subject, '[Acme] 1 for Bob <Bobby> & Co');
  t.match(mail.html, '<h1>Bob &lt;Bobby&gt; &amp; Co</h1><p>Ann: &lt;script&gt;alert(1)&lt;&#x2F;script&gt;</p>');
  t.match(mail.text, 'Hello Bob <Bobby> & Co,', 'the text is the built-in one');
  writeFileSync(join(templates, 'digest.html'), '{{#notifications}}');
  t.match((await host.command('test ann@example.com')).json, {
    ok: false,
    reason: /templates: digest\.html: Unclosed section "notifications"/,
  });
  rmSync(templates, { recursive: true });
  t.match(
    (await host.command('test ann@example.com')).json,
    { ok: false, reason: `templates: the folder ${templates} does not exist` },
    'a misspelled folder does not give the built-in templates',
  );
});

t.test('texts of users cannot add headers', async (t) => {
  const { host, server } = await setUp(t);
  user(host, 'ann', 'Ann\r\nBcc: eve@example.com');
  await notify(host, 1, { roomId: 'page\r\nX-Evil: 1' });
  await host.runJobs(5 * MINUTE);
  const mail = only(server);
  t.same(mail.recipients, ['bob@example.com']);
  t.notOk(mail.headers.has('x-evil'));
  t.notOk(mail.headers.has('bcc'));
});

t.test('a mail that is not accepted now is tried again, and one that is refused is not', async (t) => {
  const { host, server } = await setUp(t);
  server.refusal = { code: 451, message: 'Try again later' };
  await notify(host, 1);
  await host.runJobs(5 * MINUTE);
  t.match((await host.queue('digests').list(environment, { state: 'waiting' }))[0], {
    attempts: 1,
    lastError: /^127\.0\.0\.1:\d+: .*451 Try again later/,
  });
  server.refusal = null;
  await host.runJobs(MINUTE);
  t.equal(server.mails.length, 1);
  server.refusal = { code: 550, message: 'No such user' };
  await notify(host, 2);
  await host.runJobs(5 * MINUTE);
  t.same(await host.queue('digests').count(), { waiting: 0, dead: 1 });
  t.match(host.logged, [
    { level: 'warn', message: /tried again/ },
    { level: 'error', fields: { user: 'bob', reason: /550 No such user/ } },
  ]);
  t.same(await host.kv.list({ prefix: 'pending/' }), []);
});

t.test(
  'the last attempt for a notification gives up only that one: later ones are tried on, and mailed once the server is back',
  async (t) => {
    const { host, server } = await setUp(t);
    server.refusal = { code: 451, message: 'Try again later' };
    await notify(host, 1);
    await host.runJobs(5 * MINUTE);
    for (const minutes of [1, 5, 30, 120]) await host.runJobs(minutes * MINUTE);
    await host.runJobs(354 * MINUTE);
    await notify(host, 2);
    await host.runJobs(5 * MINUTE);
    await notify(host, 3);
    await host.runJobs(MINUTE);
    t.same(await host.queue('digests').count(), { waiting: 2, dead: 1 });
    t.match(
      host.logged.filter(({ level }) => level === 'error'),
      [{ fields: { user: 'bob', reason: /451 Try again later/ }, message: /not tried again/ }],
    );
    server.refusal = null;
    await host.runJobs(5 * MINUTE);
    const { subject, text } = only(server);
    t.equal(subject, '2 unread comments for you');
    t.match(text, /Comment 2[^]*Comment 3/);
    t.notMatch(text, 'Comment 1');
    t.same(await host.queue('digests').count(), { waiting: 0, dead: 1 });
    t.same(await host.kv.list({ prefix: 'pending/' }), []);
  },
);

t.test('a mail that is refused finally is given up with all its notifications', async (t) => {
  const { host, server } = await setUp(t);
  server.refusal = { code: 550, message: 'No such user' };
  await notify(host, 1);
  await notify(host, 2);
  await host.runJobs(5 * MINUTE);
  t.same(await host.queue('digests').count(), { waiting: 0, dead: 1 });
  t.same(await host.kv.list({ prefix: 'pending/' }), []);
});

t.test('with more notifications than a mail takes, each is mailed once, whichever is tried first', async (t) => {
  const templates = t.testdir({ 'digest.txt': '{{#notifications}}' });
  const { host, server } = await setUp(t, { templates });
  const all = Array.from({ length: 51 }, (_, n) => 101 + n);
  for (const seq of all.slice(0, -1)) await notify(host, seq);
  host.clock.advance(MINUTE / 2);
  await notify(host, 151);
  await host.runJobs(4.5 * MINUTE);
  t.match(
    host.logged,
    Array.from({ length: 50 }, () => ({ level: 'warn', message: /tried again/ })),
  );
  rmSync(join(templates, 'digest.txt'));
  await host.runJobs(MINUTE / 2);
  t.match(
    only(server),
    { subject: '50 unread comments for you', text: 'Comment 151' },
    'the one whose time has come is in the mail',
  );
  await host.runJobs(MINUTE / 2);
  const mailed = server.mails.flatMap(({ text = '' }) =>
    [...text.matchAll(/Comment (\d+)/g)].map(([, seq]) => Number(seq)),
  );
  t.same(
    mailed.toSorted((a, b) => a - b),
    all,
  );
  t.equal(server.mails.length, 2);
  t.same(await host.queue('digests').count(), { waiting: 0, dead: 0 });
  t.same(await host.kv.list({ prefix: 'pending/' }), []);
});

t.test('the mail server gets the user and password, over TLS that is checked', async (t) => {
  const onAuth: SMTPServerOptions['onAuth'] = (auth, _, done) =>
    auth.username === 'collab' && auth.password === 'pä55'
      ? done(null, { user: 'collab' })
      : done(new Error('Invalid credentials'));
  const plain = await startMailServer(t, { disabledCommands: ['STARTTLS'], allowInsecureAuth: true, onAuth });
  const test = async (smtp: Record<string, unknown>): Promise<unknown> => {
    const host = await hostPlugin(email, {
      config: { smtp: { host: '127.0.0.1', ...smtp }, from: 'comments@example.com' },
    });
    return (await host.command('test ann@example.com')).json;
  };
  t.match(await test({ port: plain.port, tls: 'none', user: 'collab', password: 'pä55' }), { ok: true });
  t.equal(plain.mails[0]?.user, 'collab');
  const wrong = await test({ port: plain.port, tls: 'none', user: 'collab', password: 'hunter2' });
  t.match(wrong, { ok: false, reason: /Invalid login: 535/ });
  t.notMatch(JSON.stringify(wrong), 'hunter2');
  t.match(
    await test({ port: plain.port, tls: 'starttls' }),
    { ok: false, reason: /STARTTLS/ },
    'it is not sent without TLS',
  );
  const encrypted = await startMailServer(t, { disabledCommands: ['AUTH'] });
  t.match(
    await test({ port: encrypted.port, tls: 'starttls' }),
    { ok: false, reason: /certificate/ },
    'a certificate that nobody vouches for is refused',
  );
  t.match(await test({ port: 1, tls: 'none' }), { ok: false, reason: /127\.0\.0\.1:1: .*ECONNREFUSED/ });
});
