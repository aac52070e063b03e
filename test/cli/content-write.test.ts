import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import type { AuditRecord } from '../../src/model/environments/audit.ts';
import { picture, wav } from '../fixtures/media.ts';
import { collabCommand, type Finished, startServer } from '../helpers/cli.ts';
import { collab, collabJson } from '../helpers/command.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { TestSocket } from '../helpers/socket.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { userToken } from '../helpers/user-token.ts';

// Threads, comments and uploads that the command line creates, while a server runs and while none does.

const dir = tempFolder(t);
const init = await newFolder(dir);
const at = ['--env', 'default', '--dir', dir];
const asAnn = [...at, '--user', 'ann'];
const body = ['--body', 'x'];

interface Created {
  readonly id: string;
  readonly comments: readonly { readonly id: string }[];
}

const newThread = (...more: string[]): Promise<Created> =>
  collabJson<Created>(t, ['thread', 'create', '--room', 'demo', ...asAnn, '--body', 'Hello', ...more]);

/** Runs a command that reads this text from standard input. */
function withInput(
  input: string | Buffer,
  ...args: string[]
): { status: number | null; stdout: string; stderr: string } {
  const [node = '', ...program] = collabCommand;
  return spawnSync(node, [...program, ...args], { input, encoding: 'utf8' });
}

async function file(name: string, bytes: Buffer | string): Promise<string> {
  const path = join(dir, name);
  writeFileSync(path, bytes);
  return path;
}

await collabJson(t, ['user', 'add', 'ann', ...at]);
await collabJson(t, ['user', 'add', 'bob', ...at]);

t.test('without a server, a thread, comments and their files are created and changed', async (t) => {
  const sound = await file('note one.wav', wav(0.1));
  const upload = await collabJson<{ id: string; url: string }>(t, ['upload', 'create', sound, ...asAnn]);
  t.match(upload, {
    type: 'audio',
    filename: 'note one.wav',
    mimeType: 'audio/wav',
    durationMs: 100,
    url: `/files/${init.environment.id}/${upload.id}`,
  });
  const thread = await newThread(
    '--mention',
    'bob',
    '--mention',
    'ann',
    '--metadata',
    '{"priority":1}',
    '--position',
    '{"x":0.5,"y":0.25}',
    '--attach',
    upload.id,
  );
  t.match(thread, {
    roomId: 'demo',
    userId: 'ann',
    metadata: { priority: 1 },
    position: { x: 0.5, y: 0.25 },
    comments: [{ body: 'Hello', mentions: ['bob', 'ann'], attachments: [{ id: upload.id }] }],
  });
  const comment = await collabJson<{ id: string }>(t, [
    'comment',
    'create',
    thread.id,
    '--user',
    'bob',
    ...at,
    '--body',
    'Well',
    '--metadata',
    '{"a":true}',
  ]);
  t.match(comment, { threadId: thread.id, userId: 'bob', body: 'Well', metadata: { a: true }, editedAt: null });
  t.match(await collabJson(t, ['comment', 'edit', comment.id, ...at, '--body', 'Better']), {
    id: comment.id,
    body: 'Better',
    metadata: { a: true },
    editedAt: /^20/,
  });
  t.match(await collabJson(t, ['thread', 'update', thread.id, ...at, '--metadata', '{"priority":2}']), {
    threadId: thread.id,
    resolved: false,
  });
  t.match(await collabJson(t, ['thread', 'show', thread.id, ...at]), {
    metadata: { priority: 2 },
    position: { x: 0.5 },
    comments: [{}, { body: 'Better' }],
  });
  const { items } = await collabJson<{ items: AuditRecord[] }>(t, ['audit', 'list', ...at]);
  t.match(items.slice(-2), [
    { action: 'comment.update', actor: { kind: 'cli' }, target: { id: comment.id } },
    { action: 'thread.update', actor: { kind: 'cli' }, target: { id: thread.id } },
  ]);
  t.notMatch(items.at(-3), { target: { kind: /thread|comment/ } }, 'what it creates is not recorded');
});

