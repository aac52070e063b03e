import { rmSync } from 'node:fs';
import t from 'tap';
import type { Comment } from '../../src/model/comment.ts';
import type { EventEnvelope } from '../../src/model/event.ts';
import type { Notification } from '../../src/model/notification.ts';
import { initFolder, until } from '../helpers/cluster.ts';
import { CRASH_FACTOR } from '../helpers/crash-factor.ts';
import { InboxModel } from '../helpers/inbox-model.ts';
import type { Inbox } from '../helpers/notifications.ts';
import { type PluginCluster, startPluginCluster } from '../helpers/plugin-cluster.ts';

const KILLS = 4 * CRASH_FACTOR;
/** The primary waits longer before each replacement, so the server is started again after so many. */
const KILLS_PER_START = 6;
const USERS = ['ann', 'bob', 'cat', 'dan', 'eve'];
const THREADS = 6;
const WRITERS = 4;
const TIMEOUT_MS = 120_000;

t.test(
  `every notification is in its inbox exactly once although the background worker is killed ${KILLS} times`,
  { timeout: CRASH_FACTOR * 900_000 },
  async (t) => {
    const folder = await initFolder({ rateLimit: { perMinute: 1_000_000 }, events: { retentionCount: 1_000_000 } });
    t.teardown(() => rmSync(folder.dir, { recursive: true, force: true }));
    let cluster = await startPluginCluster(t, folder);
    for (const userId of USERS) await ask(cluster, 'PUT', `/users/${userId}`, {});
    const threads: string[] = [];
    for (let n = 0; n < THREADS; n++) {
      const { thread } = await ask<{ thread: { id: string } }>(cluster, 'POST', '/rooms/lobby/threads', {
        userId: pick(USERS, n),
        body: 'first',
        mentions: USERS.slice(0, 2),
      });
      threads.push(thread.id);
    }

    let isLoading = true;
    const load = async (cluster: PluginCluster, first: number): Promise<void> => {
      for (let n = first; isLoading; n += WRITERS) {
        const mentions = n % 5 === 0 ? [pick(USERS, n + 2)] : [];
        const { comment } = await ask<{ comment: Comment }>(cluster, 'POST', `/threads/${pick(threads, n)}/comments`, {
          userId: pick(USERS, n * 3),
          body: `${n}`,
          mentions,
        });
        if (n % 7 === 0)
          await ask(cluster, 'PATCH', `/comments/${comment.id}`, { body: 'edited', mentions: [pick(USERS, n + 1)] });
        if (n % 11 === 0) await ask(cluster, 'DELETE', `/comments/${comment.id}`);
        // Leaves a busy machine time to handle what was written.
        await new Promise((resolve) => setTimeout(resolve, 40));
      }
    };
    for (let kills = 0; kills < KILLS;) {
      isLoading = true;
      const { pids } = cluster;
      const writers = Array.from({ length: WRITERS }, (_, writer) => load(cluster, writer));
      for (const end = Math.min(KILLS, kills + KILLS_PER_START); kills < end; kills++) {
        // Some notifications after each start, so that the kill comes in the middle of the work; sometimes none, as it
        // begins.
        const enough = (await unreadOfEve(cluster)) + Math.floor(Math.random() * 30);
        await until(async () => pids('background').length === 1 && (await unreadOfEve(cluster)) >= enough, TIMEOUT_MS);
        for (const pid of pids('background')) process.kill(pid, 'SIGKILL');
      }
      isLoading = false;
      await Promise.all(writers);
      if (kills < KILLS) {
        await cluster.stop();
        cluster = await startPluginCluster(t, folder);
      }
    }

    // Events are handled in order, so its notification is created after all others.
    const { thread } = await ask<{ thread: { id: string } }>(cluster, 'POST', '/rooms/lobby/threads', {
      userId: 'ann',
      body: 'the end',
      mentions: ['eve'],
    });
    await until(async () => (await inboxOf(cluster, 'eve', '?limit=1')).items[0]?.threadId === thread.id, TIMEOUT_MS);
    const events = await eventsOf(cluster);
    const created = events
      .filter(({ type }) => type === 'notification.created')
      .map(({ data }) => data as Notification);
    const announced = new Set(created.map(({ id }) => id));
    const model = modelOf(events);
    for (const userId of USERS) {
      const { items, unreadCount } = await inboxOf(cluster, userId);
      t.strictSame(
        items.map(nameOf).toSorted(),
        model.inbox(userId).map(nameOf).toSorted(),
        `${userId} has each of ${items.length} notifications exactly once`,
      );
      t.equal(unreadCount, items.length, 'the count is exact');
      t.strictSame(
        items.filter(({ id }) => !announced.has(id)),
        [],
        'each has an event',
      );
    }
    const names = created.map(({ id, kind }) => `${id} ${kind}`);
    t.equal(new Set(names).size, names.length, 'no event comes twice, except one with the kind that an edit changed');
  },
);

/** Calls the API, which must answer well. */
async function ask<T>(cluster: PluginCluster, method: string, path: string, body?: object): Promise<T> {
  const answer = await cluster.call(method, path, body);
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body as T;
}

/** The size of an inbox in which nothing is read: it grows as long as notifications are created. */
async function unreadOfEve(cluster: PluginCluster): Promise<number> {
  return (await inboxOf(cluster, 'eve', '?limit=1')).unreadCount;
}

async function inboxOf(cluster: PluginCluster, userId: string, search = ''): Promise<Inbox> {
  return ask(cluster, 'GET', `/users/${userId}/notifications${search}`);
}

async function eventsOf(cluster: PluginCluster): Promise<EventEnvelope[]> {
  const events: EventEnvelope[] = [];
  for (;;) {
    const { items } = await ask<{ items: EventEnvelope[] }>(
      cluster,
      'GET',
      `/events?since=${events.at(-1)?.seq ?? 0}&limit=1000`,
    );
    if (items.length === 0) return events;
    events.push(...items);
  }
}

/** The inboxes that a log of events must have caused. */
function modelOf(events: readonly EventEnvelope[]): InboxModel {
  const model = new InboxModel();
  for (const userId of USERS) model.addUser(userId, 0);
  for (const { type, at, data, threadId = '', roomId = '' } of events) {
    if (type === 'thread.created') {
      const { comment } = data as { comment: Comment };
      model.addThread(threadId, roomId);
      model.addComment(threadId, comment.id, comment.userId, comment.mentions, Date.parse(at));
    } else if (type === 'comment.created') {
      const { id, userId, mentions } = data as Comment;
      model.addComment(threadId, id, userId, mentions, Date.parse(at));
    } else if (type === 'comment.updated') {
      const { id, mentions } = data as Comment;
      model.edit(threadId, id, mentions, Date.parse(at));
    } else if (type === 'comment.deleted') {
      model.deleteComment((data as { commentId: string }).commentId);
    }
  }
  return model;
}

const nameOf = ({ kind, threadId, commentId }: Pick<Notification, 'kind' | 'threadId' | 'commentId'>): string =>
  `${kind} ${threadId} ${commentId}`;

function pick<T>(list: readonly T[], n: number): T {
  const found = list[n % list.length];
  if (found === undefined) throw new Error('the list is empty');
  return found;
}
