import t, { type Test } from 'tap';
import type { Comment } from '../../src/model/comment.ts';
import { startService, type Tenant } from '../helpers/service.ts';
import { type Frame, isEvent, type TestSocket } from '../helpers/socket.ts';
import { addComment, addThread, addUser, type CreatedThread, done } from '../helpers/writer.ts';
import { epochOf } from '../../src/domain/events/streams.ts';

// Events (docs/realtime.md). Resume, heartbeat, slow consumers and close codes: test/realtime.

const service = await startService(t, { workers: 2 });

interface Scene {
  readonly tenant: Tenant;
  /** Browsers of several people, on both workers. */
  readonly browsers: readonly TestSocket[];
  readonly thread: CreatedThread;
}

async function scene(slug: string): Promise<Scene> {
  const tenant = await service.tenant(slug);
  await addUser(tenant, 'ann');
  const thread = await addThread(tenant, 'page');
  const browsers = await Promise.all([0, 1, 0].map((worker, i) => tenant.join({ userId: `person ${i}` }, { worker })));
  return { tenant, browsers, thread };
}

/** The event of a type as every browser gets it; all get the same, once, and the log holds it. */
async function delivered(t: Test, { tenant, browsers }: Scene, type: string): Promise<Frame> {
  const frames = await Promise.all(browsers.map((browser) => browser.frame(type)));
  const [first] = frames;
  if (first === undefined) throw new Error('no browser');
  for (const frame of frames) t.strictSame(frame, first, 'the same to every browser');
  t.match(first, {
    type,
    seq: Number,
    eventId: /^evt_/,
    at: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
    actor: { via: 'rest' },
  });
  const { items } = done(
    200,
    await tenant.request<{ items: Frame[] }>('GET', `/events?since=${(first.seq ?? 0) - 1}&limit=1`),
  );
  t.strictSame(items, [first], 'GET /events holds the same');
  for (const browser of browsers) t.equal(browser.frames.filter((frame) => frame.seq === first.seq).length, 1, 'once');
  return first;
}

t.test('Real-time delivery | creating a thread | thread.created', async (t) => {
  const stage = await scene('e-thread-created');
  const { id, comments } = await addThread(stage.tenant, 'page', { position: { x: 0.5, y: 0.5 } });
  const event = await delivered(t, stage, 'thread.created');
  t.match(event, { roomId: 'page', threadId: id, actor: { userId: 'ann', via: 'rest' } });
  const { thread } = done(200, await stage.tenant.request<{ thread: unknown }>('GET', `/threads/${id}`));
  t.strictSame(event.data, { thread, comment: comments[0] }, 'data = the REST records');
});

t.test('Real-time delivery | deleting a thread | thread.deleted', async (t) => {
  const stage = await scene('e-thread-deleted');
  await stage.tenant.request('DELETE', `/threads/${stage.thread.id}`);
  const event = await delivered(t, stage, 'thread.deleted');
  t.strictSame(event.data, { threadId: stage.thread.id });
  t.match(event, { roomId: 'page', threadId: stage.thread.id, actor: { userId: null } });
});

for (const [resolved, type, what] of [
  [true, 'thread.resolved', 'resolving'],
  [false, 'thread.reopened', 'reopening'],
] as const) {
  t.test(`Real-time delivery | ${what} a thread | ${type}`, async (t) => {
    const stage = await scene(`e-${what}`);
    await stage.tenant.request('PATCH', `/threads/${stage.thread.id}`, { body: { resolved: true } });
    if (!resolved) await stage.tenant.request('PATCH', `/threads/${stage.thread.id}`, { body: { resolved } });
    const event = await delivered(t, stage, type);
    const { thread } = done(200, await stage.tenant.request<{ thread: unknown }>('GET', `/threads/${stage.thread.id}`));
    t.strictSame(event.data, thread, 'data = the REST record');
  });
}

