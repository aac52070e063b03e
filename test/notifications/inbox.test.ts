import t from 'tap';
import { until } from '../helpers/cluster.ts';
import { handled, inboxOf, startNotifying } from '../helpers/notifications.ts';
import { startService } from '../helpers/service.ts';
import { isEvent, type TestSocket } from '../helpers/socket.ts';
import { addComment, addThread, addUser, done } from '../helpers/writer.ts';

const service = await startService(t, { workers: 2 });
const consumers = await startNotifying(t, service.ctx);
let tenants = 0;

/** An environment with ann and bob, and a thread by ann. */
async function scene() {
  const tenant = await service.tenant(`inbox-${++tenants}`);
  for (const userId of ['ann', 'bob', 'eve']) await addUser(tenant, userId);
  const { id: threadId } = await addThread(tenant, 'docs');
  const settle = () => handled(consumers, service.ctx, tenant.environment);
  await settle();
  const mention = async (...mentions: string[]): Promise<string> => {
    service.clock.advance(1_000);
    const { id } = await addComment(tenant, threadId, { userId: 'eve', mentions });
    await settle();
    return id;
  };
  return { tenant, threadId, settle, mention };
}

const notified = (socket: TestSocket) => socket.frames.filter(({ type }) => String(type).startsWith('notification.'));
/** The types of the notification events on a socket, each with the user it is for. */
const receivers = (socket: TestSocket): string[] =>
  notified(socket).map((frame) => `${frame.type} ${(frame.data as { userId: string }).userId}`);

t.test('the inbox is read in pages, newest first, and marked as read over REST', async (t) => {
  const { tenant, mention } = await scene();
  const comments: string[] = [];
  for (let n = 0; n < 5; n++) comments.unshift(await mention('bob'));
  const first = await inboxOf(tenant, 'bob', '?limit=3');
  t.strictSame(
    first.items.map(({ commentId }) => commentId),
    comments.slice(0, 3),
  );
  t.equal(first.unreadCount, 5);
  const second = await inboxOf(tenant, 'bob', `?limit=3&cursor=${first.nextCursor}`);
  t.strictSame(
    second.items.map(({ commentId }) => commentId),
    comments.slice(3),
  );
  t.notOk('nextCursor' in second);

  const ids = first.items.slice(0, 2).map(({ id }) => id);
  t.strictSame(
    done(
      200,
      await tenant.request('POST', '/users/bob/notifications/read', { body: { ids: [...ids, 'nt_unknown', ids[0]] } }),
    ),
    { unreadCount: 3 },
  );
  t.strictSame(
    done(200, await tenant.request('POST', '/users/bob/notifications/read', { body: { ids } })),
    { unreadCount: 3 },
    'again',
  );
  const unread = await inboxOf(tenant, 'bob', '?unread=true&limit=2');
  t.strictSame(
    unread.items.map(({ commentId }) => commentId),
    comments.slice(2, 4),
  );
  t.strictSame(
    (await inboxOf(tenant, 'bob', `?unread=true&limit=2&cursor=${unread.nextCursor}`)).items.map(
      ({ commentId }) => commentId,
    ),
    comments.slice(4),
  );
  t.strictSame(
    (await inboxOf(tenant, 'bob', '?unread=false')).items.map(({ id, readAt }) => [id, typeof readAt]),
    ids.map((id) => [id, 'string']),
  );
  t.strictSame(done(200, await tenant.request('POST', '/users/bob/notifications/read', { body: { all: true } })), {
    unreadCount: 0,
  });
  t.strictSame(await inboxOf(tenant, 'bob', '?unread=true'), { unreadCount: 0, items: [] });
  t.equal((await inboxOf(tenant, 'bob')).items.length, 5);
});

t.test('a user reaches their own inbox, settings and subscriptions from a page, and no others', async (t) => {
  const { tenant, threadId, mention } = await scene();
  await mention('bob');
  const headers = {
    ...(await tenant.userHeaders({ userId: 'bob', role: 'viewer' })),
    Origin: 'https://app.example.com',
  };
  const own = await tenant.request('GET', '/users/bob/notifications', { key: null, headers });
  t.match(done(200, own), { unreadCount: 1, items: [{ kind: 'mention', actorId: 'eve', roomId: 'docs', threadId }] });
  t.equal(own.headers.get('access-control-allow-origin'), '*');
  for (const [method, path, body] of [
    ['POST', '/users/bob/notifications/read', { all: true }],
    ['GET', '/users/bob/notification-settings', undefined],
    ['PUT', '/users/bob/notification-settings', { email: { reply: false } }],
    ['POST', `/threads/${threadId}/subscription`, { action: 'subscribe' }],
    ['GET', `/users/bob/subscriptions/${threadId}`, undefined],
  ] as const) {
    t.equal((await tenant.request(method, path, { key: null, headers, body })).status, 200, `${method} ${path}`);
    const other = await tenant.request(method, path.replace('bob', 'ann'), {
      key: null,
      headers,
      body: body === undefined ? undefined : { ...body, userId: 'ann' },
    });
    t.equal(other.status, 403, `${method} of ann`);
  }
  t.equal((await tenant.request('GET', '/users/ann/notifications', { key: null, headers })).status, 403);
  t.match(done(200, await tenant.request('GET', `/users/bob/subscriptions/${threadId}`, { key: null, headers })), {
    threadId,
    userId: 'bob',
    state: 'subscribed',
  });
  t.match(done(200, await tenant.request('GET', `/users/eve/subscriptions/${threadId}`)), {
    userId: 'eve',
    state: 'default',
  });
  t.equal((await tenant.request('GET', '/users/bob/subscriptions/th_unknown', { key: null, headers })).status, 404);
});

