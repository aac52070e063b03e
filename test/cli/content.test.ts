import { userInfo } from 'node:os';
import t from 'tap';
import type { AuditRecord } from '../../src/model/environments/audit.ts';
import { startCollab, startServer } from '../helpers/cli.ts';
import { collab, collabJson } from '../helpers/command.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { uploadSound } from '../helpers/upload.ts';
import { userToken } from '../helpers/user-token.ts';

// Rooms, threads, comments and uploads on the command line, beside a running server that has to see each change.

const dir = tempFolder(t);
const init = await newFolder(dir);
const server = await startServer(t, dir, ['--workers', '1'], { env: { COLLAB_RATE_LIMIT_PER_MINUTE: '1000000' } });
const inDefault = ['--env', 'default', '--dir', dir];

async function api<T>(method: string, path: string, body?: object): Promise<{ status: number; body: T }> {
  const headers = { Authorization: `Bearer ${init.secretKey}`, 'Content-Type': 'application/json' };
  const answer = await fetch(`${server.url}/api/v1${path}`, {
    method,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
  });
  return { status: answer.status, body: (await answer.json()) as T };
}

async function newThread(
  room: string,
  text: string,
  more: object = {},
): Promise<{ id: string; comments: { id: string }[] }> {
  const { status, body } = await api<{ thread: { id: string; comments: { id: string }[] } }>(
    'POST',
    `/rooms/${encodeURIComponent(room)}/threads`,
    { userId: 'ann', body: text, ...more },
  );
  t.equal(status, 201);
  return body.thread;
}

await api('PUT', '/users/ann', { name: 'Ann' });

