import t from 'tap';
import { startService } from '../helpers/service.ts';
import { addThread, addUser, type Failure } from '../helpers/writer.ts';

const service = await startService(t);
const tenant = await service.tenant('lenient');
await addUser(tenant, 'ann');

const comment = { userId: 'ann', body: 'Hi' };
const hint = (name: string, meant: string): string => `${name} is unknown and was ignored: did you mean ${meant}?`;

t.test('a misspelled field or parameter is ignored, and a header names the one that is meant', async (t) => {
  const { id } = await addThread(tenant, 'room');
  for (const [method, path, body, status, expected] of [
    ['POST', `/threads/${id}/comments`, { ...comment, attachments: ['x'] }, 201, hint('attachments', 'attachmentIds')],
    ['PUT', '/users/bob', { nmae: 'Bob' }, 200, hint('nmae', 'name')],
    [
      'POST',
      '/rooms/room/threads',
      { ...comment, position: { x: 0, y: 0, selctor: '#a' } },
      201,
      hint('position.selctor', 'position.selector'),
    ],
    ['POST', '/rooms/room/threads', { userId: 'ann', bdoy: 'Hi' }, 400, hint('bdoy', 'body')],
    ['GET', '/rooms?limt=1', undefined, 200, hint('limt', 'limit')],
    [
      'GET',
      '/rooms/room/threads?user_id=ann&incldue=users',
      undefined,
      200,
      `${hint('user_id', 'userId')} ${hint('incldue', 'include')}`,
    ],
  ] as const) {
    const answer = await tenant.request(method, path, { body });
    t.equal(answer.status, status, answer.text);
    t.equal(answer.headers.get('collab-hint'), expected);
  }
});

t.test('names that are known, that resemble none, or that could not be meant get no hint', async (t) => {
  const { id } = await addThread(tenant, 'room');
  for (const [method, path, body] of [
    ['POST', `/threads/${id}/comments`, { ...comment, attachmentIds: [], metadata: { naem: 1 } }],
    [
      'POST',
      `/threads/${id}/comments`,
      { ...comment, roomId: 'room', threadId: id, createdAt: 'x', 'bod\r\ny': 1, bødy: 1, ['x'.repeat(61)]: 1 },
    ],
    ['POST', '/rooms/room/threads', { ...comment, position: { x: 0, y: 0, z: 0 } }],
    ['GET', '/rooms?limit=1&metadata.lmit=1&_=123&utm_source=a'],
    ['GET', '/rooms'],
  ] as const) {
    const answer = await tenant.request(method, path, { body });
    t.ok(answer.status < 300, answer.text);
    t.equal(answer.headers.get('collab-hint'), null, `${method} ${path}`);
  }
});

t.test('a strict environment refuses a near miss before it looks for records', async (t) => {
  const strict = await service.tenant('strict', { strict: true });
  await addUser(strict, 'ann');
  const refused = { status: 400, json: { error: 'attachments is unknown: did you mean attachmentIds?' } };
  t.match(
    await strict.request<Failure>('POST', '/threads/unknown/comments', { body: { ...comment, attachments: [] } }),
    refused,
  );
  t.match(await strict.request<Failure>('GET', '/rooms?limt=1'), {
    status: 400,
    json: { error: 'limt is unknown: did you mean limit?' },
  });
  t.equal(
    (await strict.request('POST', '/rooms/room/threads', { body: { ...comment, unlike: 1 } })).status,
    201,
    'unknown names that resemble none are still ignored',
  );
});
