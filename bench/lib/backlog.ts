import { join } from 'node:path';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { MemoryShared } from '../../src/adapters/memory/shared.ts';
import type { Context } from '../../src/domain/context.ts';
import {
  addNotification,
  notificationId,
  notificationKey,
} from '../../src/domain/notifications/notification-records.ts';
import { addJobs, newJobs } from '../../src/domain/plugins/jobs.ts';
import { systemClock, timestamp } from '../../src/lib/clock.ts';
import type { Installation } from './collab.ts';
import type { Backlog } from './plan.ts';

const PER_INBOX = 1_000;
const PER_COMMIT = 1_000;
const COMMITS_PER_CHECKPOINT = 50;

/**
 * Fills the store of an installation that does not run, by the code of this tree: by requests it would take an hour.
 */
export async function fillBacklog(
  { dir, environment }: Installation,
  endpointId: string,
  { notifications, deliveries }: Backlog,
): Promise<void> {
  const environmentId = environment.id;
  const store = await openLmdbStore({ path: join(dir, 'data', 'store'), minFreeBytes: 0 });
  const ctx: Context = { store, shared: new MemoryShared(), clock: systemClock };
  const begun = Date.now() - notifications;
  try {
    for (let from = 0; from < notifications; from += PER_COMMIT) {
      await store.transact(async (tx) => {
        for (let n = from; n < Math.min(notifications, from + PER_COMMIT); n += 1) {
          const userId = `reader-${Math.floor(n / PER_INBOX)}`;
          const commentId = `cm_${String(n).padStart(20, '0')}_0000000000000000`;
          const at = timestamp(begun + n);
          const key = notificationKey(userId, commentId, at);
          const ids = {
            id: notificationId(key),
            userId,
            roomId: 'room-0',
            threadId: `th_${String(n).padStart(20, '0')}`,
            commentId,
            actorId: 'user-1',
          };
          addNotification(tx, environmentId, {
            key,
            inApp: true,
            notification: { ...ids, kind: 'reply', readAt: null, createdAt: at, updatedAt: at },
          });
        }
      });
      if ((from / PER_COMMIT) % COMMITS_PER_CHECKPOINT === 0) await store.checkpoint();
    }
    const address = { environmentId, plugin: 'webhook', queue: 'deliveries' };
    for (let from = 0; from < deliveries; from += PER_COMMIT) {
      const drafts = Array.from({ length: Math.min(PER_COMMIT, deliveries - from) }, (_, i) =>
        deliveryOf(endpointId, from + i),
      );
      await addJobs(ctx, address, newJobs(drafts, systemClock.now()));
      if ((from / PER_COMMIT) % COMMITS_PER_CHECKPOINT === 0) await store.checkpoint();
    }
    await store.checkpoint();
  } finally {
    await store.close();
  }
}

function deliveryOf(
  endpointId: string,
  n: number,
): { id: string; payload: { [name: string]: string | number }; group: string } {
  const eventId = `evt_${String(n).padStart(20, '0')}`;
  const body = JSON.stringify({
    type: 'thread.deleted',
    timestamp: timestamp(Date.now()),
    data: { id: `th_${n}`, seq: n, roomId: 'room-0' },
  });
  return {
    id: `${endpointId}:${eventId}`,
    payload: { endpointId, eventId, type: 'thread.deleted', seq: n, body },
    group: endpointId,
  };
}
