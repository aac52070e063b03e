import sharp from 'sharp';
import t from 'tap';
import { createEnvironmentAsAdmin } from '../../src/domain/admins/admin-creates.ts';
import { login } from '../../src/domain/admins/admin-sessions.ts';
import { createAdmin } from '../../src/domain/admins/admins.ts';
import type { Context } from '../../src/domain/context.ts';
import { deleteEnvironment, listEnvironments } from '../../src/domain/environments/environments.ts';
import { exportEnvironment, exportHead } from '../../src/domain/transfer/export.ts';
import { Import } from '../../src/domain/transfer/import.ts';
import { streamOf } from '../../src/domain/events/streams.ts';
import { notifyOf } from '../../src/domain/notifications/notify.ts';
import { writeKeyUses } from '../../src/domain/access/key-uses.ts';
import { recordKind } from '../../src/domain/records/record-kinds.ts';
import { addSigningKey } from '../../src/domain/access/signing-keys.ts';
import type { Comment } from '../../src/model/comment.ts';
import type { EventEnvelope } from '../../src/model/event.ts';
import { startService, type Service, type Tenant } from '../helpers/service.ts';
import { getFile, upload } from '../helpers/upload.ts';
import { addComment, addThread, addUser, done } from '../helpers/writer.ts';

/** An environment with one of each kind of record. */
interface Everything {
  readonly tenant: Tenant;
  readonly comment: Comment;
  readonly threadId: string;
  readonly picture: Buffer;
}

async function everything(service: Service, slug: string): Promise<Everything> {
  const { ctx } = service;
  const tenant = await service.tenant(slug, {
    limits: { bodyLength: 5_000 },
    allowedOrigins: ['https://a.example.com'],
  });
  await addSigningKey(ctx, tenant.environment, { kind: 'jwks', alg: 'ES256', url: 'https://idp.example.com/jwks' });
  await tenant.newKey({ name: 'ci', scope: 'moderate', rooms: 'a*', rateLimit: 7 });
  await addUser(tenant, 'ann', {
    name: 'Ann \u2028 “é” 😀',
    email: 'ann@example.com',
    metadata: { team: 'x', 7: 1, a: true },
  });
  await addUser(tenant, 'bob/ü', { kind: 'bot' });
  const picture = await sharp({ create: { width: 300, height: 200, channels: 3, background: 'red' } })
    .png()
    .toBuffer();
  const files = [];
  for (const name of ['one.png', 'two.png'])
    files.push((await upload(tenant, { bytes: picture, type: 'image/png', name })).json);
  const { id: threadId } = await addThread(tenant, 'room/ü 1', {
    metadata: { k: 'v' },
    position: { x: 0.5, y: 0.25, selector: '#a' },
  });
  service.clock.advance(1_000);
  const comment = await addComment(
    tenant,
    threadId,
    { body: 'line\u2028separator', mentions: ['bob/ü'], attachmentIds: [files[0]?.id] },
    { headers: { 'Idempotency-Key': 'once' } },
  );
  await addComment(tenant, threadId, { id: 'chosen-by-client', userId: 'bob/ü' });
  await addComment(tenant, threadId, {
    id: comment.id.replace(/.$/, (c) => (c === '0' ? '1' : '0')),
    body: 'an id that looks like ours',
  });
  const { id: gone } = await addComment(tenant, threadId);
  done(200, await tenant.request('DELETE', `/comments/${gone}`));
  done(
    201,
    await tenant.request('POST', `/comments/${comment.id}/reactions`, { body: { userId: 'ann', emoji: '👍' } }),
  );
  service.clock.advance(1_000);
  const { id: resolved } = await addThread(tenant, 'room/ü 1', { id: 'thread-by-client' });
  done(200, await tenant.request('PATCH', `/threads/${resolved}`, { body: { resolved: true } }));
  await addThread(tenant, 'doomed');
  done(200, await tenant.request('DELETE', '/rooms/doomed'));
  await addThread(tenant, 'empty');
  const state = { state: Buffer.from('some state').toString('base64') };
  for (const room of ['room%2F%C3%BC%201', encodeURIComponent('long ü'.padEnd(500, 'ü')), 'only-state', 'cleared']) {
    const answer = await fetch(`${service.urls[0]}/api/v1/rooms/${room}/p2p/state`, {
      method: 'PUT',
      headers: { ...(await tenant.userHeaders({ userId: 'ann' })), 'Content-Type': 'application/json' },
      body: JSON.stringify(state),
    });
    if (answer.status !== 200) throw new Error(await answer.text());
  }
  done(200, await tenant.request('DELETE', '/rooms/cleared/p2p/state'));
  await writeKeyUses(ctx);
  done(
    200,
    await tenant.request('PUT', '/users/bob%2F%C3%BC/notification-settings', {
      body: { inApp: { reply: false }, sms: { mention: false } },
    }),
  );
  done(
    200,
    await tenant.request('POST', `/threads/${threadId}/subscription`, { body: { userId: 'ann', action: 'subscribe' } }),
  );
  done(201, await tenant.request('POST', '/users/confined/tokens', { body: { rooms: ['room/*'] } }));
  service.clock.advance(1_000);
  await addComment(tenant, threadId, { body: 'answer', mentions: ['stranger', 'confined'] });
  const events = await ctx.store.events(streamOf(tenant.environment), 0, 1_000);
  await notifyOf(
    ctx,
    tenant.environment,
    events.map(({ text }) => JSON.parse(text) as EventEnvelope),
  );
  done(200, await tenant.request('POST', '/users/stranger/notifications/read', { body: { all: true } }));
  const { json } = await tenant.request<{ comments: Comment[] }>('GET', `/threads/${threadId}`);
  return { tenant, comment: json.comments.find(({ id }) => id === comment.id) ?? comment, threadId, picture };
}