t.test(
  'a page of the inbox contains what it is about on request, as far as that still exists and is within the rooms of the token',
  async (t) => {
    const { tenant, threadId, settle, mention } = await scene();
    const gone = await mention('bob');
    const kept = await mention('bob');
    const other = await addThread(tenant, 'elsewhere', {
      userId: 'eve',
      body: 'Hi @bob',
      mentions: ['bob'],
      position: { x: 0.5, y: 0.5 },
    });
    await settle();
    interface Content {
      readonly items: readonly { readonly commentId: string }[];
      readonly comments: Readonly<Record<string, { readonly body: string }>>;
      readonly threads: Readonly<Record<string, { readonly roomId: string; readonly position: unknown }>>;
    }
    const read = async (token: object, search = ''): Promise<Content> =>
      done(
        200,
        await tenant.request<Content>('GET', `/users/bob/notifications?include=content${search}`, {
          key: null,
          headers: await tenant.userHeaders({ userId: 'bob', ...token }),
        }),
      );
    const all = await read({});
    t.strictSame(Object.keys(all.comments).toSorted(), [gone, kept, other.comments[0]?.id ?? ''].toSorted());
    t.match(all.threads, { [threadId]: { roomId: 'docs' }, [other.id]: { roomId: 'elsewhere', position: { x: 0.5 } } });
    t.strictSame(Object.keys((await read({ rooms: ['docs'] })).threads), [threadId]);
    t.equal((await read({}, '&limit=1')).items.length, 1);
    done(200, await tenant.request('DELETE', `/comments/${gone}`));
    t.notOk(gone in (await read({})).comments);
    t.equal((await tenant.request('GET', '/users/bob/notifications?include=users')).status, 400);
  },
);

t.test('bad input is refused with the field and the bound', async (t) => {
  const { tenant, threadId } = await scene();
  for (const [method, path, body, error] of [
    ['POST', '/users/bob/notifications/read', {}, /^all is required, unless ids is given$/],
    ['POST', '/users/bob/notifications/read', { ids: [], all: true }, /^ids must be absent if all is given$/],
    [
      'POST',
      '/users/bob/notifications/read',
      { ids: Array.from({ length: 201 }, () => 'x') },
      /ids must be at most 200 items/,
    ],
    ['POST', '/users/bob/notifications/read', { all: 'yes' }, /all/],
    ['PUT', '/users/bob/notification-settings', { email: { reply: 'no' } }, /email\.reply/],
    ['PUT', '/users/bob/notification-settings', { Email: { reply: false } }, /Email must be the name of a channel/],
    [
      'PUT',
      '/users/bob/notification-settings',
      { slack: { mention: 1 } },
      /slack\.mention must be true or false, not 1/,
    ],
    [
      'PUT',
      '/users/bob/notification-settings',
      { email: { mentions: false } },
      /^email\.mentions is not a kind of notification: the kinds are mention and reply$/,
    ],
    ['PUT', '/users/bob/notification-settings', { slack: { comment: true } }, /^slack\.comment is not a kind/],
    [
      'PUT',
      '/users/bob/notification-settings',
      { sms: { reply: false, reaction: true } },
      /^sms\.reaction is not a kind/,
    ],
    [
      'PUT',
      '/users/bob/notification-settings',
      Object.fromEntries(Array.from({ length: 48 }, (_, n) => [`c${n}`, { reply: true }])),
      /at most 50 channels/,
    ],
    ['POST', `/threads/${threadId}/subscription`, { action: 'mute' }, /userId is required/],
    ['POST', `/threads/${threadId}/subscription`, { action: 'ignore', userId: 'bob' }, /action/],
    ['POST', `/threads/${threadId}/subscription`, { action: 'mute', userId: 'nobody' }, /Unknown user: nobody/],
    ['GET', '/users/bob/notifications?unread=maybe', undefined, /unread must be one of/],
    ['GET', '/users/bob/notifications?cursor=x', undefined, /Invalid cursor/],
  ] as const) {
    const answer = await tenant.request<{ error: string }>(method, path, { body });
    t.equal(answer.status, 400, `${method} ${path} ${JSON.stringify(body)?.slice(0, 60)}`);
    t.match(answer.json.error, error);
  }
});

