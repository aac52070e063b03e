import t, { type Test } from 'tap';
import type { Comment } from '../../src/model/comment.ts';
import type { Room } from '../../src/model/room.ts';
import type { Thread } from '../../src/model/thread.ts';
import { startService, type Tenant } from '../helpers/service.ts';
import { type Frame, isEvent, type TestSocket } from '../helpers/socket.ts';
import { addComment, addThread, addUser, done } from '../helpers/writer.ts';

// States: every transition, what it changes, and that each connected browser is shown it.

const service = await startService(t, { workers: 2 });

/** An environment of its own, in which `ann` is known, and a browser at each worker. */
async function scene(slug: string): Promise<{ tenant: Tenant; browsers: readonly TestSocket[] }> {
  const tenant = await service.tenant(slug);
  await addUser(tenant, 'ann');
  const browsers = await Promise.all(
    [0, 1].map((worker) => tenant.join({ userId: 'viewer', role: 'viewer' }, { worker })),
  );
  return { tenant, browsers };
}

/** The events of a thread as each browser got them, once there are `count`. All must have got the same. */
async function shown(t: Test, browsers: readonly TestSocket[], threadId: string, count: number): Promise<Frame[]> {
  const eventsOf = (browser: TestSocket): Frame[] =>
    browser.frames.filter((frame) => isEvent(frame) && (frame as { threadId?: string }).threadId === threadId);
  const all = await Promise.all(
    browsers.map((browser) =>
      browser.until(() => eventsOf(browser).length >= count && eventsOf(browser), `${count} events of the thread`),
    ),
  );
  for (const events of all) t.strictSame(events, all[0], 'all browsers are shown the same');
  t.equal(all[0]?.length, count, `${count} events and no more`);
  return all[0] ?? [];
}

async function threadOf(tenant: Tenant, threadId: string): Promise<Thread> {
  return done(200, await tenant.request<{ thread: Thread }>('GET', `/threads/${threadId}`)).thread;
}

t.test(
  'Thread | (none) | POST /rooms/:roomId/threads | valid request | open | an initial comment is created; it appears in all connected browsers',
  async (t) => {
    const { tenant, browsers } = await scene('thread-created');
    const thread = await addThread(tenant, 'page');
    t.equal(thread.resolved, false);
    const { comments } = done(200, await tenant.request<{ comments: Comment[] }>('GET', `/threads/${thread.id}`));
    t.equal(comments.length, 1);
    t.equal(comments[0]?.editedAt, null);
    const [event] = await shown(t, browsers, thread.id, 1);
    t.match(event, {
      type: 'thread.created',
      roomId: 'page',
      threadId: thread.id,
      data: { thread: { id: thread.id, resolved: false }, comment: comments[0] ?? {} },
    });
  },
);

t.test(
  'Thread | open | PATCH /threads/:threadId with resolved = true | thread exists | resolved | change shown to all connected browsers',
  async (t) => {
    const { tenant, browsers } = await scene('thread-resolved');
    const { id } = await addThread(tenant, 'page');
    service.clock.advance(5000);
    t.strictSame(done(200, await tenant.request('PATCH', `/threads/${id}`, { body: { resolved: true } })), {
      threadId: id,
      resolved: true,
    });
    const now = new Date(service.clock.now()).toISOString();
    t.match(await threadOf(tenant, id), { resolved: true, resolvedAt: now, resolvedBy: null, updatedAt: now });
    const [, event] = await shown(t, browsers, id, 2);
    t.match(event, { type: 'thread.resolved', data: { id, resolved: true, resolvedAt: now } });
  },
);

t.test(
  'Thread | resolved | PATCH /threads/:threadId with resolved = false | thread exists | open | change shown to all connected browsers',
  async (t) => {
    const { tenant, browsers } = await scene('thread-reopened');
    const { id } = await addThread(tenant, 'page');
    await tenant.request('PATCH', `/threads/${id}`, { body: { resolved: true } });
    t.strictSame(done(200, await tenant.request('PATCH', `/threads/${id}`, { body: { resolved: false } })), {
      threadId: id,
      resolved: false,
    });
    t.match(await threadOf(tenant, id), { resolved: false, resolvedAt: null, resolvedBy: null });
    const [, , event] = await shown(t, browsers, id, 3);
    t.match(event, { type: 'thread.reopened', data: { id, resolved: false } });
  },
);

