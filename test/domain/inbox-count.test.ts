import t from 'tap';
import { findInboxDifferences, recountInboxes } from '../../src/domain/notifications/inbox-check.ts';
import {
  addNotification,
  notificationId,
  notificationKey,
  unreadCount,
} from '../../src/domain/notifications/notification-records.ts';
import { inboxOf } from '../../src/domain/records/partitions.ts';
import { timestamp } from '../../src/lib/clock.ts';
import type { Store, Transaction } from '../../src/ports/store.ts';
import { createWorld, START } from './world.ts';

t.test('a notification that comes while unread ones are recounted is counted', async (t) => {
  const { ctx, peer, environment } = await createWorld(t);
  const { store } = ctx;
  const add = (tx: Transaction, n: number): void => {
    const at = timestamp(START + n);
    const key = notificationKey('ann', `comment-${n}`, at);
    const ids = {
      id: notificationId(key),
      userId: 'ann',
      roomId: 'room',
      threadId: 'thread',
      commentId: `comment-${n}`,
      actorId: 'bob',
    };
    addNotification(tx, environment.id, {
      key,
      inApp: true,
      notification: { ...ids, kind: 'reply', readAt: null, createdAt: at, updatedAt: at },
    });
  };
  await store.transact(async (tx) => [1, 2].forEach((n) => add(tx, n)));
  await store.transact(async (tx) => tx.put(inboxOf(environment.id, 'ann'), 'unread', '7'));
  t.strictSame(await findInboxDifferences(ctx, environment.id), [{ userId: 'ann', counted: 7, stored: 2 }]);

  let isFirst = true;
  const transact: Store['transact'] = (work) =>
    store.transact(async (tx) => {
      const result = await work(tx);
      if (isFirst) {
        isFirst = false;
        await peer.store.transact(async (other) => add(other, 3));
      }
      return result;
    });
  const racing = new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      return name === 'transact' ? transact : typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  t.equal(await recountInboxes({ ...ctx, store: racing }, environment.id), 1);
  t.equal(await unreadCount(store, environment.id, 'ann'), 3);
  t.strictSame(await findInboxDifferences(ctx, environment.id), []);
});