async function linesOf(ctx: Context, withSecrets = true): Promise<string[]> {
  const lines = [exportHead()];
  for (const environment of await listEnvironments(ctx)) {
    for await (const line of exportEnvironment(ctx, environment, {
      withSecrets,
      onMissing: (what) => lines.push(`missing ${what}`),
    }))
      lines.push(line);
  }
  return lines;
}

async function take(ctx: Context, lines: readonly string[], skipExisting = false): Promise<Import> {
  const work = new Import(ctx, { skipExisting });
  try {
    for (const line of lines) await work.add(line);
    work.finish();
    return work;
  } catch (error) {
    await work.abandon();
    throw error;
  }
}

/** The names of all partitions of a store, with the number of records in each. */
async function inventory({ store }: Context, prefix = ''): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for (const partition of await store.partitions(prefix)) {
    const { length } = await store.range(partition);
    if (length > 0) found.set(partition, length);
  }
  return found;
}

t.test('the export knows every kind of record', async (t) => {
  const service = await startService(t);
  const { ctx } = service;
  await everything(service, 'one');
  const admin = await createAdmin(ctx, 'root@example.com', 'a password of some length');
  await login(ctx, { email: 'root@example.com', password: 'wrong password it is' }).catch(() => undefined);
  await login(ctx, { email: 'root@example.com', password: 'a password of some length' });
  await createEnvironmentAsAdmin(
    ctx,
    admin,
    { slug: 'two' },
    { key: 'k', method: 'POST', path: '/admin/environments', bodyHash: 'h' },
  );
  const kinds = new Set<string>();
  for (const partition of await ctx.store.partitions('')) {
    for (const { key } of await ctx.store.range(partition)) {
      const kind = recordKind(partition, key);
      if (kind === undefined) t.fail(`no kind of record matches ${partition} ${key}`);
      else kinds.add(kind.name);
    }
  }
  t.strictSame(
    [...kinds].toSorted(),
    [
      'API key',
      'admin',
      'audit record',
      'audit record of the server',
      'end of the audit log',
      'end of the audit log of the server',
      'comment',
      'comment index',
      'count of what is stored',
      'environment',
      'failed login',
      'file',
      'file job',
      'hash of an API key',
      'last use of an API key',
      'count and order of unread notifications',
      'notification',
      'notification settings',
      'notified users of a comment',
      'participants of a thread',
      'subscription to a thread',
      'number of deleted comments',
      'order of rooms',
      'order of threads',
      'order of users',
      'room',
      'session of an admin',
      'shared state',
      'signing key',
      'slug of an environment',
      'stored answer',
      'stored answer to an admin',
      'thread',
      'unfinished removal of a room',
      'upload without a comment',
      'user',
    ].toSorted(),
    'and this test has one of each',
  );
  t.equal(recordKind('e/env_1/surprise'), undefined);
  await ctx.store.transact(async (tx) => tx.put(`e/${(await listEnvironments(ctx))[0]?.id}/surprise`, 'k', '1'));
  await t.rejects(linesOf(ctx), /which this version cannot export/);
});