t.test('rooms are listed, shown and deleted', async (t) => {
  await newThread('docs/intro', 'a');
  await newThread('docs/intro', 'b');
  await newThread('other', 'c');
  t.match(await collabJson(t, ['room', 'list', ...inDefault]), {
    items: [{ roomId: 'other' }, { roomId: 'docs/intro', threadCount: 2 }],
    more: false,
  });
  t.match(await collabJson(t, ['room', 'list', '--prefix', 'docs/', ...inDefault]), {
    items: [{ roomId: 'docs/intro' }],
  });
  t.match(await collabJson(t, ['room', 'list', '--limit', '1', ...inDefault]), {
    items: [{ roomId: 'other' }],
    more: true,
  });
  t.match(await collab(['room', 'list', '--limit', '1', ...inDefault]), {
    code: 0,
    stdout: /^ROOM +THREADS[^]*There are more than these 1/,
  });
  t.match(await collabJson(t, ['room', 'show', 'docs/intro', ...inDefault]), {
    roomId: 'docs/intro',
    openThreadCount: 2,
  });
  t.match(await collab(['room', 'show', 'docs/intro', ...inDefault]), {
    code: 0,
    stdout: /threads +2, 2 of them open\n[^]*thread list docs\/intro --env default --dir /,
  });
  t.match(await collab(['room', 'delete', 'docs/intro', ...inDefault]), {
    code: 2,
    stderr: /with its 2 threads[^]*Add --yes/,
  });
  t.match(await collabJson(t, ['room', 'delete', 'docs/intro', '--yes', ...inDefault]), {
    deleted: true,
    roomId: 'docs/intro',
    threads: 2,
  });
  t.match((await api('GET', '/rooms/docs%2Fintro')).body, { room: { threadCount: 0, createdAt: null }, threads: [] });
  t.match(await collab(['room', 'show', 'docs/intro', ...inDefault]), {
    code: 1,
    stdout: '',
    stderr: /→ `collab room list/,
  });
});

t.test('threads are listed, shown, resolved, opened again and deleted', async (t) => {
  const [first, second] = [await newThread('threads', 'first\u001b[2J'), await newThread('threads', 'second')];
  t.match(await collabJson(t, ['thread', 'list', 'threads', ...inDefault]), {
    items: [{ id: second.id }, { id: first.id }],
  });
  t.match(await collabJson(t, ['thread', 'resolve', first.id, ...inDefault]), { threadId: first.id, resolved: true });
  t.match((await api('GET', `/threads/${first.id}`)).body, { thread: { resolved: true, resolvedBy: null } });
  t.match(await collabJson(t, ['thread', 'list', 'threads', '--resolved', 'false', ...inDefault]), {
    items: [{ id: second.id }],
  });
  t.match(await collab(['thread', 'show', first.id, ...inDefault]), {
    code: 0,
    stdout: /state +resolved \S+ by backend\n[^]*first·\[2J\n\nNext:\n.*thread reopen/,
  });
  t.match(await collab(['thread', 'reopen', first.id, ...inDefault]), {
    code: 0,
    stdout: `The thread ${first.id} is open.\n`,
  });
  t.match(await collabJson(t, ['thread', 'delete', first.id, '--yes', ...inDefault]), { deleted: true, comments: 1 });
  t.equal((await api('GET', `/threads/${first.id}`)).status, 404);
  t.match(await collab(['thread', 'resolve', first.id, ...inDefault]), {
    code: 1,
    stderr: /→ It may have been deleted/,
  });
  t.match(await collab(['thread', 'list', 'threads', '--resolved', 'maybe', ...inDefault]), {
    code: 2,
    stderr: /--resolved must be true or false/,
  });
  t.match(await collab(['thread', 'list', 'threads', '--limit', '0', ...inDefault]), {
    code: 2,
    stderr: /--limit must be a whole number from 1 to 100000/,
  });
});

t.test('comments are listed, shown and deleted', async (t) => {
  const thread = await newThread('comments', 'one');
  await api('POST', `/threads/${thread.id}/comments`, { userId: 'ann', body: 'two', mentions: ['ann'] });
  const { items } = await collabJson<{ items: { id: string; body: string }[] }>(t, [
    'comment',
    'list',
    thread.id,
    ...inDefault,
  ]);
  t.match(items, [{ body: 'one' }, { body: 'two' }]);
  t.match(await collabJson(t, ['comment', 'list', thread.id, '--user', 'bob', ...inDefault]), { items: [] });
  const id = items[1]?.id ?? '';
  t.match(await collab(['comment', 'show', id, ...inDefault]), { code: 0, stdout: /text +two\nmentions +ann\n/ });
  t.match(await collab(['comment', 'delete', id, ...inDefault]), { code: 2, stderr: /comment of ann: "two"/ });
  t.match(await collabJson(t, ['comment', 'delete', id, '--yes', ...inDefault]), { deleted: true, id });
  t.equal((await api('GET', `/comments/${id}`)).status, 404);
  t.match(await collab(['comment', 'show', id, ...inDefault]), { code: 1, stderr: /→ It may have been deleted/ });
  t.match(await collab(['comment', 'list', 'th_none', ...inDefault, '--json']), {
    code: 1,
    stderr: /"code":"thread_not_found"/,
  });
});

t.test('uploads are listed, shown, and deleted if no comment links them', async (t) => {
  const token = await userToken(init, 'ann');
  const [linked, free] = [await uploadSound(server, init, token), await uploadSound(server, init, token)];
  const { id: threadId, comments } = await newThread('files', 'listen', { attachmentIds: [linked.id] });
  t.match(await collabJson(t, ['upload', 'list', ...inDefault]), {
    items: [
      { id: linked.id, uploadedBy: 'ann', commentId: comments[0]?.id },
      { id: free.id, commentId: null },
    ],
    more: false,
  });
  const attachments = [{ id: linked.id, url: linked.url }];
  t.match(linked.url, `${server.url}/files/`);
  t.match(
    await collabJson(t, ['comment', 'list', threadId, ...inDefault]),
    { items: [{ attachments }] },
    'with the URL of the API',
  );
  t.match(await collabJson(t, ['thread', 'show', threadId, ...inDefault]), { comments: [{ attachments }] });
  const tail = startCollab(t, ['tail', '--since', '0', '--json', ...inDefault], {
    env: { COLLAB_PUBLIC_URL: 'https://comments.example.com/collab' },
  });
  t.match(JSON.parse(await tail.line((line) => line.includes(linked.id))), {
    data: {
      comment: { attachments: [{ url: new RegExp(`^https://comments\\.example\\.com/collab/files/.*${linked.id}$`) }] },
    },
  });
  t.equal(await tail.end('SIGINT'), 0);
  t.match(await collabJson(t, ['upload', 'list', '--unlinked', ...inDefault]), { items: [{ id: free.id }] });
  t.match(await collab(['upload', 'show', linked.id, ...inDefault]), {
    code: 0,
    stdout: new RegExp(`type +audio/wav\n[^]*comment +${comments[0]?.id}\n`),
  });
  t.match(await collab(['upload', 'delete', linked.id, '--yes', ...inDefault]), {
    code: 1,
    stderr: new RegExp(`belongs to the comment ${comments[0]?.id}`),
  });
  t.match(await collabJson(t, ['upload', 'delete', free.id, '--yes', ...inDefault]), { deleted: true, id: free.id });
  t.match(await collabJson(t, ['upload', 'list', ...inDefault]), { items: [{ id: linked.id }] });
  t.match(await collab(['upload', 'show', free.id, ...inDefault]), { code: 1, stderr: /→ `collab upload list/ });
});

t.test(
  'what the operator resolves and deletes is in the audit log, what a backend changes and deletes is not',
  async (t) => {
    const { id } = await newThread('audited', 'secret words');
    t.equal((await api('PATCH', `/threads/${id}`, { metadata: { note: 1 } })).status, 200);
    t.equal((await api('DELETE', `/threads/${id}`)).status, 200);
    const { items } = await collabJson<{ items: AuditRecord[] }>(t, ['audit', 'list', ...inDefault]);
    const acts = items.filter(({ action }) => /^(?:room|thread|comment|upload)\./.test(action));
    t.strictSame(
      acts.map(({ action }) => action),
      ['room.delete', 'thread.update', 'thread.update', 'thread.delete', 'comment.delete', 'upload.delete'],
    );
    for (const { actor } of acts) t.strictSame(actor, { kind: 'cli', id: userInfo().username });
    t.match(acts, [
      { target: { id: 'docs/intro' } },
      { details: { resolved: true } },
      { details: { resolved: false } },
      { target: { kind: 'thread', id: /^th_/ } },
      { target: { kind: 'comment', id: /^cm_/ } },
      { target: { kind: 'upload', id: /^file_/ } },
    ]);
  },
);