for (const resolved of [true, false]) {
  t.test(
    `Thread | ${resolved ? 'resolved' : 'open'} | PATCH with the state that it has | thread exists | the same | 200, updatedAt unchanged, no event`,
    async (t) => {
      const { tenant, browsers } = await scene(`thread-${resolved ? 'still-resolved' : 'still-open'}`);
      const { id } = await addThread(tenant, 'page');
      if (resolved) await tenant.request('PATCH', `/threads/${id}`, { body: { resolved } });
      const before = await threadOf(tenant, id);
      service.clock.advance(5000);
      t.strictSame(done(200, await tenant.request('PATCH', `/threads/${id}`, { body: { resolved } })), {
        threadId: id,
        resolved,
      });
      t.strictSame(await threadOf(tenant, id), before);
      await tenant.request('PATCH', `/threads/${id}`, { body: { resolved: !resolved } });
      const events = await shown(t, browsers, id, resolved ? 3 : 2);
      t.equal(events.at(-1)?.type, resolved ? 'thread.reopened' : 'thread.resolved');
    },
  );

  t.test(
    `Thread | ${resolved ? 'resolved' : 'open'} | DELETE /threads/:threadId | thread exists | deleted | all its comments are deleted; it disappears from all connected browsers`,
    async (t) => {
      const { tenant, browsers } = await scene(`thread-deleted-${resolved ? 'resolved' : 'open'}`);
      const { id, comments } = await addThread(tenant, 'page');
      const second = await addComment(tenant, id);
      if (resolved) await tenant.request('PATCH', `/threads/${id}`, { body: { resolved } });
      t.strictSame(done(200, await tenant.request('DELETE', `/threads/${id}`)), { deleted: true });
      await isGone(t, tenant, id, [comments[0]?.id, second.id]);
      const events = await shown(t, browsers, id, resolved ? 4 : 3);
      t.match(events.at(-1), { type: 'thread.deleted', data: { threadId: id } });
      t.notOk(
        events.some(({ type }) => type === 'comment.deleted'),
        'one event for all',
      );
    },
  );

  t.test(
    `Thread | ${resolved ? 'resolved' : 'open'} | DELETE /comments/:commentId | the comment is the last one in the thread | deleted | the thread is deleted with it`,
    async (t) => {
      const { tenant, browsers } = await scene(`last-comment-${resolved ? 'resolved' : 'open'}`);
      const { id, comments } = await addThread(tenant, 'page');
      if (resolved) await tenant.request('PATCH', `/threads/${id}`, { body: { resolved } });
      t.strictSame(done(200, await tenant.request('DELETE', `/comments/${comments[0]?.id}`)), { deleted: true });
      await isGone(t, tenant, id, [comments[0]?.id]);
      const events = await shown(t, browsers, id, resolved ? 4 : 3);
      t.match(events.slice(-2), [
        { type: 'comment.deleted', data: { commentId: comments[0]?.id, threadId: id, threadDeleted: true } },
        { type: 'thread.deleted', data: { threadId: id } },
      ]);
    },
  );
}

async function isGone(
  t: Test,
  tenant: Tenant,
  threadId: string,
  commentIds: readonly (string | undefined)[],
): Promise<void> {
  for (const [method, path, body] of [
    ['GET', `/threads/${threadId}`, undefined],
    ['GET', `/threads/${threadId}/comments`, undefined],
    ['PATCH', `/threads/${threadId}`, { resolved: true }],
    ['DELETE', `/threads/${threadId}`, undefined],
    ['POST', `/threads/${threadId}/comments`, { userId: 'ann', body: 'Hi' }],
    ...commentIds.flatMap((id) => [
      ['PATCH', `/comments/${id}`, { body: 'Hi' }] as const,
      ['DELETE', `/comments/${id}`, undefined] as const,
    ]),
  ] as const) {
    const answer = await tenant.request<{ error: string }>(method, path, { body });
    t.equal(answer.status, 404, `${method} ${path}`);
    t.match(answer.json.error, /^(?:Thread|Comment) not found$/);
  }
  const { room, threads } = done(200, await tenant.request<{ room: Room; threads: Thread[] }>('GET', '/rooms/page'));
  t.strictSame(threads, []);
  t.match(room, { threadCount: 0, openThreadCount: 0 });
}

