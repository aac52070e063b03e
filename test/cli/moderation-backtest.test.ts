import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { startServer } from '../helpers/cli.ts';
import { collab, collabJson } from '../helpers/command.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

t.test('a backtest shows what rules would do with stored comments, and changes nothing', async (t) => {
  const dir = tempFolder(t);
  const { secretKey } = await newFolder(dir);
  await collabJson(t, ['user', 'add', 'ann', '--env', 'default', '--dir', dir]);
  const server = await startServer(t, dir, ['--workers', '1']);
  const call = async (path: string, body: string) => {
    const answer = await fetch(`${server.url}/api/v1${path}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${secretKey}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ userId: 'ann', body }),
    });
    return (await answer.json()) as { thread: { id: string } };
  };
  const { thread } = await call('/rooms/room/threads', 'Hello');
  for (const body of ['Buy v1agra', 'This is spam', 'Fine']) await call(`/threads/${thread.id}/comments`, body);

  const at = ['--env', 'default', '--dir', dir];
  t.match(await collab(['moderation', 'backtest', ...at]), {
    code: 1,
    stderr: /No plugin of the configuration filters comments in default[^]*moderation-rules/,
  });
  const file = join(dir, 'config.json');
  const rules = [
    { type: 'words', words: ['viagra'], name: 'advertising' },
    { type: 'words', words: ['spam'], action: 'reject', message: 'No spam.' },
  ];
  writeFileSync(
    file,
    JSON.stringify({
      ...(JSON.parse(readFileSync(file, 'utf8')) as object),
      plugins: [{ use: 'moderation-rules', config: { rules } }],
    }),
  );
  const report = await collabJson(t, ['moderation', 'backtest', ...at]);
  t.match(report, {
    tested: 4,
    held: 1,
    rejected: 1,
    changed: 0,
    items: [
      {
        outcome: 'hold',
        plugin: 'moderation-rules',
        reason: /advertising/,
        userId: 'ann',
        roomId: 'room',
        threadId: thread.id,
        body: 'Buy v1agra',
      },
      { outcome: 'reject', plugin: 'moderation-rules', reason: 'No spam.', body: 'This is spam' },
    ],
  });
  t.match(
    (await collab(['moderation', 'backtest', '--since', '1h', ...at])).stdout,
    /hold +ann .*Buy v1agra\n.*reject[^]*Of 4 comments, 1 would be held, 1 rejected and 0 changed/,
  );
  t.match(await collabJson(t, ['moderation', 'backtest', '--since', '2999-01-01', ...at]), { tested: 0, items: [] });
  t.match(await collabJson(t, ['moderation', 'backtest', '--limit', '1', ...at]), { tested: 1 });
  t.match(await collab(['moderation', 'backtest', '--since', 'yesterday', ...at]), {
    code: 2,
    stderr: /--since must be a duration such as 7d, or an ISO 8601 time/,
  });
  t.strictSame(await collabJson(t, ['moderation', 'list', ...at]), { items: [] });
});

t.test('rules see each comment at the time at which it was written, also in a thread', async (t) => {
  const dir = tempFolder(t);
  await newFolder(dir);
  const mine = exportOf(t, [
    ['one', '12:00:00', 'Good morning'],
    ['two', '12:00:10', 'Is anybody here?'],
    ['one', '12:00:20', 'Hello'],
    ['two', '12:00:30', 'The fourth within a minute'],
    ['one', '12:10:00', 'Look at this'],
    ['two', '12:20:00', 'look at this!'],
    ['one', '12:30:00', 'Look at THIS'],
    ['two', '14:00:00', 'Look at this'],
  ]);
  await collabJson(t, ['import', mine, '--dir', dir]);
  const file = join(dir, 'config.json');
  const config = JSON.parse(readFileSync(file, 'utf8')) as object;
  const rules = [
    { type: 'rate', max: 3, minutes: 1 },
    { type: 'repeats', max: 2, minutes: 60 },
  ];
  for (const isolation of [undefined, 'worker']) {
    writeFileSync(
      file,
      JSON.stringify({ ...config, plugins: [{ use: 'moderation-rules', isolation, config: { rules } }] }),
    );
    t.match(await collabJson(t, ['moderation', 'backtest', '--env', 'mine', '--dir', dir]), {
      tested: 8,
      held: 2,
      items: [
        { body: 'The fourth within a minute', reason: '4 comments within 1 minutes' },
        { body: 'Look at THIS', reason: 'the same text 3 times within 60 minutes' },
      ],
    });
  }
});

/**
 * A file to import: the environment `mine` with these comments of ann, each with its thread, time on one day and text.
 */
function exportOf(t: Test, comments: readonly (readonly [threadId: string, time: string, body: string])[]): string {
  const times = { createdAt: '2026-01-05T00:00:00.000Z', updatedAt: '2026-01-05T00:00:00.000Z' };
  const settings = {
    requireKnownUsers: true,
    allowedOrigins: [],
    maxFileSizeMb: 10,
    media: { image: true, audio: true, video: true },
    jwtMaxLifetime: 86_400,
    jwtIssuer: null,
    limits: {},
  };
  const records = [
    { type: 'export', format: 1 },
    { type: 'environment', data: { id: 'env_mine', slug: 'mine', name: 'Mine', disabled: false, settings, ...times } },
    {
      type: 'user',
      data: {
        id: 'ann',
        userId: 'ann',
        name: 'Ann',
        avatarUrl: null,
        email: null,
        kind: 'user',
        metadata: {},
        ...times,
        firstSeenAt: null,
        lastSeenAt: null,
      },
    },
    { type: 'room', data: { roomId: 'page', metadata: {}, ...times }, lastActivityAt: times.updatedAt },
    ...[...new Set(comments.map(([threadId]) => threadId))].flatMap((threadId) => [
      {
        type: 'thread',
        data: {
          id: threadId,
          roomId: 'page',
          resolved: false,
          position: null,
          metadata: {},
          userId: 'ann',
          ...times,
          resolvedAt: null,
          resolvedBy: null,
        },
        lastActivityAt: times.updatedAt,
      },
      ...comments.flatMap(([id, time, body], index) => {
        const fields = {
          id: `comment-${index}`,
          threadId,
          userId: 'ann',
          body,
          mentions: [],
          attachments: [],
          reactions: [],
          metadata: {},
          createdAt: `2026-01-05T${time}.000Z`,
          editedAt: null,
        };
        return id === threadId ? [{ type: 'comment', data: fields }] : [];
      }),
    ]),
  ];
  const file = join(tempFolder(t), 'mine.ndjson');
  const lines = [...records, { type: 'end', lines: records.length - 1 }];
  writeFileSync(file, lines.map((record) => `${JSON.stringify(record)}\n`).join(''));
  return file;
}
