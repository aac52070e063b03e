import { createHmac } from 'node:crypto';
import t from 'tap';
import { signingKeysOf } from '../../src/domain/records/partitions.ts';
import type { SigningKey } from '../../src/model/environments/key.ts';
import { messages } from '../../src/realtime/messages/messages.ts';
import { socketSchemas } from '../../src/realtime/socket-schemas.ts';
import { createWorld, startWorker, type World } from '../helpers/realtime.ts';
import type { SchemaNode } from '../helpers/route-calls.ts';
import { Backend } from '../helpers/writing.ts';

const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

await t.test('a message that nests too deeply closes the socket, with an error that names the bound', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const token = await world.token({ userId: 'ann' });
  const deep: readonly (readonly [type: string, data: string])[] = [
    ['room.join', `{"roomId":"r","state":{"x":${nested(6_000)}}}`],
    ['presence.update', `{"roomId":"r","state":{"x":${nested(6_000)}}}`],
    ['cursor', `{"roomId":"r","x":1,"y":1,"more":${nested(6_000)}}`],
    ['room.broadcast', `{"roomId":"r","data":${nested(6_000)}}`],
    ['p2p.signal', `{"roomId":"r","to":"cn_x","data":${nested(6_000)}}`],
    ['comment.create', `{"threadId":"t","body":"x","metadata":${nested(6_000)}}`],
    ['room.broadcast', `{"roomId":"r","data":${nested(63)}}`],
  ];
  for (const [type, data] of deep) {
    const socket = await worker.join(token);
    await socket.request('room.join', { roomId: 'r' });
    socket.sendRaw(`{"type":"${type}","id":9,"data":${data}}`);
    t.strictSame(await socket.closed, { code: 4400, reason: 'bad_message' }, type);
    t.match(
      socket.frames.at(-1)?.error,
      { code: 'invalid_json', message: 'A message must not nest arrays and objects more than 64 levels deep' },
      type,
    );
  }
  const pending = worker.open();
  await pending.opened;
  pending.sendRaw(`{"type":"connect","data":{"since":${nested(6_000)}}}`);
  t.strictSame(await pending.closed, { code: 4400, reason: 'bad_message' }, 'before authentication, too');

  const socket = await worker.join(token);
  await socket.request('room.join', { roomId: 'r' });
  socket.sendRaw(`{"type":"room.broadcast","id":9,"data":{"roomId":"r","data":${nested(62)}}}`);
  t.equal((await socket.until(() => socket.frames.find(({ id }) => id === 9))).type, 'ok', '64 levels are accepted');
});

// uWebSockets.js answers ping frames itself, without calling the message handler.
for (const kind of ['ping', 'pong'] as const) {
  await t.test(`a flood of ${kind} frames counts against the message rate`, async (t) => {
    const world = await createWorld(t);
    const worker = await startWorker(t, world, { 'ws.messagesPerSecond': '10', 'ws.messageBurst': '20' });
    const socket = await worker.join(await world.token({ userId: 'ann' }));
    for (let i = 0; i < 19; i++) socket[kind]();
    t.equal((await socket.request('pong')).type, 'ok', 'up to the burst, like messages');
    socket[kind]();
    t.strictSame(await socket.closed, { code: 4429, reason: 'rate_limited' });

    const pending = worker.open();
    await pending.opened;
    for (let i = 0; i < 11; i++) pending[kind]();
    t.strictSame(await pending.closed, { code: 4429, reason: 'rate_limited' }, 'before authentication, too');
  });
}

await t.test('a token with claims out of bounds is refused as an invalid token', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const socket = await worker.join(await world.token({ userId: 'ann' }));
  const beyond = [
    '8640000000001',
    '1e13',
    '1e308',
    '1e400',
    '9007199254740993',
    '-1e400',
    '"8.64e12"',
    '[8.64e12]',
    'null',
    'true',
    '{}',
  ];
  for (const exp of beyond) {
    const token = await signed(world, `{"sub":"ann","exp":${exp}}`);
    const { refused } = worker.open({ headers: { 'X-Service-Key': world.key, 'X-Service-Token': token } });
    const { status, body } = await refused;
    t.equal(status, 401, `exp ${exp}`);
    t.match(body, { error: /^(Invalid token|The token has expired)/ });
    t.match(
      (await socket.request('auth.refresh', { token })).error,
      { code: /^(invalid_token|token_expired)$/ },
      `a refresh with exp ${exp}`,
    );
  }
  const past = worker.open({
    headers: { 'X-Service-Key': world.key, 'X-Service-Token': await signed(world, '{"sub":"ann","exp":8.64e13}') },
  });
  t.strictSame((await past.refused).body, {
    error: 'Invalid token: exp must be at most 8640000000000, not 86400000000000',
  });
  const latest = worker.open({
    headers: { 'X-Service-Key': world.key, 'X-Service-Token': await signed(world, '{"sub":"ann","exp":8.64e12}') },
  });
  t.match(
    (await latest.refused).body,
    { error: /^Invalid token: its expiry \(exp\) must be at most 86400 seconds from now, not \d+$/ },
    'the last representable time is too late',
  );

  for (const claims of [
    '"iat":1e400',
    '"iat":-1e400',
    '"nbf":1e400',
    '"nbf":"x"',
    '"name":{}',
    '"rooms":{"a":1}',
    '"rooms":[[]]',
    '"metadata":[]',
    `"metadata":{"a":${nested(3_000)}}`,
    `"x":${nested(3_000)}`,
    '"role":"__proto__"',
    '"__proto__":{"sub":"eve"}',
    '"email":1',
    '"aud":{}',
    '"iss":[]',
  ]) {
    const token = await signed(world, `{"sub":"ann","exp":${Math.floor(world.clock.now() / 1000) + 60},${claims}}`);
    const answer = await socket.request('auth.refresh', { token });
    t.not(answer.error?.code, 'internal', claims.slice(0, 40));
  }
});