t.test('Real-time delivery | creating a comment | comment.created', async (t) => {
  const stage = await scene('e-comment-created');
  const comment = await addComment(stage.tenant, stage.thread.id);
  t.strictSame((await delivered(t, stage, 'comment.created')).data, comment);
});

t.test('Real-time delivery | editing a comment | comment.updated', async (t) => {
  const stage = await scene('e-comment-updated');
  const { comment } = done(
    200,
    await stage.tenant.request<{ comment: Comment }>('PATCH', `/comments/${stage.thread.comments[0]?.id}`, {
      body: { body: 'Edited' },
    }),
  );
  t.strictSame((await delivered(t, stage, 'comment.updated')).data, comment);
});

t.test('Real-time delivery | deleting a comment | comment.deleted', async (t) => {
  const stage = await scene('e-comment-deleted');
  const { id } = await addComment(stage.tenant, stage.thread.id);
  await stage.tenant.request('DELETE', `/comments/${id}`);
  t.strictSame((await delivered(t, stage, 'comment.deleted')).data, {
    commentId: id,
    threadId: stage.thread.id,
    threadDeleted: false,
  });
});

t.test('Real-time delivery | deleting the last comment | comment.deleted, then thread.deleted', async (t) => {
  const stage = await scene('e-last-comment');
  const commentId = stage.thread.comments[0]?.id;
  await stage.tenant.request('DELETE', `/comments/${commentId}`);
  const comment = await delivered(t, stage, 'comment.deleted');
  const thread = await delivered(t, stage, 'thread.deleted');
  t.strictSame(comment.data, { commentId, threadId: stage.thread.id, threadDeleted: true });
  t.equal(thread.seq, (comment.seq ?? 0) + 1);
});

t.test('Real-time delivery | adding and removing a reaction | reaction.created, reaction.deleted', async (t) => {
  const stage = await scene('e-reaction');
  const path = `/comments/${stage.thread.comments[0]?.id}/reactions`;
  const { reaction } = done(
    201,
    await stage.tenant.request<{ reaction: { id: string } }>('POST', path, { body: { userId: 'ann', emoji: '👍' } }),
  );
  t.strictSame((await delivered(t, stage, 'reaction.created')).data, reaction);
  done(200, await stage.tenant.request('POST', path, { body: { userId: 'ann', emoji: '👍' } }));
  await stage.tenant.request('DELETE', `/reactions/${reaction.id}`);
  const removed = await delivered(t, stage, 'reaction.deleted');
  t.match(removed, { threadId: stage.thread.id, roomId: 'page', data: { reactionId: reaction.id } });
  t.equal(
    stage.browsers[0]?.frames.filter(({ type }) => type === 'reaction.created').length,
    1,
    'a repeated one is no event',
  );
});

t.test('Real-time delivery | a changed user | user.updated, without the email', async (t) => {
  const stage = await scene('e-user');
  await addUser(stage.tenant, 'bob', { name: 'Bob', email: 'bob@example.com' });
  const { email: _, ...user } = done(
    200,
    await stage.tenant.request<{ user: Record<string, unknown> }>('GET', '/users/bob'),
  ).user;
  const events = await Promise.all(
    stage.browsers.map((browser) =>
      browser.until(() =>
        browser.frames.find((frame) => frame.type === 'user.updated' && frame.data?.['id'] === 'bob'),
      ),
    ),
  );
  for (const event of events) t.strictSame(event.data, user);
  t.notOk(Object.hasOwn(events[0] ?? {}, 'roomId'), 'it belongs to no room');
});

t.test('Real-time delivery | shared state | p2p.state.updated, p2p.state.cleared', async (t) => {
  const stage = await scene('e-state');
  done(200, await stage.tenant.request('PUT', '/rooms/page/p2p/state', { body: { state: 'AQID' } }));
  t.match(await delivered(t, stage, 'p2p.state.updated'), { roomId: 'page' });
  done(200, await stage.tenant.request('DELETE', '/rooms/page/p2p/state'));
  t.match(await delivered(t, stage, 'p2p.state.cleared'), { roomId: 'page' });
});

