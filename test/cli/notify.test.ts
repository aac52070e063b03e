import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import type { Explanation } from '../../src/domain/notifications/explain.ts';
import { type InitOutput, startServer } from '../helpers/cli.ts';
import { collab, collabJson } from '../helpers/command.ts';
import { until } from '../helpers/cluster.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const ON = { mention: true, reply: true };

t.test('notify explain says step by step why a user was or was not notified', async (t) => {
  const dir = tempFolder(t);
  const { secretKey } = await newFolder(dir);
  const { url } = await startServer(t, dir, ['--workers', '1']);
  const ask = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const headers = { Authorization: `Bearer ${secretKey}`, 'Content-Type': 'application/json' };
    const answer = await fetch(`${url}/api/v1${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as T;
  };
  const comment = async (userId: string, mentions: readonly string[] = []): Promise<string> =>
    (await ask<{ comment: { id: string } }>('POST', `/threads/${threadId}/comments`, { userId, body: 'Hi', mentions }))
      .comment.id;
  const choose = (userId: string, action: string) =>
    ask('POST', `/threads/${threadId}/subscription`, { userId, action });
  const explain = (commentId: string, userId: string) =>
    collabJson<Explanation>(t, ['notify', 'explain', commentId, userId, '--env', 'default', '--dir', dir]);
  const lines = async (commentId: string, userId: string): Promise<string[]> => {
    const { code, stdout, stderr } = await collab([
      'notify',
      'explain',
      commentId,
      userId,
      '--env',
      'default',
      '--dir',
      dir,
    ]);
    t.equal(code, 0, stderr);
    return stdout.trimEnd().split('\n');
  };

  for (const userId of ['ann', 'bob', 'cat', 'dan', 'eve', 'fay', 'gil']) await ask('PUT', `/users/${userId}`, {});
  const { thread } = await ask<{ thread: { id: string; comments: { id: string }[] } }>('POST', '/rooms/docs/threads', {
    userId: 'ann',
    body: 'Hello',
  });
  const threadId = thread.id;
  for (const userId of ['dan', 'eve', 'fay', 'gil']) await comment(userId);
  await ask('POST', '/users/cat/tokens', { rooms: ['elsewhere'] });
  await choose('dan', 'mute');
  await choose('eve', 'unsubscribe');
  await ask('PUT', '/users/fay/notification-settings', { inApp: { reply: false }, email: { reply: false } });
  const target = await comment('bob', ['gil', 'cat', 'stranger']);
  const removed = await comment('bob', ['ann']);
  await ask('DELETE', `/comments/${removed}`);
  const notifiedAll = () => until(async () => (await explain(target, 'ann')).pendingEvents === 0, 30_000);
  await notifiedAll();
  const { items } = await ask<{ items: { id: string; commentId: string }[] }>('GET', '/users/gil/notifications');
  const read = items.find(({ commentId }) => commentId === target);
  await ask('POST', '/users/gil/notifications/read', { ids: [read?.id] });
  // Reading is an event too, which the consumer passes over.
  await notifiedAll();

  t.strictSame<unknown>(
    await explain(target, 'bob'),
    {
      commentId: target,
      userId: 'bob',
      threadId,
      roomId: 'docs',
      isAuthor: true,
      isMentioned: false,
      isParticipant: false,
      subscription: 'default',
      isKnown: true,
      maySeeRoom: true,
      tokenRooms: null,
      settings: { inApp: ON, email: ON, webhook: ON },
      rule: 'actor',
      notification: null,
      wasNotified: false,
      pendingEvents: 0,
      channels: [],
    },
    'the author',
  );
  t.strictSame(await lines(target, 'bob'), [
    `Comment ${target} in thread ${threadId}, room docs`,
    '  known user      yes',
    '  author          yes',
    '  mentioned       no',
    '  participant     no',
    '  subscription    default',
    '  may see room    yes (their latest token is for all rooms, or none was seen)',
    '  channels        inApp: mention on, reply on; email: mention on, reply on; webhook: mention on, reply on',
    '  by the rules    nobody is notified of their own comment',
    '  notification    none',
    'bob was not notified.',
  ]);

  const steps = async (userId: string, expected: Readonly<Record<string, RegExp>>, last: string): Promise<void> => {
    const printed = await lines(target, userId);
    for (const [name, value] of Object.entries(expected))
      t.match(printed.find((line) => line.startsWith(`  ${name} `))?.slice(18), value, `${userId}: ${name}`);
    t.equal(printed.at(-1), last);
  };
  await steps(
    'ann',
    {
      author: /^no$/,
      mentioned: /^no$/,
      participant: /^yes \(had commented in the thread before\)$/,
      'by the rules': /^the rules notify them, because they follow the thread$/,
      notification: /^nt_\S+, reply, \S+Z, unread$/,
    },
    'ann was notified.',
  );
  await steps(
    'gil',
    {
      mentioned: /^yes$/,
      participant: /^yes /,
      'by the rules': /because the comment mentions them$/,
      notification: /^nt_\S+, mention, \S+Z, read \S+Z$/,
    },
    'gil was notified.',
  );
  await steps(
    'cat',
    {
      mentioned: /^yes$/,
      'may see room': /^no \(their latest token is confined to elsewhere\)$/,
      'by the rules': /^may not see the room$/,
      notification: /^none$/,
    },
    'cat was not notified.',
  );
  await steps(
    'dan',
    { participant: /^yes /, subscription: /^muted$/, 'by the rules': /^has muted the thread$/ },
    'dan was not notified.',
  );
  await steps(
    'eve',
    {
      participant: /^yes /,
      subscription: /^unsubscribed$/,
      'by the rules': /^not mentioned, and has unsubscribed from the thread$/,
    },
    'eve was not notified.',
  );
  await steps(
    'fay',
    {
      channels: /^inApp: mention on, reply off; email: mention on, reply off; webhook: mention on, reply on$/,
      notification:
        /^nt_\S+, reply, \S+Z, not in the inbox \(setting inApp, or a filter of a plugin\), for the other channels only$/,
      'via inApp': /^left out: the user has turned reply off$/,
      'via email': /^left out: no plugin email is loaded$/,
      'via webhook': /^left out: the plugin webhook has nobody to deliver it to in this environment$/,
    },
    'fay was not notified: no channel delivers the notification.',
  );
  t.match(await explain(target, 'fay'), {
    wasNotified: false,
    channels: [
      { channel: 'inApp', outcome: 'setting' },
      { channel: 'email', outcome: 'missing' },
      { channel: 'webhook', outcome: 'nothing' },
    ],
  });
  await steps('ann', { 'via inApp': /^in the inbox$/ }, 'ann was notified.');
  writeFileSync(
    join(dir, 'config.json'),
    JSON.stringify({ plugins: [{ use: fileURLToPath(new URL('../fixtures/plugins/channel.mjs', import.meta.url)) }] }),
  );
  await steps(
    'fay',
    { 'via channel': /^given to the plugin channel, whose log / },
    'fay was notified, not in the inbox but through channel.',
  );
  await steps(
    'gil',
    { 'via inApp': /^in the inbox$/, 'via channel': /^left out: a filter of the plugin channel rejects it$/ },
    'gil was notified.',
  );
  await steps(
    'stranger',
    { 'known user': /^no$/, mentioned: /^yes$/, notification: /^nt_\S+, mention, / },
    'stranger was notified.',
  );
  await steps(
    'nobody',
    { 'known user': /^no$/, mentioned: /^no$/, 'by the rules': /^not mentioned, and does not follow the thread$/ },
    'nobody was not notified.',
  );

  await ask('POST', '/users/gil/tokens', { rooms: ['elsewhere'] });
  await steps(
    'gil',
    {
      'by the rules': /^may not see the room$/,
      notification: /, mention, /,
      'since then':
        /^the rules notified them when the comment was written: their rooms, subscription or comments have changed$/,
    },
    'gil was notified.',
  );
  await ask('POST', '/users/cat/tokens', {});
  await steps(
    'cat',
    {
      'by the rules': /because the comment mentions them$/,
      notification: /^none$/,
      'since then': /^the rules did not notify them when the comment was written: /,
    },
    'cat was not notified.',
  );

  const slugs = (...args: string[]) => collab(['notify', 'explain', ...args, '--dir', dir]);
  t.match(
    await slugs(target, 'bob'),
    { code: 0, stdout: /bob was not notified\.\n$/ },
    'the environment is found by the comment',
  );
  t.match(await slugs('cm_unknown', 'bob'), { code: 1, stdout: '', stderr: /Comment not found/ });
  await collab(['env', 'create', 'second', '--dir', dir]);
  const { secretKey: secondKey } = await collabJson<InitOutput>(t, [
    'key',
    'create',
    '--env',
    'second',
    '--kind',
    'secret',
    '--dir',
    dir,
  ]);
  for (const key of [secretKey, secondKey]) {
    const send = async (method: string, path: string, body: object): Promise<{ thread: { id: string } }> =>
      (await (
        await fetch(`${url}/api/v1${path}`, {
          method,
          headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
          body: JSON.stringify(body),
        })
      ).json()) as never;
    await send('PUT', '/users/ann', {});
    const { thread: own } = await send('POST', '/rooms/docs/threads', { userId: 'ann', body: 'Hello' });
    await send('POST', `/threads/${own.id}/comments`, { userId: 'ann', body: 'Hi', id: 'chosen-by-client' });
  }
  t.match(await slugs('chosen-by-client', 'ann'), {
    code: 2,
    stdout: '',
    stderr: /Several environments have a comment chosen-by-client: default, second\.[^]*--env <slug>/,
  });
  t.match(await slugs('chosen-by-client', 'ann', '--env', 'second'), { code: 0, stdout: /ann was not notified\.\n$/ });

  for (const [commentId, env, message] of [
    [removed, 'default', /Comment not found[^]*may have been deleted/],
    ['cm_unknown', 'default', /Comment not found/],
    [target, 'other', /No environment has the id or slug other/],
  ] as const) {
    t.match(await collab(['notify', 'explain', commentId, 'ann', '--env', env, '--dir', dir]), {
      code: 1,
      stdout: '',
      stderr: message,
    });
  }
});