await t.test('no value in any field of any message is answered with internal', async (t) => {
  const world = await createWorld(t);
  const backend = await Backend.of(world);
  const worker = await startWorker(t, world, { 'ws.messagesPerSecond': '100000', 'ws.messageBurst': '100000' });
  const threadId = await backend.thread();
  const commentId = await backend.comment(threadId);
  const token = await world.token({ userId: 'ann', role: 'moderator' });
  const fields: Readonly<Record<string, unknown>> = {
    roomId: 'lobby',
    threadId,
    commentId,
    reactionId: `re_1_${commentId}`,
    body: 'x',
    mentions: ['bob'],
    attachmentIds: [],
    position: { x: 0, y: 0 },
    metadata: {},
    id: undefined,
    emoji: '👍',
    state: {},
    x: 1,
    y: 1,
    typing: true,
    data: 1,
    to: 'cn_x',
    token,
    includeComments: true,
    limit: 1,
    cursor: undefined,
  };
  const hostile = [
    'null',
    'true',
    '0',
    '-0',
    '-1',
    '1.5',
    '1e308',
    '1e400',
    '-1e400',
    '9007199254740993',
    '8640000000000001',
    '""',
    '" "',
    '"\\u0000"',
    '"\\ud800"',
    '"a\\udc00b"',
    '"__proto__"',
    '"constructor"',
    '"../.."',
    '"a*"',
    JSON.stringify('x'.repeat(5_000)),
    '[]',
    '[[]]',
    '[null]',
    '["\\ud800"]',
    '[{}]',
    '{}',
    '{"__proto__":{"x":1}}',
    '{"constructor":{"prototype":{}}}',
    '{"x":1e400,"y":1}',
    '{"length":1e9}',
    '{"toString":1,"valueOf":1}',
    '{"toJSON":1}',
    '{"\\ud800":"\\udfff"}',
    nested(50),
    `[${'0,'.repeat(2_000)}0]`,
  ];
  let socket = await worker.join(token);
  let sent = 0;
  for (const type of [...messages.keys(), 'ping', 'connect', '__proto__', 'constructor', 'toString']) {
    const frames = hostile.map((value) => `{"type":${JSON.stringify(type)},"id":ID,"data":${value}}`);
    for (const field of fieldsOf(type)) {
      for (const value of hostile) {
        const others = Object.entries(fields).flatMap(([name, good]) =>
          name === field || good === undefined || name === 'token' ? [] : [`"${name}":${JSON.stringify(good)}`],
        );
        frames.push(`{"type":${JSON.stringify(type)},"id":ID,"data":{${[...others, `"${field}":${value}`].join()}}}`);
      }
    }
    const bad: string[] = [];
    for (const frame of frames) {
      const id = ++sent;
      socket.sendRaw(frame.replace('ID', String(id)));
      const answer = await socket.until(() => socket.frames.find((found) => found.id === id)).catch(() => null);
      if (answer === null) {
        const { code } = await socket.closed;
        if (![4400, 4401, 4403].includes(code)) bad.push(`${code} after ${frame.slice(0, 200)}`);
        socket = await worker.join(token);
      } else if (answer.error?.code === 'internal') bad.push(frame.slice(0, 200));
      if (socket.frames.length > 500) socket.frames.splice(0);
    }
    t.strictSame(bad, [], `${type}: ${fieldsOf(type).join(', ')}`);
  }
});

/** The fields that a message has, and one that none has; nothing of what is no message. */
function fieldsOf(type: string): string[] {
  if (!messages.has(type)) return [];
  const schema = socketSchemas[type] as SchemaNode | null;
  return [...Object.keys(schema?.properties ?? {}), 'unknown'];
}

/** A correctly signed token of the environment with any payload. */
async function signed({ ctx, environment }: World, payload: string): Promise<string> {
  const [entry] = await ctx.store.range(signingKeysOf(environment.id));
  const key = JSON.parse(entry?.value ?? '') as Extract<SigningKey, { kind: 'secret' }>;
  const head = Buffer.from(JSON.stringify({ alg: 'HS256', kid: key.kid, typ: 'JWT' })).toString('base64url');
  const content = `${head}.${Buffer.from(payload).toString('base64url')}`;
  return `${content}.${createHmac('sha256', key.secret).update(content).digest('base64url')}`;
}