t.test(
  'Comment | (none) | POST /threads/:threadId/comments | valid request | exists, editedAt = null | appears in all connected browsers',
  async (t) => {
    const { tenant, browsers } = await scene('comment-created');
    const { id } = await addThread(tenant, 'page');
    const comment = await addComment(tenant, id, { body: 'Second', mentions: ['ann'] });
    t.match(comment, { threadId: id, userId: 'ann', body: 'Second', mentions: ['ann'], editedAt: null });
    const [, event] = await shown(t, browsers, id, 2);
    t.match(event, { type: 'comment.created', roomId: 'page', threadId: id });
    t.strictSame(event?.data, comment);
  },
);

t.test(
  'Comment | exists | PATCH /comments/:commentId | comment exists | exists, editedAt set | body and mentions updated',
  async (t) => {
    const { tenant, browsers } = await scene('comment-edited');
    const { id } = await addThread(tenant, 'page');
    const comment = await addComment(tenant, id, { mentions: ['ann'] });
    service.clock.advance(5000);
    const { comment: edited } = done(
      200,
      await tenant.request<{ comment: Comment }>('PATCH', `/comments/${comment.id}`, {
        body: { body: 'Better', mentions: ['bob'] },
      }),
    );
    t.strictSame(edited, {
      ...comment,
      body: 'Better',
      mentions: ['bob'],
      editedAt: new Date(service.clock.now()).toISOString(),
    });
    const { comment: kept } = done(
      200,
      await tenant.request<{ comment: Comment }>('PATCH', `/comments/${comment.id}`, { body: { body: 'Best' } }),
    );
    t.strictSame(kept.mentions, ['bob'], 'mentions that are not sent stay');
    const { comment: cleared } = done(
      200,
      await tenant.request<{ comment: Comment }>('PATCH', `/comments/${comment.id}`, {
        body: { body: 'Best', mentions: [] },
      }),
    );
    t.strictSame(cleared.mentions, []);
    const events = await shown(t, browsers, id, 5);
    t.strictSame(
      events.slice(2).map(({ type, data }) => ({ type, data })),
      [edited, kept, cleared].map((data) => ({ type: 'comment.updated', data })),
    );
  },
);

t.test(
  'Comment | exists | DELETE /comments/:commentId | comment exists | deleted | it is not the last, so the thread stays',
  async (t) => {
    const { tenant, browsers } = await scene('comment-deleted');
    const { id, comments } = await addThread(tenant, 'page');
    const second = await addComment(tenant, id);
    t.strictSame(done(200, await tenant.request('DELETE', `/comments/${comments[0]?.id}`)), { deleted: true });
    t.equal((await tenant.request('DELETE', `/comments/${comments[0]?.id}`)).status, 404, 'once');
    const { thread, comments: left } = done(
      200,
      await tenant.request<{ thread: Thread; comments: Comment[] }>('GET', `/threads/${id}`),
    );
    t.strictSame(left, [second]);
    t.equal(thread.commentCount, 1);
    t.equal(thread.userId, 'ann', 'who started it stays');
    const [, , event] = await shown(t, browsers, id, 3);
    t.match(event, {
      type: 'comment.deleted',
      data: { commentId: comments[0]?.id, threadId: id, threadDeleted: false },
    });
  },
);

t.test('what was answered is read at once, on every worker', async (t) => {
  const { tenant } = await scene('read-at-once');
  const { id } = await addThread(tenant, 'page');
  for (let i = 1; i <= 40; i++) {
    const worker = i % 2;
    const comment = await addComment(tenant, id, { body: `No ${i}` }, { worker });
    const paths = [`/threads/${id}/comments`, `/threads/${id}`, '/rooms/page?include=comments', '/events?limit=1000'];
    const answers = await Promise.all(paths.map((path) => tenant.request('GET', path, { worker: 1 - worker })));
    const blind = paths.filter((_, index) => !answers[index]?.text.includes(comment.id));
    if (blind.length > 0) return t.fail(`the other worker does not see comment ${i} in ${blind.join(', ')}`);
  }
  t.pass('forty times');
});
