import { join } from 'node:path';
import t from 'tap';
import { startCollab } from '../helpers/cli.ts';
import { collab, collabJson } from '../helpers/command.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const dir = tempFolder(t);
t.before(() => newFolder(dir));

const addUser = (id: string, name: string): Promise<unknown> =>
  collabJson(t, ['user', 'add', id, '--name', name, '--env', 'default', '--dir', dir]);

t.test('tail shows the stored events, then those that other processes commit, once and in order', async (t) => {
  await addUser('ann', 'Ann');
  const tail = startCollab(t, ['tail', '--env', 'default', '--since', '0', '--json', '--dir', dir]);
  const next = async (): Promise<unknown> => JSON.parse(await tail.line(() => true));
  t.match(await next(), { type: 'user.updated', seq: 1, actor: { via: 'cli' } });
  await addUser('bob', 'Bob');
  t.match(await next(), { type: 'user.updated', seq: 2 });
  await addUser('ann', 'Anna');
  t.match(await next(), { type: 'user.updated', seq: 3 });
  t.equal(await tail.end('SIGINT'), 0);
});

t.test('as text it prints one line per event, without control characters', async (t) => {
  await addUser('mallory', 'Mallory');
  const tail = startCollab(t, ['tail', '--env', 'default', '--since', '0', '--dir', dir]);
  t.match(await tail.line(() => true), /^\d{4}-\d\d-\d\dT[\d:.]+Z {2}#1 {2}user\.updated {2}by backend \(cli\)$/);
  t.match(tail.errors(), /Following the events of default after position 0\. Press Ctrl-C to stop\./);
});

t.test('it shows the text of comments, the first of a thread and later ones', async (t) => {
  await addUser('writer', 'Writer');
  const { id } = await collabJson<{ id: string }>(t, [
    'thread',
    'create',
    '--room',
    'lobby',
    '--user',
    'writer',
    '--body',
    'the first',
    '--env',
    'default',
    '--dir',
    dir,
  ]);
  await collabJson(t, [
    'comment',
    'create',
    id,
    '--user',
    'writer',
    '--body',
    'the second',
    '--env',
    'default',
    '--dir',
    dir,
  ]);
  const tail = startCollab(t, ['tail', '--env', 'default', '--since', '0', '--dir', dir]);
  t.match(await tail.line((line) => line.includes('thread.created')), / {2}"the first"$/);
  t.match(await tail.line((line) => line.includes('comment.created')), / {2}"the second"$/);
});

t.test('it ends silently when its output pipe is closed, as by SIGPIPE', async (t) => {
  const tail = startCollab(t, ['tail', '--env', 'default', '--since', '0', '--json', '--dir', dir]);
  await tail.line(() => true);
  tail.process.stdout?.destroy();
  const ended = new Promise<number | null>((resolve) => tail.process.once('exit', resolve));
  await addUser('late', 'Late');
  t.equal(await ended, 141);
  t.notMatch(tail.errors(), /EPIPE|Error|\bat /);
});

t.test('an environment that does not exist is refused', async (t) => {
  t.match(await collab(['tail', '--env', 'nowhere', '--dir', dir]), {
    code: 1,
    stdout: '',
    stderr: /→ `collab env list --dir \S+` lists/,
  });
});

t.test('it ends with 0 and says so when its environment is deleted, also when it is imported again', async (t) => {
  await collabJson(t, ['env', 'create', 'doomed', '--dir', dir]);
  await collabJson(t, ['user', 'add', 'ann', '--env', 'doomed', '--dir', dir]);
  const file = join(tempFolder(t), 'doomed.ndjson');
  await collabJson(t, ['export', file, '--env', 'doomed', '--dir', dir]);
  const tails = [[], ['--json']].map((form) =>
    startCollab(t, ['tail', '--env', 'doomed', '--since', '0', ...form, '--dir', dir]),
  );
  const ended = tails.map(({ process }) => new Promise<number | null>((resolve) => process.once('exit', resolve)));
  for (const tail of tails) await tail.line((line) => line.includes('user.updated'));
  await collabJson(t, ['env', 'delete', 'doomed', '--yes', '--dir', dir]);
  await collabJson(t, ['import', file, '--dir', dir]);
  t.strictSame(await Promise.all(ended), [0, 0]);
  for (const tail of tails)
    t.match(tail.errors(), /The environment doomed was deleted, so there are no more events to follow\.\n$/);
});