t.test(
  'Deliveries happen without extra configuration | every change of the environment, in order, once, on whichever worker it was made',
  async (t) => {
    const { tenant, browsers, thread } = await scene('e-order');
    await Promise.all(
      Array.from({ length: 40 }, (_, i) => addComment(tenant, thread.id, { body: `No ${i}` }, { worker: i % 2 })),
    );
    for (const browser of browsers) {
      const bodies = (): unknown[] =>
        browser.frames.filter(({ type }) => type === 'comment.created').map(({ data }) => data?.['body']);
      await browser.until(() => bodies().length >= 40);
      t.equal(bodies().length, 40);
      t.strictSame(new Set(bodies()), new Set(Array.from({ length: 40 }, (_, i) => `No ${i}`)));
      t.strictSame(
        browser.seqs,
        Array.from(browser.seqs, (_, i) => (browser.seqs[0] ?? 0) + i),
        'no gap, no double',
      );
    }
  },
);

t.test('a refused request is no event', async (t) => {
  const { tenant, browsers, thread } = await scene('e-refused');
  await tenant.request('POST', '/rooms/page/threads', { body: { userId: 'nobody', body: 'Hi' } });
  await tenant.request('POST', `/threads/${thread.id}/comments`, { body: { userId: 'ann', body: '' } });
  await tenant.request('DELETE', '/comments/unknown');
  await addComment(tenant, thread.id, { body: 'the end' });
  for (const browser of browsers) {
    await browser.frame('comment.created');
    t.strictSame(
      browser.frames.filter((frame) => isEvent(frame) && frame.type !== 'user.updated').map(({ type }) => type),
      ['comment.created'],
    );
  }
});

t.test('Browser writes | the same as by REST, in the name of the token’s sub, and delivered alike', async (t) => {
  const { tenant, browsers } = await scene('e-writes');
  const [writer, watcher] = browsers;
  if (writer === undefined || watcher === undefined) throw new Error('no browser');
  const ask = async <T>(type: string, data: object): Promise<T> => {
    const reply = await writer.request(type, data);
    if (reply.type !== 'ok') throw new Error(JSON.stringify(reply));
    return reply.data as T;
  };
  const { thread } = await ask<{ thread: CreatedThread }>('thread.create', {
    roomId: 'page',
    body: 'Mine',
    userId: 'ann',
  });
  t.match(thread.comments[0], { userId: 'person 0', body: 'Mine' }, 'whatever userId says');
  const { comment } = await ask<{ comment: Comment }>('comment.create', { threadId: thread.id, body: 'Second' });
  await ask('comment.update', { commentId: comment.id, body: 'Third' });
  await ask('thread.resolve', { threadId: thread.id });
  await ask('thread.reopen', { threadId: thread.id });
  const { reaction } = await ask<{ reaction: { id: string } }>('reaction.add', { commentId: comment.id, emoji: '👍' });
  await ask('reaction.remove', { reactionId: reaction.id });
  await ask('comment.delete', { commentId: comment.id });
  const expected = [
    'thread.created',
    'comment.created',
    'comment.updated',
    'thread.resolved',
    'thread.reopened',
    'reaction.created',
    'reaction.deleted',
    'comment.deleted',
  ];
  const seen = (): Frame[] => watcher.frames.filter((frame) => (frame as { threadId?: string }).threadId === thread.id);
  await watcher.until(() => seen().length >= expected.length);
  t.strictSame(
    seen().map(({ type }) => type),
    expected,
  );
  for (const event of seen()) t.match(event, { actor: { userId: 'person 0', via: 'ws' } });
  const others = await addThread(tenant, 'page');
  for (const [type, data] of [
    ['comment.update', { commentId: others.comments[0]?.id, body: 'x' }],
    ['comment.delete', { commentId: others.comments[0]?.id }],
  ] as const) {
    t.match(
      await writer.request(type, data),
      { type: 'error', error: { code: 'forbidden' } },
      `${type} of what others wrote`,
    );
  }
  const moderator = await tenant.join({ userId: 'mod', role: 'moderator' });
  t.match(
    await moderator.request('comment.delete', { commentId: others.comments[0]?.id }),
    { type: 'ok', data: { deleted: true } },
    'a moderator may',
  );
  const viewer = await tenant.join({ userId: 'viewer', role: 'viewer' });
  t.match(
    await viewer.request('thread.resolve', { threadId: thread.id }),
    { type: 'error', error: { code: 'forbidden' } },
    'a viewer reads only',
  );
});