t.test('the text names what was created and what to do next', async (t) => {
  const { stdout } = await collab(['thread', 'create', '--room', 'demo', ...asAnn, '--body', 'Hello']);
  const [, thread = '', comment = ''] =
    /^thread +(th_\S+)\ncomment +(cm_\S+)\n\nNext:\n.*thread show th_/m.exec(stdout) ?? [];
  t.match(await collabJson(t, ['thread', 'show', thread, ...at]), { comments: [{ id: comment }] });
  t.match(await collab(['comment', 'create', thread, ...asAnn, ...body]), {
    code: 0,
    stdout: /^Created the comment cm_\S+\.\nNext:\n.*comment show cm_/,
  });
  t.match(await collab(['comment', 'edit', comment, ...at, ...body]), { code: 0, stdout: /^Edited the comment cm_/ });
  t.match(await collab(['upload', 'create', await file('n.wav', wav(0.1)), ...asAnn]), {
    code: 0,
    stdout: /^id +(file_\S+)\nurl +\/files\/\S+\ntype +audio\/wav\nsize +\d+ bytes\n\nNext:\n.*--attach file_/,
  });
});

t.test('standard input is a text, without the line breaks at its end', async (t) => {
  const args = ['thread', 'create', '--room', 'demo', ...asAnn, '--body', '-', '--json'];
  t.match(JSON.parse(withInput('two\n\nlines\r\n\n', ...args).stdout), { comments: [{ body: 'two\n\nlines' }] });
  t.match(withInput('\n', ...args), { status: 2, stderr: /--body must be 1 to 10000 characters, not 0/ });
  t.match(withInput(Buffer.from([0xff, 0xfe]), ...args), { status: 2, stderr: /--body must be UTF-8/ });
  t.match(withInput(Buffer.alloc(5_000_000, 'a'), ...args), {
    status: 2,
    stderr: /--body must be at most 4194304 bytes/,
  });
});

