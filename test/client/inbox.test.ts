import t, { type Test } from 'tap';
import WebSocket from 'ws';
import type { SocketConstructor } from '../../src/client/platform.ts';
import { CollabClient } from '../../src/client/rest/client.ts';
import { CollabSession } from '../../src/client/session/session.ts';
import { type Cluster, startCluster } from '../helpers/cluster.ts';
import { CuttableSockets, inboxOf, openSession, stateOf } from '../helpers/session.ts';
import { startService } from '../helpers/service.ts';

/** A session of a user in the environment `default`, which ends with the test. */
async function open(
  t: Test,
  { url, keys }: Cluster,
  collab: CollabClient,
  userId: string,
  Socket = WebSocket as unknown as SocketConstructor,
): Promise<CollabSession> {
  const { token } = await collab.users.createToken(userId);
  const session = new CollabSession({
    serverUrl: url,
    publishableKey: keys.publishableKey,
    token: () => token,
    WebSocket: Socket,
    backoff: { firstMs: 20, maxMs: 100 },
  });
  t.teardown(() => session.close());
  return session;
}

t.test('notifications arrive live, and what one session marks as read is read in the other', async (t) => {
  const cluster = await startCluster({ workers: 2, config: { rateLimit: { exempt: ['127.0.0.0/8'] } } });
  t.teardown(() => cluster.kill());
  const collab = new CollabClient({ serverUrl: cluster.url, secretKey: cluster.keys.secretKey });
  for (const userId of ['ann', 'bob', 'cat']) await collab.users.put(userId, {});
  const sockets = new CuttableSockets();
  const laptop = (await open(t, cluster, collab, 'bob')).inbox;
  const phone = (await open(t, cluster, collab, 'bob', sockets.WebSocket)).inbox;
  const other = (await open(t, cluster, collab, 'cat')).inbox;
  for (const inbox of [laptop, phone, other]) {
    t.teardown(inbox.subscribe(() => {}));
    t.match(await inboxOf(inbox, ({ status }) => status === 'ready'), { items: [], unreadCount: 0, error: null });
  }

  const thread = await collab.threads.create('page', { userId: 'ann', body: 'Hello', mentions: ['bob'] });
  for (const inbox of [laptop, phone]) {
    t.match(await inboxOf(inbox, ({ unreadCount }) => unreadCount === 1), {
      items: [{ userId: 'bob', kind: 'mention', threadId: thread.id, actorId: 'ann', readAt: null }],
    });
  }
  await collab.comments.create(thread.id, { userId: 'bob', body: 'Hi' });
  const answer = await collab.comments.create(thread.id, { userId: 'ann', body: 'Thanks' });
  for (const inbox of [laptop, phone]) {
    t.match(
      await inboxOf(inbox, ({ unreadCount }) => unreadCount === 2),
      { items: [{ kind: 'reply', commentId: answer.id }, { kind: 'mention' }] },
      'newest first',
    );
  }

  const marked = laptop.markRead([laptop.getSnapshot().items[1]?.id ?? '']);
  t.match(laptop.getSnapshot(), { unreadCount: 1, items: [{ readAt: null }, { readAt: String }] }, 'at once');
  await marked;
  t.match(
    await inboxOf(phone, ({ unreadCount }) => unreadCount === 1),
    { items: [{ readAt: null }, { readAt: String }] },
    'in the other session',
  );

  sockets.cut();
  await collab.comments.create(thread.id, { userId: 'cat', body: 'Me too', mentions: ['bob'] });
  t.match(
    await inboxOf(phone, ({ items }) => items.length === 3),
    { unreadCount: 2, items: [{ kind: 'mention', actorId: 'cat' }, {}, {}] },
    'also what came while the connection was lost',
  );
  await inboxOf(laptop, ({ items }) => items.length === 3);
  await phone.markAllRead();
  for (const inbox of [phone, laptop])
    t.match(
      await inboxOf(
        inbox,
        ({ unreadCount, items }) => unreadCount === 0 && items.every(({ readAt }) => readAt !== null),
      ),
      { items: [{}, {}, {}] },
    );

  await collab.comments.delete(answer.id);
  for (const inbox of [phone, laptop])
    t.match(
      await inboxOf(inbox, ({ items }) => items.length === 2),
      { unreadCount: 0 },
      'a deleted comment leaves the inbox',
    );
  t.match(other.getSnapshot(), { items: [], unreadCount: 0 }, 'nobody else sees any of it');
});

t.test('an inbox says why the session ended before it was loaded', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const session = openSession(t, tenant, 'ann', { token: () => 'no.good.token' });
  t.match(await inboxOf(session.inbox, ({ status }) => status !== 'loading', 20_000), {
    status: 'failed',
    error: { code: 'invalid_token' },
    items: [],
  });
});

t.test(
  'an inbox that is opened after the end of the session says so, and is loaded when the session goes on',
  async (t) => {
    const tenant = await (await startService(t)).tenant('acme');
    const session = openSession(t, tenant, 'ann', { lazy: true });
    session.close();
    let changes = 0;
    t.teardown(session.inbox.subscribe(() => changes++));
    t.match(await inboxOf(session.inbox, ({ status }) => status !== 'loading', 20_000), {
      status: 'failed',
      error: { code: 'closed' },
    });
    t.ok(changes > 0, 'the listener hears of it');
    session.reconnect();
    t.match(await inboxOf(session.inbox, ({ status }) => status === 'ready'), { error: null, items: [] });
    session.close();
    t.match(session.inbox.getSnapshot(), { status: 'ready', error: null }, 'what is loaded stays');
  },
);

t.test('an inbox whose load is cut off by the end of the session says so', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const session = openSession(t, tenant, 'ann');
  await stateOf(session, ({ status }) => status === 'live');
  t.teardown(session.inbox.subscribe(() => {}));
  session.close();
  t.match(session.inbox.getSnapshot(), { status: 'failed', error: { code: 'closed' } });
});
