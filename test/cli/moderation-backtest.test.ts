import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { collab, collabJson, type InitOutput, startServer } from '../helpers/cli.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

t.test('a backtest shows what rules would do with stored comments, and changes nothing', async (t) => {
  const dir = tempFolder(t);
  const { secretKey } = await collabJson<InitOutput>(t, ['init', '--dir', dir]);
  await collabJson(t, ['user', 'add', 'ann', '--env', 'default', '--dir', dir]);
  const server = await startServer(t, dir, ['--workers', '1']);
  const call = async (path: string, body: string) => {
    const answer = await fetch(`${server.url}/api/v1${path}`, { method: 'POST', headers: { Authorization: `Bearer ${secretKey}`, 'Content-Type': 'application/json' }, body: JSON.stringify({ userId: 'ann', body }) });
    return (await answer.json()) as { thread: { id: string } };
  };
  const { thread } = await call('/rooms/room/threads', 'Hello');
  for (const body of ['Buy v1agra', 'This is spam', 'Fine']) await call(`/threads/${thread.id}/comments`, body);

  const at = ['--env', 'default', '--dir', dir];
  t.match(await collab(['moderation', 'backtest', ...at]), { code: 1, stderr: /No plugin of the configuration filters comments in default[^]*moderation-rules/ });
  const file = join(dir, 'config.json');
  const rules = [{ type: 'words', words: ['viagra'], name: 'advertising' }, { type: 'words', words: ['spam'], action: 'reject', message: 'No spam.' }];
  writeFileSync(file, JSON.stringify({ ...(JSON.parse(readFileSync(file, 'utf8')) as object), plugins: [{ use: 'moderation-rules', config: { rules } }] }));
  const report = await collabJson(t, ['moderation', 'backtest', ...at]);
  t.match(report, {
    tested: 4,
    held: 1,
    rejected: 1,
    changed: 0,
    items: [
      { outcome: 'hold', plugin: 'moderation-rules', reason: /advertising/, userId: 'ann', roomId: 'room', threadId: thread.id, body: 'Buy v1agra' },
      { outcome: 'reject', plugin: 'moderation-rules', reason: 'No spam.', body: 'This is spam' },
    ],
  });
  t.match((await collab(['moderation', 'backtest', '--since', '1h', ...at])).stdout, /hold +ann .*Buy v1agra\n.*reject[^]*Of 4 comments, 1 would be held, 1 rejected and 0 changed/);
  t.match(await collabJson(t, ['moderation', 'backtest', '--since', '2999-01-01', ...at]), { tested: 0, items: [] });
  t.match(await collabJson(t, ['moderation', 'backtest', '--limit', '1', ...at]), { tested: 1 });
  t.match(await collab(['moderation', 'backtest', '--since', 'yesterday', ...at]), { code: 2, stderr: /--since must be a duration such as 7d, or an ISO 8601 time/ });
  t.strictSame(await collabJson(t, ['moderation', 'list', ...at]), { items: [] });
});