t.test('Who sees what | a token with rooms gets the events of these alone', async (t) => {
  const { tenant } = await scene('e-rooms');
  const confined = await tenant.join({ userId: 'guest', rooms: ['open', 'docs/*'] });
  for (const room of ['secret', 'open', 'docs/a', 'docs']) await addThread(tenant, room, { body: room });
  await addThread(tenant, 'open', { body: 'the end' });
  await confined.until(() => confined.frames.some((frame) => JSON.stringify(frame).includes('the end')));
  t.strictSame(
    confined.frames.filter(({ type }) => type === 'thread.created').map(({ roomId }) => roomId),
    ['open', 'docs/a', 'open'],
  );
  t.match(await confined.request('thread.create', { roomId: 'secret', body: 'Hi' }), {
    type: 'error',
    error: { code: 'forbidden' },
  });
});

t.test(
  'Resume | on another worker, with everything that was answered before, by WebSocket and as server-sent events',
  async (t) => {
    const { tenant, thread } = await scene('e-resume');
    const epoch = epochOf(service.ctx.store, tenant.environment);
    for (let i = 0; i < 30; i++) {
      const worker = i % 2;
      const browser = await tenant.join({ userId: 'roamer' }, { worker });
      const comment = await addComment(tenant, thread.id, {}, { worker });
      const { seq = 0 } = await browser.until(() => browser.frames.find(({ data }) => data?.['id'] === comment.id));
      const stream = new AbortController();
      const [again, events] = await Promise.all([
        tenant.join({ userId: 'roamer' }, { worker: 1 - worker, search: `?epoch=${epoch}&since=${seq}` }),
        fetch(`${service.urls[1 - worker]}/api/v1/events`, {
          headers: {
            Accept: 'text/event-stream',
            'Last-Event-ID': `${epoch}:${seq}`,
            Authorization: `Bearer ${tenant.secretKey}`,
          },
          signal: stream.signal,
        }),
      ]);
      const { value } = (await events.body?.getReader().read()) ?? {};
      const recovered = [
        (await again.frame('welcome')).data?.['recovered'],
        Buffer.from(value ?? '').includes('"recovered":true'),
      ];
      stream.abort();
      await Promise.all([browser.close(), again.close()]);
      if (recovered.includes(false)) return t.fail(`round ${i}: recovered ${recovered.join()}`);
    }
    t.pass('thirty times');
  },
);

t.test('GET /events | the log after a position, in pages', async (t) => {
  const { tenant, thread } = await scene('e-log');
  for (let i = 0; i < 5; i++) await addComment(tenant, thread.id);
  const seen: number[] = [];
  let since = 0;
  for (;;) {
    const page = done(
      200,
      await tenant.request<{ items: { seq: number }[]; seq: number; epoch: string; nextSince?: number }>(
        'GET',
        `/events?since=${since}&limit=3`,
      ),
    );
    t.ok(page.items.length <= 3);
    t.equal(page.epoch, epochOf(service.ctx.store, tenant.environment));
    seen.push(...page.items.map(({ seq }) => seq));
    if (page.nextSince === undefined) break;
    since = page.nextSince;
  }
  t.strictSame(
    seen,
    seen.map((_, i) => i + 1),
    'from 1 on, without a gap',
  );
});