t.test('fields that switch no kind are ignored, like unknown fields elsewhere', async (t) => {
  const { tenant } = await scene();
  const on = { mention: true, reply: true };
  t.strictSame(
    done(
      200,
      await tenant.request('PUT', '/users/bob/notification-settings', {
        body: { version: 2, meta: { source: 'page' }, webhook: { since: '2026' } },
      }),
    ),
    { inApp: on, email: on, webhook: on },
  );
});

t.test('settings keep what is not given', async (t) => {
  const { tenant } = await scene();
  const on = { mention: true, reply: true };
  await tenant.request('PUT', '/users/bob/notification-settings', { body: { 'my-slack': { reply: false } } });
  t.strictSame(
    done(200, await tenant.request('PUT', '/users/bob/notification-settings', { body: { email: { mention: false } } })),
    {
      inApp: on,
      email: { mention: false, reply: true },
      webhook: on,
      'my-slack': { mention: true, reply: false },
    },
  );
});

t.test(
  'events of notifications reach the sockets of their user on every worker, and no other socket, also on resume',
  async (t) => {
    const { tenant, threadId, mention } = await scene();
    const { epoch, seq } = done(
      200,
      await tenant.request<{ epoch: string; seq: number }>('GET', '/events?since=999999'),
    );
    const bob = [await tenant.join({ userId: 'bob' }), await tenant.join({ userId: 'bob' }, { worker: 1 })];
    const others = [
      await tenant.join({ userId: 'ann' }),
      await tenant.join({ userId: 'eve' }, { worker: 1 }),
      await tenant.join({ userId: 'bob', rooms: ['elsewhere'] }),
    ];
    // Bob's latest token decides who may be notified; it must not be the confined one.
    await (await tenant.join({ userId: 'bob' })).close();
    service.clock.advance(2_000);
    done(201, await tenant.request('POST', '/users/bob/tokens', { body: {} }));
    const commentId = await mention('bob');
    for (const socket of bob) {
      const frame = await socket.frame('notification.created');
      t.match(frame, {
        userId: 'bob',
        roomId: 'docs',
        threadId,
        actor: { userId: 'eve', via: 'rest' },
        data: { userId: 'bob', kind: 'mention', commentId, inApp: true, readAt: null },
      });
    }
    const [notification] = (await inboxOf(tenant, 'bob')).items;
    t.match(notification, { id: (await bob[0]?.frame('notification.created'))?.data && String, commentId });
    t.strictSame((await bob[0]?.request('notifications.read', { ids: [notification?.id] }))?.data, { unreadCount: 0 });
    for (const socket of bob)
      t.match(await socket.frame('notification.read'), {
        userId: 'bob',
        data: { userId: 'bob', ids: [notification?.id] },
      });

    // The end: what comes after all of this has reached everyone.
    const end = await addComment(tenant, threadId, { body: 'the end' });
    for (const socket of others.slice(0, 2))
      await socket.until(() => socket.frames.some((frame) => JSON.stringify(frame).includes(end.id)));
    t.strictSame(
      others.map(receivers),
      [['notification.created ann'], [], ['notification.read bob']],
      'a reply for ann; a confined socket gets nothing of another room',
    );

    const resumed = (userId: string, rooms?: string[]) =>
      tenant.join({ userId, ...(rooms === undefined ? {} : { rooms }) }, { search: `?epoch=${epoch}&since=${seq}` });
    const [again, ann, confined] = [await resumed('bob'), await resumed('ann'), await resumed('bob', ['elsewhere'])];
    await again.until(() => again.frames.some((frame) => JSON.stringify(frame).includes(end.id)));
    t.strictSame(receivers(again), ['notification.created bob', 'notification.read bob']);
    await ann.until(() => ann.frames.some((frame) => JSON.stringify(frame).includes(end.id)));
    t.strictSame(receivers(ann), ['notification.created ann']);
    await confined.frame('seq');
    t.strictSame(receivers(confined), ['notification.read bob']);
    const events = done(
      200,
      await tenant.request<{ items: { type: string; userId?: string }[] }>('GET', `/events?since=${seq}`),
    ).items;
    t.strictSame(
      events.filter(({ userId }) => userId === 'bob').map(({ type }) => type),
      ['notification.created', 'notification.read'],
      'backends see them',
    );
  },
);

