import t from 'tap';
import { updateEnvironment } from '../../src/domain/environments/environments.ts';
import { adminSession } from '../helpers/route-calls.ts';
import { startService } from '../helpers/service.ts';
import { sendUntilAnswered, upload } from '../helpers/upload.ts';
import { addComment, addThread, addUser, done } from '../helpers/writer.ts';
import { wav } from '../fixtures/media.ts';

const service = await startService(t);

t.test('uploads | a user past their megabytes gets 413 that names the quota; what is deleted frees them', async (t) => {
  const tenant = await service.tenant('quota-uploads', { quotas: { userUploadMb: 1, uploadMb: 2 } });
  await addUser(tenant, 'ann');
  const file = { bytes: wav(4), type: 'audio/wav' };
  t.ok(file.bytes.byteLength < 512 * 1024);
  const many = Math.floor((1024 * 1024) / file.bytes.byteLength);
  const ids: string[] = [];
  for (let i = 0; i < many; i++) ids.push((await upload(tenant, file)).json.id);
  const refused = await upload(tenant, file);
  t.equal(refused.status, 413);
  t.equal(refused.headers.get('x-error-code'), 'quota_exceeded');
  t.equal(
    refused.json.error,
    'The quota userUploadMb is used up: a user may have 1 MB of uploads. Delete some, or ask the operator to raise it (collab env update <slug> --quotas userUploadMb=<n>)',
  );
  t.equal(
    (await upload(tenant, file, { headers: await tenant.userHeaders({ userId: 'bob' }) })).status,
    200,
    'another user may',
  );

  const [first = ''] = ids;
  const { id } = await addThread(tenant, 'room', { attachmentIds: [first] });
  done(200, await tenant.request('DELETE', `/threads/${id}`));
  t.equal((await upload(tenant, file)).status, 200, 'after the comment with the file is deleted');
});

t.test('uploads | one that does not declare its length is refused as soon as it passes the quota', async (t) => {
  const MEGABYTE = 1024 * 1024;
  const tenant = await service.tenant('quota-stream', { maxFileSizeMb: 1_024, quotas: { userUploadMb: 1 } });
  const { status, body, sent } = await sendUntilAnswered(tenant, 256 * MEGABYTE, 'video/mp4', { chunked: true });
  t.equal(status, 413);
  t.match(JSON.parse(body), { error: /^The quota userUploadMb is used up/ });
  t.ok(sent < 32 * MEGABYTE, `${sent} bytes were sent`);
});

t.test('comments | a user past the quota is refused on the socket, which stays; the backend is not', async (t) => {
  const tenant = await service.tenant('quota-comments', { quotas: { userComments: 2 } });
  const ann = await tenant.join({ userId: 'ann' });
  const created = (await ann.request('thread.create', { roomId: 'room', body: 'one' })).data as {
    thread: { id: string };
  };
  const threadId = created.thread.id;
  t.equal((await ann.request('comment.create', { threadId, body: 'two' })).type, 'ok');
  t.match(await ann.request('comment.create', { threadId, body: 'three' }), {
    type: 'error',
    error: { code: 'quota_exceeded', message: /^The quota userComments is used up: a user may have 2 comments\./ },
  });
  t.equal((await addComment(tenant, threadId)).userId, 'ann');
  t.equal((await ann.request('pong')).type, 'ok');
});

t.test('writes | so many a minute from browsers, over HTTP and the socket together', async (t) => {
  const tenant = await service.tenant('quota-pace', { quotas: { userWritesPerMinute: 3 } });
  const ann = await tenant.join({ userId: 'ann' });
  const headers = { ...(await tenant.userHeaders({ userId: 'ann' })), 'Content-Type': 'application/octet-stream' };
  const put = () => tenant.request('PUT', '/rooms/room/p2p/state', { key: null, headers, body: Buffer.from('x') });
  t.equal((await ann.request('room.join', { roomId: 'room' })).type, 'ok', 'which makes the room');
  t.equal((await put()).status, 200);
  const thread = (await ann.request('thread.create', { roomId: 'room', body: 'one' })).data as {
    thread: { id: string };
  };
  const refused = await put();
  t.equal(refused.status, 429);
  t.equal(refused.headers.get('retry-after'), '20');
  t.equal(refused.text, '{"error":"A user may write 3 times a minute (quota userWritesPerMinute). Try again in 20s"}');
  t.match((await ann.request('comment.create', { threadId: thread.thread.id, body: 'x' })).error, {
    code: 'rate_limited',
  });
  t.match(
    (await ann.request('room.join', { roomId: 'another' })).error,
    { code: 'rate_limited' },
    'rooms cannot be made without end',
  );
  t.equal((await ann.request('room.join', { roomId: 'room' })).type, 'ok', 'one that exists can be joined');
  t.equal((await ann.request('thread.get', { threadId: thread.thread.id })).type, 'ok', 'and reading goes on');
  service.clock.advance(20_000);
  t.equal((await put()).status, 200);
});

t.test('settings | an admin sets quotas and lifts them with null', async (t) => {
  const tenant = await service.tenant('quota-settings');
  const key = await adminSession(service);
  const patch = (quotas: object) =>
    tenant.request<{ environment: { settings: { quotas: object } } }>('PATCH', '/admin/environments/quota-settings', {
      key,
      body: { settings: { quotas } },
    });
  t.strictSame(done(200, await patch({ userComments: 1 })).environment.settings.quotas, { userComments: 1 });
  t.strictSame(done(200, await patch({ userComments: null, stateMb: 5, unknown: 1 })).environment.settings.quotas, {
    userComments: null,
    stateMb: 5,
  });
  for (const value of [0, -1, 1.5, '1', 1e10]) t.equal((await patch({ comments: value })).status, 400, String(value));
  const ann = await tenant.join({ userId: 'ann' });
  for (let i = 0; i < 3; i++) t.equal((await ann.request('thread.create', { roomId: 'room', body: 'x' })).type, 'ok');
  await updateEnvironment(service.ctx, tenant.environment.id, { settings: { quotas: { comments: 3 } } });
  t.match((await ann.request('thread.create', { roomId: 'room', body: 'x' })).error, {
    code: 'quota_exceeded',
    message: /^The quota comments is used up: the environment may hold 3 comments\./,
  });
});
