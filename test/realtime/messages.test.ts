import t from 'tap';
import { getThread } from '../../src/domain/comments/threads.ts';
import { createWorld, startWorker } from '../helpers/realtime.ts';
import type { Frame } from '../helpers/socket.ts';
import { Backend } from '../helpers/writing.ts';

type Row = Record<string, unknown>;
const part = (frame: Frame, name: string): Row => frame.data?.[name] as Row;
const refusal = ({ type, error }: Frame): unknown => [type, error?.code];

await t.test('a browser writes over its socket, as the user of its token', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const ann = await worker.join(await world.token({ userId: 'ann' }));
  const watcher = await worker.join(await world.token({ userId: 'watcher' }));

  const created = await ann.request('thread.create', {
    roomId: 'lobby',
    userId: 'mallory',
    body: 'hello',
    position: { x: 0.5, y: 0.25 },
    mentions: ['bob'],
  });
  t.equal(created.type, 'ok');
  const thread = part(created, 'thread');
  t.match(thread, {
    roomId: 'lobby',
    resolved: false,
    position: { x: 0.5, y: 0.25 },
    comments: [{ userId: 'ann', body: 'hello', mentions: ['bob'] }],
  });
  const threadId = thread['id'] as string;

  const comment = part(await ann.request('comment.create', { threadId, body: 'more' }), 'comment');
  t.match(comment, { threadId, userId: 'ann', body: 'more', editedAt: null });
  const commentId = comment['id'] as string;

  t.match(part(await ann.request('comment.update', { commentId, body: 'better' }), 'comment'), {
    id: commentId,
    body: 'better',
    editedAt: String,
  });
  t.strictSame((await ann.request('thread.resolve', { threadId })).data, { threadId, resolved: true });
  t.strictSame((await ann.request('thread.reopen', { threadId })).data, { threadId, resolved: false });
  t.strictSame((await ann.request('comment.delete', { commentId })).data, { deleted: true });

  await watcher.frame('comment.deleted');
  const seen = watcher.frames.filter(({ type }) => /^(thread|comment)\./.test(type));
  t.strictSame(
    seen.map(({ type }) => type),
    ['thread.created', 'comment.created', 'comment.updated', 'thread.resolved', 'thread.reopened', 'comment.deleted'],
  );
  t.match(seen[0], { actor: { userId: 'ann', via: 'ws' } });

  const stored = JSON.parse(await getThread(world.ctx, world.backend, threadId)) as { comments: Row[] };
  t.strictSame(stored.comments, thread['comments']);
});

await t.test('writes follow the rules of REST', async (t) => {
  const world = await createWorld(t);
  const backend = await Backend.of(world);
  const worker = await startWorker(t, world);
  const threadId = await backend.thread('lobby');
  const commentId = await backend.comment(threadId);
  const member = await worker.join(await world.token({ userId: 'member' }));
  const viewer = await worker.join(await world.token({ userId: 'viewer', role: 'viewer' }));
  const moderator = await worker.join(await world.token({ userId: 'moderator', role: 'moderator' }));
  const elsewhere = await worker.join(await world.token({ userId: 'elsewhere', rooms: ['docs'] }));

  t.strictSame(refusal(await member.request('comment.update', { commentId, body: 'x' })), ['error', 'forbidden']);
  t.strictSame(refusal(await member.request('comment.delete', { commentId })), ['error', 'forbidden']);
  t.strictSame(refusal(await viewer.request('comment.create', { threadId, body: 'x' })), ['error', 'forbidden']);
  t.strictSame(refusal(await viewer.request('thread.resolve', { threadId })), ['error', 'forbidden']);
  t.strictSame(refusal(await elsewhere.request('comment.create', { threadId, body: 'x' })), ['error', 'forbidden']);
  t.strictSame(refusal(await elsewhere.request('thread.create', { roomId: 'lobby', body: 'x' })), [
    'error',
    'forbidden',
  ]);
  t.equal((await moderator.request('comment.update', { commentId, body: 'x' })).type, 'ok');
  t.equal((await moderator.request('comment.delete', { commentId })).type, 'ok');
});