t.test('export, import and export again give the same bytes, and everything works as before', async (t) => {
  const from = await startService(t);
  const { tenant, comment, threadId, picture } = await everything(from, 'one');
  await everything(from, 'two');
  const lines = await linesOf(from.ctx);
  t.strictSame(
    [...new Set(lines.map((line) => (JSON.parse(line) as { type: string }).type))],
    [
      'export',
      'environment',
      'signing-key',
      'key',
      'user',
      'file',
      'chunk',
      'state',
      'room',
      'thread',
      'comment',
      'notification-settings',
      'subscription',
      'notification',
      'end',
    ],
  );
  t.strictSame(await linesOf(from.ctx), lines, 'the same content gives the same lines');

  const to = await startService(t);
  const { done: taken } = await take(to.ctx, lines);
  t.strictSame(
    taken.map(({ slug }) => slug),
    ['one', 'two'],
  );
  t.equal((await linesOf(to.ctx)).join('\n'), lines.join('\n'), 'byte by byte');

  const inside = `e/${tenant.environment.id}/`;
  const [before, after] = [await inventory(from.ctx, inside), await inventory(to.ctx, inside)];
  t.equal(after.get(`${inside}audit`), 1, 'the audit log begins with the import');
  before.set(`${inside}audit`, 1);
  for (const name of ['keyuse', 'idem', 'removals']) t.ok(before.delete(inside + name), `${name} means nothing there`);
  for (const [partition] of before)
    if (partition.startsWith(`${inside}t/`) && !after.has(partition)) before.delete(partition);
  // Participants are found again with the next event in a thread, and notified users are one to a record.
  for (const side of [before, after])
    for (const [partition] of side) if (/\/(?:followers|notified)\//.test(partition)) side.delete(partition);
  before.set(`${inside}t/${threadId}`, (before.get(`${inside}t/${threadId}`) ?? 0) - 1);
  t.strictSame(
    [...after],
    [...before],
    'all else is there, but for leftovers of a deleted room and the guard of deletions',
  );

  const moved: Tenant = {
    ...tenant,
    service: to,
    request: (method, path, options) => askAt(to, tenant, method, path, options?.body),
  };
  // The URLs of files begin with the address of the server that answers.
  const paths = ({ text }: { text: string }): unknown =>
    JSON.parse(text.replaceAll(/"http:\/\/127\.0\.0\.1:\d+/g, '"'));
  const same = async (path: string): Promise<boolean> =>
    t.strictSame(paths(await moved.request('GET', path)), paths(await tenant.request('GET', path)), path);
  for (const path of [
    '/rooms',
    '/users',
    `/threads/${threadId}`,
    '/rooms/room%2F%C3%BC%201',
    '/rooms/room%2F%C3%BC%201/threads',
    '/threads/thread-by-client',
    '/rooms/only-state',
  ])
    await same(path);
  for (const id of [comment.id, 'chosen-by-client']) {
    t.equal(
      (await moved.request('PATCH', `/comments/${id}`, { body: { body: 'edited there' } })).status,
      200,
      `${id} is found by its id`,
    );
  }
  const file = await getFile({ ...tenant, service: to }, new URL(comment.attachments[0]?.url ?? '').pathname);
  t.ok(file.bytes.equals(picture), 'files are there, for users with tokens of the old signing key');
  t.equal((await to.ctx.store.range('filejobs')).length, 4, 'thumbnails are made anew');
});

t.test('without secrets, no key and no signing secret is exported', async (t) => {
  const service = await startService(t);
  const { tenant } = await everything(service, 'one');
  const lines = await linesOf(service.ctx, false);
  t.strictSame(
    lines.filter((line) => line.startsWith('{"type":"key"')),
    [],
  );
  t.strictSame(
    lines
      .filter((line) => line.startsWith('{"type":"signing-key"'))
      .map((line) => (JSON.parse(line) as { data: { kind: string } }).data.kind),
    ['jwks'],
  );
  const [{ hash = '' } = {}] = (await service.ctx.store.range(`e/${tenant.environment.id}/keys`)).map(
    ({ value }) => JSON.parse(value) as { hash?: string },
  );
  t.notOk(lines.join('\n').includes(hash));
  const to = await startService(t);
  await take(to.ctx, lines);
  t.equal((await askAt(to, tenant, 'GET', '/rooms')).status, 401);
});

t.test('an environment is imported completely or not at all, and an interrupted import can be repeated', async (t) => {
  const from = await startService(t);
  await everything(from, 'one');
  await everything(from, 'two');
  const lines = await linesOf(from.ctx);
  const ends = lines.flatMap((line, i) => (line.startsWith('{"type":"end"') ? [i] : []));
  const to = await startService(t);
  const cut = Math.floor(((ends[0] ?? 0) + (ends[1] ?? 0)) / 2);
  await t.rejects(take(to.ctx, lines.slice(0, cut)), {
    code: 'invalid_request',
    message: /ends in the middle of the environment two/,
  });
  t.strictSame(
    (await listEnvironments(to.ctx)).map(({ slug }) => slug),
    ['one'],
  );
  const [, two] = await listEnvironments(from.ctx);
  t.equal((await inventory(to.ctx, `e/${two?.id}/`)).size, 0, 'nothing is left of the other');

  const killed = new Import(to.ctx, { skipExisting: true });
  for (const line of lines.slice(0, cut)) await killed.add(line);
  await t.rejects(take(to.ctx, lines), { code: 'id_taken', message: /The environment one \(env_\w+\) already exists/ });
  const { done: taken, skipped } = await take(to.ctx, lines, true);
  t.strictSame([taken.map(({ slug }) => slug), skipped], [['two'], ['one']]);
  t.equal((await linesOf(to.ctx)).join('\n'), lines.join('\n'));

  await deleteEnvironment(to.ctx, two?.id ?? '');
  await to.tenant('two');
  await t.rejects(take(to.ctx, lines, true), { code: 'slug_taken' });
});

t.test('an invalid line is refused with the reason', async (t) => {
  const from = await startService(t);
  const { comment } = await everything(from, 'one');
  const lines = await linesOf(from.ctx);
  const to = await startService(t);
  const at = (type: string): number => lines.findIndex((line) => line.startsWith(`{"type":"${type}"`));
  const replaced = (type: string, text: string): string[] => lines.with(at(type), text);
  const changed = (type: string, change: (line: Record<string, unknown>) => void): string[] => {
    const line = JSON.parse(lines[at(type)] ?? '') as Record<string, unknown>;
    change(line);
    return replaced(type, JSON.stringify(line));
  };
  const cases: [lines: string[], message: RegExp][] = [
    [[], /the file is empty/],
    [['{"type":"export","format":99}'], /has the format 99 of a newer Collab/],
    [lines.slice(1), /this is not a Collab export/],
    [[lines[0] ?? '', ...lines.slice(2)], /must follow one of the type environment/],
    [replaced('user', '{"type":'), /it is not valid JSON/],
    [replaced('user', '[]'), /it must be a JSON object/],
    [replaced('user', '{"type":"surprise"}'), /a line of the type "surprise" does not belong here/],
    [replaced('user', '{"type":"user"}'), /data is required/],
    [
      changed('user', (line) => ((line['data'] as Record<string, unknown>)['createdAt'] = 'yesterday')),
      /data\.createdAt must match/,
    ],
    [
      changed('environment', (line) => ((line['data'] as Record<string, unknown>)['slug'] = 'No Slug')),
      /data\.slug must be 1 to 63 lower-case letters/,
    ],
    [
      changed(
        'environment',
        (line) => void delete ((line['data'] as Record<string, Record<string, unknown>>)['settings'] ?? {})['media'],
      ),
      /data\.settings\.media is required/,
    ],
    [
      changed('comment', (line) => void delete (line['data'] as Record<string, unknown>)['reactions']),
      /data\.reactions is required/,
    ],
    [
      changed('comment', (line) => ((line['data'] as Record<string, unknown>)['threadId'] = 'th_other')),
      /a comment must follow the line of its thread/,
    ],
    [changed('thread', (line) => ((line['data'] as Record<string, unknown>)['id'] = '../x')), /data\.id must match/],
    [
      changed('thread', (line) => ((line['data'] as Record<string, unknown>)['roomId'] = 'elsewhere')),
      /a thread must follow the line of its room/,
    ],
    [
      changed('chunk', (line) => (line['data'] = 'AAAA')),
      /data\.attachment\.sizeBytes and data\.sha256 must be those of the chunks/,
    ],
    [
      changed('key', (line) => ((line['data'] as Record<string, unknown>)['environmentId'] = 'env_other')),
      /data\.environmentId must be env_/,
    ],
    [changed('end', (line) => (line['lines'] = 3)), /has \d+ lines before its end, not 3/],
    [
      lines.filter((line) => !line.startsWith('{"type":"comment"') || !line.includes(comment.id)),
      /lines before its end, not/,
    ],
  ];
  for (const [wrong, message] of cases)
    await t.rejects(take(to.ctx, wrong), { code: 'invalid_request', message }, String(message));
  t.strictSame(await listEnvironments(to.ctx), []);
  t.equal((await inventory(to.ctx, 'e/')).size, 0);
});

/** Sends a request to another service with the key of a tenant. */
async function askAt<T>(
  service: Service,
  tenant: Tenant,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; headers: Headers; text: string; json: T }> {
  const answer = await fetch(`${service.urls[0]}/api/v1${path}`, {
    method,
    headers: { Authorization: `Bearer ${tenant.secretKey}`, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, text, json: JSON.parse(text) as T };
}