t.test('bad input gets the message of the API, which names the option', async (t) => {
  const thread = ['thread', 'create', '--room', 'demo'];
  const cases: [args: string[], code: number, stderr: RegExp][] = [
    [
      [...thread, ...at, '--user', 'carol', ...body],
      2,
      /Unknown user: carol\.[^]*→ `collab user add <id> --env <slug> --dir /,
    ],
    [[...thread, ...asAnn, '--body', ''], 2, /--body must be 1 to 10000 characters, not 0\./],
    [[...thread, ...asAnn, '--body', ' '], 2, /--body must be .*not only white space/],
    [[...thread, ...asAnn, ...body, '--metadata', '{'], 2, /--metadata is not valid JSON; it begins with "\{"/],
    [[...thread, ...asAnn, ...body, '--metadata', '[]'], 2, /--metadata must be an object, not an array/],
    [[...thread, ...asAnn, ...body, '--position', '{"x":2,"y":0}'], 2, /--position\.x must be between 0 and 1, not 2/],
    [[...thread, ...asAnn, ...body, '--mention', ''], 2, /--mention\[0\] must be 1 to/],
    [[...thread, ...asAnn, ...body, '--attach', 'file_none'], 2, /--attach holds "file_none", which is not an upload/],
    [['thread', 'create', '--room', '', ...asAnn, ...body], 2, /--room must be 1 to 512 characters/],
    [['thread', 'update', 'th_none', ...at], 2, /No option was given/],
    [['thread', 'update', 'th_none', ...at, '--metadata', '{}'], 1, /Thread not found/],
    [['comment', 'create', 'th_none', ...asAnn, ...body], 1, /Thread not found\.\n {2}→ It may have been deleted/],
    [['comment', 'edit', 'cm_none', ...at, ...body], 1, /Comment not found/],
    [['comment', 'create', 'th_none', ...at, ...body], 2, /required option '--user <id>'/],
  ];
  await Promise.all(
    cases.map(async ([args, code, stderr]) =>
      t.match(await collab(args), { code, stdout: '', stderr }, args.join(' ')),
    ),
  );
});

t.test('a file that the API refuses is refused, and no upload is left', async (t) => {
  mkdirSync(join(dir, 'folder'));
  await collabJson(t, ['env', 'update', 'default', '--max-file-size-mb', '1', '--dir', dir]);
  const before = await collabJson(t, ['upload', 'list', ...at]);
  const png = await file('is-a.jpg', await picture(20, 10).png().toBuffer());
  const cases: [path: string, more: string[], code: number, stderr: RegExp][] = [
    [join(dir, 'missing.png'), asAnn, 1, /There is no file .*missing\.png\./],
    [join(dir, 'folder'), asAnn, 1, /folder is a folder\. <file> must be a file\./],
    ['', asAnn, 2, /<file> must be a path, but it is empty/],
    [await file('text.txt', 'Hello'), asAnn, 2, /Unsupported MIME type: none\. Accepted are image\/jpeg/],
    [png, [...asAnn, '--type', 'text/html'], 2, /Unsupported MIME type: text\/html/],
    [png, [...asAnn, '--type', 'image/jpeg'], 2, /The content is image\/png, not image\/jpeg as declared/],
    [png, [...at, '--user', 'carol'], 2, /Unknown user: carol/],
    [png, [...at, '--user', ''], 2, /--user must be 1 to/],
    [await file('empty.png', ''), asAnn, 2, /The file is empty/],
    [
      await file('large.wav', Buffer.concat([wav(0.1), Buffer.alloc(1024 * 1024)])),
      asAnn,
      1,
      /File too large \(max 1MB\)/,
    ],
    [await file('page.mp3', '<html>'), asAnn, 2, /The content is not audio\/mpeg: it begins like HTML/],
  ];
  await Promise.all(
    cases.map(async ([path, more, code, stderr]) =>
      t.match(await collab(['upload', 'create', path, ...more]), { code, stdout: '', stderr }, path),
    ),
  );
  await collabJson(t, [
    'env',
    'update',
    'default',
    '--disable-media',
    'image',
    '--quotas',
    'userUploadMb=1',
    '--dir',
    dir,
  ]);
  t.match(await collab(['upload', 'create', png, ...asAnn]), { code: 1, stderr: /Image uploads are disabled/ });
  const half = await file('half.wav', Buffer.concat([wav(0.1), Buffer.alloc(600 * 1024)]));
  t.equal((await collab(['upload', 'create', half, ...asAnn])).code, 0);
  t.match(await collab(['upload', 'create', half, ...asAnn]), {
    code: 1,
    stderr: /The quota userUploadMb is used up[^]*→ `collab env update <slug> --quotas <name>=<n> --dir /,
  });
  const after = await collabJson<{ items: unknown[] }>(t, ['upload', 'list', ...at]);
  t.equal(after.items.length, (before as { items: unknown[] }).items.length + 1);
  await collabJson(t, [
    'env',
    'update',
    'default',
    '--enable-media',
    'image',
    '--max-file-size-mb',
    '10',
    '--quotas',
    'userUploadMb=off',
    '--dir',
    dir,
  ]);
});

t.test('the bytes of an upload are written to a new file or to standard output', async (t) => {
  const bytes = Buffer.concat([wav(0.1), Buffer.alloc(3_000_000, 7)]);
  const { id } = await collabJson<{ id: string }>(t, ['upload', 'create', await file('long.wav', bytes), ...asAnn]);
  const out = join(dir, 'fetched.wav');
  t.match(await collab(['upload', 'fetch', id, ...at, '--out', out]), {
    code: 0,
    stdout: /^Wrote 3\.\d MB to .*fetched\.wav\.\n$/,
  });
  t.ok(readFileSync(out).equals(bytes));
  t.match(await collab(['upload', 'fetch', id, ...at, '--out', out]), {
    code: 1,
    stdout: '',
    stderr: /fetched\.wav exists already, so nothing was written/,
  });
  const [node = '', ...program] = collabCommand;
  t.ok(
    spawnSync(node, [...program, 'upload', 'fetch', id, ...at, '--out', '-', '--json'], {
      maxBuffer: 10_000_000,
    }).stdout.equals(bytes),
    'nothing but the bytes',
  );
  t.match(await collab(['upload', 'fetch', 'file_none', ...at, '--out', `${out}2`]), {
    code: 1,
    stderr: /There is no upload file_none/,
  });
});