t.test('a socket that skips an event for another user learns the position', async (t) => {
  const { tenant, threadId, mention, settle } = await scene();
  const ann = await tenant.join({ userId: 'ann' });
  done(
    200,
    await tenant.request('POST', `/threads/${threadId}/subscription`, { body: { userId: 'ann', action: 'mute' } }),
  );
  await mention('bob');
  await settle();
  const last = done(200, await tenant.request<{ seq: number }>('GET', '/events?since=999999')).seq;
  await until(() => {
    service.clock.advance(1_000);
    return ann.frames.some((frame) => frame.seq === last);
  });
  t.strictSame(
    ann.frames.filter(isEvent).map(({ type }) => type),
    ['comment.created'],
  );
});

t.test('what the settings keep out of the inbox reaches backends, and no socket', async (t) => {
  const { tenant, threadId, mention } = await scene();
  done(200, await tenant.request('PUT', '/users/bob/notification-settings', { body: { inApp: { mention: false } } }));
  const { seq } = done(200, await tenant.request<{ seq: number }>('GET', '/events?since=999999'));
  const bob = await tenant.join({ userId: 'bob' });
  await mention('bob');
  const end = await addComment(tenant, threadId, { body: 'the end' });
  await bob.until(() => bob.frames.some((frame) => JSON.stringify(frame).includes(end.id)));
  t.strictSame(notified(bob), []);
  t.strictSame(await inboxOf(tenant, 'bob'), { unreadCount: 0, items: [] });
  const events = done(
    200,
    await tenant.request<{ items: { type: string; data: { inApp?: boolean } }[] }>('GET', `/events?since=${seq}`),
  ).items;
  t.match(
    events.filter(({ type }) => type === 'notification.created'),
    [{ userId: 'bob', data: { inApp: false } }],
  );
});

t.test('the WebSocket reads and writes what REST does, for the user of the socket', async (t) => {
  const { tenant, threadId, mention } = await scene();
  await mention('bob');
  const bob = await tenant.join({ userId: 'bob', role: 'viewer' });
  t.strictSame(
    (await bob.request('notifications.list', { unread: true, limit: 10 })).data,
    await inboxOf(tenant, 'bob', '?unread=true'),
  );
  t.strictSame((await bob.request('thread.subscription', { threadId })).data, {
    threadId,
    userId: 'bob',
    state: 'default',
  });
  for (const [action, state] of [
    ['subscribe', 'subscribed'],
    ['unsubscribe', 'unsubscribed'],
    ['mute', 'muted'],
  ] as const) {
    t.strictSame((await bob.request(`thread.${action}`, { threadId })).data, { threadId, userId: 'bob', state });
    t.match((await bob.request('thread.subscription', { threadId })).data, { state });
  }
  t.match((await bob.request('notification-settings.put', { email: { reply: false } })).data, {
    email: { reply: false },
  });
  t.match((await bob.request('notification-settings.get')).data, { email: { mention: true, reply: false } });
  t.strictSame((await bob.request('notifications.read', { all: true })).data, { unreadCount: 0 });
  t.match((await bob.request('thread.mute', { threadId: 'nobody-has-this' })).error, { code: 'thread_not_found' });
  await mention('bob');
  t.equal((await inboxOf(tenant, 'bob')).unreadCount, 0, 'muted');
});

t.test('a credential confined to rooms sees and counts those of its rooms', async (t) => {
  const { tenant, mention, settle } = await scene();
  await mention('bob');
  await addThread(tenant, 'wiki', { mentions: ['bob'] });
  await settle();
  const { value: key } = await tenant.newKey({ rooms: 'wiki' });
  t.match(done(200, await tenant.request('GET', '/users/bob/notifications', { key })), {
    unreadCount: 1,
    items: [{ roomId: 'wiki' }],
  });
  t.strictSame(done(200, await tenant.request('POST', '/users/bob/notifications/read', { key, body: { all: true } })), {
    unreadCount: 0,
  });
  t.equal((await inboxOf(tenant, 'bob')).unreadCount, 1);
});

t.test('notifications are kept for 90 days', async (t) => {
  const { InboxSweep } = await import('../../src/workers/background/inbox-sweep.ts');
  const { tenant, mention } = await scene();
  await mention('bob');
  service.clock.advance(89 * 86_400_000);
  const kept = await mention('bob');
  service.clock.advance(2 * 86_400_000);
  await new InboxSweep(service.ctx).run();
  const { unreadCount, items } = await inboxOf(tenant, 'bob');
  t.strictSame(
    items.map(({ commentId }) => commentId),
    [kept],
  );
  t.equal(unreadCount, 1);
});