await t.test('invalid data gets an error reply that names the field, and the socket stays open', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const socket = await worker.join(await world.token({ userId: 'ann' }));
  const cases: [type: string, data: unknown, code: string, message: RegExp][] = [
    ['thread.create', undefined, 'invalid_request', /^data\.roomId is required$/],
    ['thread.create', [], 'invalid_request', /^data must be an object(?:, not .+)?$/],
    ['thread.create', { roomId: 5, body: 'x' }, 'invalid_request', /^data\.roomId must be a string(?:, not .+)?$/],
    ['thread.create', { roomId: '', body: 'x' }, 'invalid_request', /roomId must be 1 to 512 characters/],
    ['thread.create', { roomId: 'lobby' }, 'invalid_request', /body is required/],
    [
      'thread.create',
      { roomId: 'lobby', body: 'x', position: { x: 2, y: 0 } },
      'invalid_request',
      /position\.x must be between 0 and 1/,
    ],
    [
      'thread.create',
      { roomId: 'lobby', body: 'x'.repeat(10_001) },
      'invalid_request',
      /body must be 1 to 10000 characters/,
    ],
    ['comment.create', { body: 'x' }, 'invalid_request', /^data\.threadId is required$/],
    ['comment.create', { threadId: 'th_unknown', body: 'x' }, 'thread_not_found', /./],
    ['comment.create', { threadId: 'ü ../\n\u0000', body: 'x' }, 'thread_not_found', /./],
    ['comment.create', { threadId: 'x'.repeat(5_000), body: 'x' }, 'thread_not_found', /./],
    ['comment.update', { commentId: 'cm_unknown', body: 'x' }, 'comment_not_found', /./],
    [
      'comment.update',
      { commentId: '\ud800', body: 'x' },
      'invalid_request',
      /^data\.commentId must be well-formed Unicode/,
    ],
    [
      'presence.update',
      { roomId: 'lobby', state: { name: '\ud800' } },
      'invalid_request',
      /^data\.state\.name must be well-formed Unicode/,
    ],
    [
      'cursor',
      { roomId: 'lobby', x: 0, y: 0, tool: '\ud800' },
      'invalid_request',
      /^data\.tool must be well-formed Unicode/,
    ],
    [
      'cursor',
      { roomId: 'lobby', x: 0, y: 0, '\ud800': 1 },
      'invalid_request',
      /^data\.\ufffd must be well-formed Unicode/,
    ],
    ['comment.delete', { commentId: null }, 'invalid_request', /^data\.commentId must be a string(?:, not .+)?$/],
    ['thread.resolve', { threadId: 'th_unknown' }, 'thread_not_found', /./],
    ['room.enter', { roomId: 'lobby' }, 'invalid_request', /^Unknown message type room\.enter$/],
    ['__proto__', {}, 'invalid_request', /^Unknown message type __proto__$/],
    ['connect', {}, 'invalid_request', /^Unknown message type connect$/],
    ['x'.repeat(1_000), {}, 'invalid_request', /^Unknown message type x{60}…$/],
  ];
  for (const [type, data, code, message] of cases) {
    const { error } = await socket.request(type, data);
    t.equal(error?.code, code, `${type} ${JSON.stringify(data)?.slice(0, 60)}: ${error?.message}`);
    t.match(error?.message, message);
  }
});

await t.test('messages without a valid id are answered without one, and only if they fail', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const socket = await worker.join(await world.token({ userId: 'ann' }));
  socket.send({ type: 'thread.create', data: { roomId: 'lobby', body: 'silent' } });
  await socket.frame('thread.created');
  socket.send({ type: 'thread.create', data: {} });
  const failed = await socket.frame('error');
  t.notOk('id' in failed);
  t.notOk(socket.frames.some(({ type }) => type === 'ok'));

  const errors = (): Frame[] => socket.frames.filter(({ type }) => type === 'error');
  for (const id of [0, -1, 1.5, '1', null, {}]) {
    const before = errors().length;
    socket.send({ type: 'pong', id });
    await socket.until(() => errors().length > before);
    t.match(errors().at(-1), { error: { code: 'invalid_request', message: 'id must be a positive integer' } });
  }
  for (const message of [{}, { type: 5 }, { data: {} }]) {
    const before = errors().length;
    socket.send(message);
    await socket.until(() => errors().length > before);
    t.match(errors().at(-1), { error: { code: 'invalid_request', message: 'type must be a string' } });
  }
});