t.test('plugins filter what is created, as they filter requests', async (t) => {
  const config = readFileSync(join(dir, 'config.json'), 'utf8');
  t.teardown(() => writeFileSync(join(dir, 'config.json'), config));
  const thread = await newThread();
  writeFileSync(
    join(dir, 'config.json'),
    JSON.stringify({
      ...(JSON.parse(config) as object),
      plugins: [{ use: fileURLToPath(new URL('../fixtures/plugins/good.mjs', import.meta.url)) }],
    }),
  );
  const create = (text: string): Promise<Finished> =>
    collab(['comment', 'create', thread.id, ...asAnn, '--body', text]);
  t.match(await create('banned'), { code: 1, stdout: '', stderr: /^collab: Please do not write banned\.\n/ });
  t.match(await create('hold me'), {
    code: 0,
    stdout:
      /^The text of the comment cm_\S+ is held until a moderator approves it\.\nNext:\n.*moderation list --env default/,
  });
  t.match(await create('shout'), { code: 0 });
  t.match(await collabJson(t, ['moderation', 'list', ...at]), {
    items: [{ kind: 'comment', reason: 'asked for it', comment: { body: 'hold me' } }],
  });
  t.match(await collabJson(t, ['comment', 'list', thread.id, ...at]), {
    items: [{ body: 'Hello' }, { body: 'SHOUT' }],
  });
});

t.test('beside a server, a browser gets the event of each write at once, and the file', async (t) => {
  const server = await startServer(t, dir, ['--workers', '2']);
  const token = await userToken(init, 'ann');
  const socket = new TestSocket(`${server.url.replace('http', 'ws')}/api/v1/ws`, {
    protocols: ['collab.v1', `collab.key.${init.publishableKey}`, `collab.token.${token}`],
  });
  t.teardown(() => socket.close());
  await socket.opened;
  await socket.request('room.join', { roomId: 'demo' });
  const event = (type: string, id: string): Promise<unknown> =>
    socket.until(
      () => socket.frames.find((frame) => frame.type === type && JSON.stringify(frame).includes(`"${id}"`)),
      type,
    );

  const png = await picture(300, 200).png().toBuffer();
  const upload = await collabJson<{ id: string; url: string; thumbnailUrl: string }>(t, [
    'upload',
    'create',
    await file('shot.png', png),
    ...asAnn,
  ]);
  t.match(upload, { width: 300, height: 200, url: new RegExp(`^${server.url}/files/`) });
  const headers = { 'X-Service-Key': init.publishableKey, 'X-Service-Token': token };
  t.ok(Buffer.from(await (await fetch(upload.url, { headers })).arrayBuffer()).equals(png));
  t.match(await fetch(upload.thumbnailUrl, { headers }), { status: 200 }, 'the server makes the thumbnail');

  const thread = await newThread('--attach', upload.id);
  t.match(await event('thread.created', thread.id), {
    roomId: 'demo',
    actor: { userId: 'ann' },
    data: { thread: { id: thread.id }, comment: { body: 'Hello', attachments: [{ id: upload.id }] } },
  });
  const comment = await collabJson<{ id: string }>(t, ['comment', 'create', thread.id, ...asAnn, '--body', 'Live']);
  t.match(await event('comment.created', comment.id), { data: { body: 'Live' } });
  await collabJson(t, ['comment', 'edit', comment.id, ...at, '--body', 'Edited']);
  t.match(await event('comment.updated', comment.id), { data: { body: 'Edited' } });
  await collabJson(t, ['thread', 'update', thread.id, ...at, '--position', '{"x":0.1,"y":0.2}']);
  t.match(await event('thread.updated', thread.id), { data: { position: { x: 0.1, y: 0.2 } } });
});
