import t from 'tap';
import { startServer } from '../helpers/cli.ts';
import { collab, collabJson } from '../helpers/command.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

interface Item {
  readonly id: string;
  readonly state: string;
  readonly reportCount: number;
}

t.test('reported comments are decided beside a running server', async (t) => {
  const dir = tempFolder(t);
  const { secretKey } = await newFolder(dir);
  for (const user of ['ann', 'bob']) await collabJson(t, ['user', 'add', user, '--env', 'default', '--dir', dir]);
  const server = await startServer(t, dir, ['--workers', '1']);
  const call = async (method: string, path: string, body?: unknown) => {
    const answer = await fetch(`${server.url}/api/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${secretKey}`, 'Content-Type': 'application/json' },
      body: body === undefined ? null : JSON.stringify(body),
    });
    return (await answer.json()) as {
      thread: { id: string; comments: { id: string }[] };
      items: { id: string; body: string }[];
    };
  };
  const moderation = <T>(...args: string[]): Promise<T> =>
    collabJson<T>(t, ['moderation', ...args, '--env', 'default', '--dir', dir]);
  const { thread } = await call('POST', '/rooms/room/threads', { userId: 'ann', body: 'first' });
  await call('POST', `/threads/${thread.id}/comments`, { userId: 'ann', body: 'second' });
  const comments = (await call('GET', `/threads/${thread.id}/comments`)).items;
  for (const { id } of comments) await call('POST', `/comments/${id}/report`, { reason: 'rude', userId: 'bob' });

  t.strictSame(await moderation('list'), { items: [] });
  const { items } = await moderation<{ items: Item[] }>('list', '--state', 'reported');
  t.match(items, [{ state: 'reported', reportCount: 1 }, { state: 'reported' }]);
  const [first, second] = items;
  t.match(
    (await collab(['moderation', 'list', '--state', 'reported', '--env', 'default', '--dir', dir])).stdout,
    /1 report +first\n.*1 report +second\nNext:\n.*moderation show/,
  );
  t.match(
    (await collab(['moderation', 'show', first?.id ?? '', '--env', 'default', '--dir', dir])).stdout,
    /text +first\n[^]*report +\S+ bob: rude\n[^]*moderation approve/,
  );
  t.match(await moderation('approve', first?.id ?? ''), { id: first?.id, state: 'approved' });
  t.match(
    await collab(['moderation', 'reject', second?.id ?? '', '--reason', 'Be kind.', '--env', 'default', '--dir', dir]),
    { code: 2, stderr: /deletes the reported comment.*\n.*--yes/ },
  );
  t.match(await moderation('reject', second?.id ?? '', '--reason', 'Be kind.', '--yes'), { state: 'rejected' });
  t.match((await call('GET', `/threads/${thread.id}/comments`)).items, [{ body: 'first' }]);
  t.match((await moderation<{ items: object[] }>('list', '--state', 'decided')).items, [
    { state: 'approved' },
    { state: 'rejected', rejection: 'Be kind.', decidedBy: { kind: 'cli' } },
  ]);
  t.match(await collab(['moderation', 'approve', second?.id ?? '', '--env', 'default', '--dir', dir]), {
    code: 1,
    stderr: /was rejected at/,
  });
  t.match(await collab(['moderation', 'approve', 'mod_unknown', '--env', 'default', '--dir', dir]), {
    code: 1,
    stderr: /has no item with this id/,
  });
  const audit = await collabJson<{ items: { action: string }[] }>(t, [
    'audit',
    'list',
    '--env',
    'default',
    '--dir',
    dir,
  ]);
  t.strictSame(
    audit.items.slice(-3).map(({ action }) => action),
    ['moderation.approve', 'comment.delete', 'moderation.reject'],
  );
});