await t.test('a frame that is not a message closes the socket', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const token = await world.token({ userId: 'ann' });
  const frames: [name: string, frame: string | Buffer][] = [
    ['no JSON', '{"type":'],
    ['empty', ''],
    ['an array', '[{"type":"pong"}]'],
    ['null', 'null'],
    ['a text', '"pong"'],
    ['binary', Buffer.from('{"type":"pong"}')],
    ['too large', JSON.stringify({ type: 'pong', data: 'x'.repeat(65_536) })],
  ];
  for (const [name, frame] of frames) {
    const socket = await worker.join(token);
    socket.sendRaw(frame);
    t.strictSame(await socket.closed, { code: 4400, reason: 'bad_message' }, name);
    t.equal(socket.frames.at(-1)?.type, 'error', name);
  }
  const socket = await worker.join(token);
  socket.sendRaw(JSON.stringify({ type: 'pong', id: 1, data: 'x'.repeat(65_536 - 33) }));
  t.equal((await socket.frame('ok')).id, 1, 'just below the limit is accepted');
});

await t.test('messages of one client take effect in the order of sending', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const socket = await worker.join(await world.token({ userId: 'ann' }));
  const threadId = part(await socket.request('thread.create', { roomId: 'lobby', body: 'first' }), 'thread')[
    'id'
  ] as string;
  const bodies = Array.from({ length: 30 }, (_, index) => `comment ${index}`);
  await Promise.all(bodies.map((body) => socket.request('comment.create', { threadId, body })));
  const { comments } = JSON.parse(await getThread(world.ctx, world.backend, threadId)) as { comments: Row[] };
  t.strictSame(
    comments.map(({ body }) => body),
    ['first', ...bodies],
  );
});

await t.test('frames that violate the protocol close their own socket and nothing else', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const token = await world.token({ userId: 'ann' });
  const steady = await worker.join(token);
  const masked = (first: number, length: number, payload: number[] = []): Buffer =>
    Buffer.from([first, 0x80 | length, 0, 0, 0, 0, ...payload]);
  const breaches: [name: string, bytes: Buffer][] = [
    ['text that is not UTF-8', masked(0x81, 2, [0xff, 0xfe])],
    ['an unknown opcode', masked(0x83, 0)],
    ['a reserved bit', masked(0xc1, 2, [0x7b, 0x7d])],
    ['a long control frame', masked(0x89, 126, [0, 200])],
    ['a fragmented control frame', masked(0x09, 0)],
    ['a continuation of nothing', masked(0x80, 2, [0x7b, 0x7d])],
    ['a length beyond all bounds', masked(0x81, 127, [0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])],
    ['noise', Buffer.from(Array.from({ length: 512 }, (_, index) => (index * 167 + 13) % 256))],
  ];
  for (const [name, bytes] of breaches) {
    const socket = await worker.join(token);
    socket.sendBytes(bytes);
    t.ok((await socket.closed).code >= 1000, name);
  }
  t.equal((await steady.request('pong')).type, 'ok');
});

await t.test('a message in many fragments is one message', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const socket = await worker.join(await world.token({ userId: 'ann' }));
  const text = Buffer.from(
    JSON.stringify({ type: 'thread.create', id: 5, data: { roomId: 'lobby', body: 'x'.repeat(5_000) } }),
  );
  for (let from = 0; from < text.length; from += 100)
    socket.sendFragment(text.subarray(from, from + 100), from + 100 >= text.length);
  t.match(await socket.until(() => socket.frames.find(({ id }) => id === 5)), {
    type: 'ok',
    data: { thread: { comments: [{ body: 'x'.repeat(5_000) }] } },
  });
});
