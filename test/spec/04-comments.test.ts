import t from 'tap';
import type { Comment } from '../../src/model/comment.ts';
import type { Thread } from '../../src/model/thread.ts';
import { startService } from '../helpers/service.ts';
import { addComment, addThread, addUser, done, type Failure } from '../helpers/writer.ts';

// Comments over REST.

const service = await startService(t);
const tenant = await service.tenant('comments');
await addUser(tenant, 'ann');
const { id: threadId } = await addThread(tenant, 'page');

const create = (body: unknown, thread = threadId) =>
  tenant.request<Failure & { comment: Comment }>('POST', `/threads/${thread}/comments`, { body });
const edit = (commentId: string, body: unknown) =>
  tenant.request<Failure & { comment: Comment }>('PATCH', `/comments/${commentId}`, { body });

t.test('GET | /threads/:threadId/comments | none | 200 `{ items: [Comment] }`', async (t) => {
  const { id, comments } = await addThread(tenant, 'list');
  const added: Comment[] = [];
  for (let i = 0; i < 5; i++) {
    service.clock.advance(1000);
    added.push(await addComment(tenant, id, { body: `No ${i}` }));
  }
  const answer = done(200, await tenant.request<{ items: Comment[] }>('GET', `/threads/${id}/comments`));
  t.strictSame(answer, { items: [...comments, ...added] }, 'all, the first stays first');
});

t.test('POST | /threads/:threadId/comments | body below | 201 `{ comment: Comment }`', async (t) => {
  const { status, json } = await create({ userId: 'ann', body: 'Second' });
  t.equal(status, 201);
  t.strictSame(Object.keys(json), ['comment']);
  t.match(json.comment, { threadId, userId: 'ann', body: 'Second', mentions: [], editedAt: null });
});

t.test(
  'PATCH | /comments/:commentId | body below | 200 `{ comment: {...} }` with the updated comment, including its id, body and the new editedAt',
  async (t) => {
    const { id } = await addComment(tenant, threadId);
    const { status, json } = await edit(id, { body: 'Edited' });
    t.equal(status, 200);
    t.strictSame(Object.keys(json), ['comment']);
    t.match(json.comment, { id, body: 'Edited', editedAt: new Date(service.clock.now()).toISOString() });
  },
);

t.test('DELETE | /comments/:commentId | none | 200 `{ deleted: true }`', async (t) => {
  const { id } = await addComment(tenant, threadId);
  t.strictSame(done(200, await tenant.request('DELETE', `/comments/${id}`)), { deleted: true });
});

t.test('Create-comment body | userId | string | required | author’s user id', async (t) => {
  t.match(await create({ body: 'Hi' }), { status: 400, json: { error: 'userId is required' } });
  t.match(await create({ userId: 'dan', body: 'Hi' }), { status: 400, json: { error: /^Unknown user: dan\. / } });
});

t.test('Create-comment body | body | string | required | comment text', async (t) => {
  t.match(await create({ userId: 'ann' }), { status: 400, json: { error: 'body is required' } });
});

t.test('Create-comment body | mentions | array of string | optional | user ids to mention', async (t) => {
  t.strictSame((await create({ userId: 'ann', body: 'Hi', mentions: ['b', 'a', 'b'] })).json.comment.mentions, [
    'b',
    'a',
  ]);
});

t.test('Edit-comment body | userId | not sent | ignored, the author stays', async (t) => {
  const { id } = await addComment(tenant, threadId);
  await addUser(tenant, 'bob');
  t.match(await edit(id, { userId: 'bob', body: 'Hi' }), { status: 200, json: { comment: { userId: 'ann' } } });
});

t.test('Edit-comment body | body | string | required | comment text', async (t) => {
  const { id } = await addComment(tenant, threadId);
  t.match(await edit(id, { mentions: [] }), { status: 400, json: { error: 'body is required' } });
});

t.test('Edit-comment body | mentions | array of string | optional | user ids to mention', async (t) => {
  const { id } = await addComment(tenant, threadId, { mentions: ['a'] });
  t.strictSame((await edit(id, { body: 'Hi' })).json.comment.mentions, ['a'], 'absent leaves them');
  t.strictSame((await edit(id, { body: 'Hi', mentions: ['c', 'c', 'd'] })).json.comment.mentions, ['c', 'd']);
});

t.test('Deleting the last comment of a thread also deletes the thread', async (t) => {
  const { id, comments } = await addThread(tenant, 'last');
  const second = await addComment(tenant, id);
  await tenant.request('DELETE', `/comments/${comments[0]?.id}`);
  t.equal((await tenant.request('GET', `/threads/${id}`)).status, 200);
  await tenant.request('DELETE', `/comments/${second.id}`);
  t.match(await tenant.request('GET', `/threads/${id}`), { status: 404, json: { error: 'Thread not found' } });
});

t.test('of deletions at the same time each happens once, and the last takes the thread with it', async (t) => {
  const { id, comments } = await addThread(tenant, 'race');
  const all = [...comments, ...(await Promise.all(Array.from({ length: 7 }, () => addComment(tenant, id))))];
  const answers = await Promise.all(
    [...all, ...all].map((comment) => tenant.request('DELETE', `/comments/${comment.id}`)),
  );
  t.equal(answers.filter(({ status }) => status === 200).length, all.length);
  t.equal(answers.filter(({ status }) => status === 404).length, all.length);
  t.equal((await tenant.request('GET', `/threads/${id}`)).status, 404);
});

t.test('additive | id | the client’s own | one that exists in the environment is 409', async (t) => {
  const other = await addThread(tenant, 'other');
  t.equal((await create({ id: 'comment-1', userId: 'ann', body: 'Hi' })).json.comment.id, 'comment-1');
  t.equal((await create({ id: 'comment-1', userId: 'ann', body: 'Hi' })).status, 409);
  t.equal(
    (await create({ id: 'comment-1', userId: 'ann', body: 'Hi' }, other.id)).status,
    409,
    'in another thread too',
  );
  t.equal(
    (await create({ id: other.comments[0]?.id, userId: 'ann', body: 'Hi' })).status,
    409,
    'one that the server made',
  );
  t.match((await edit('comment-1', { body: 'Found by its id' })).json.comment, {
    id: 'comment-1',
    body: 'Found by its id',
  });
  t.equal((await tenant.request('DELETE', '/comments/comment-1')).status, 200);
  t.equal((await create({ id: 'comment-1', userId: 'ann', body: 'Again' })).status, 201, 'free again');
});

t.test('a comment moves updatedAt and commentCount of its thread', async (t) => {
  const { id } = await addThread(tenant, 'count');
  const thread = async () => done(200, await tenant.request<{ thread: Thread }>('GET', `/threads/${id}`)).thread;
  service.clock.advance(1000);
  const comment = await addComment(tenant, id);
  t.match(await thread(), { commentCount: 2, updatedAt: comment.createdAt });
  service.clock.advance(1000);
  const { comment: edited } = (await edit(comment.id, { body: 'Edited' })).json;
  t.match(await thread(), { commentCount: 2, updatedAt: edited.editedAt });
  service.clock.advance(1000);
  await tenant.request('DELETE', `/comments/${comment.id}`);
  t.match(await thread(), { commentCount: 1, updatedAt: new Date(service.clock.now()).toISOString() });
});
