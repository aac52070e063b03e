import { rmSync } from 'node:fs';
import t from 'tap';
import type { PluginEvent } from '../../src/plugins/api.ts';
import { initFolder, until } from '../helpers/cluster.ts';
import { CRASH_FACTOR } from '../helpers/crash-factor.ts';
import { type PluginCluster, startPluginCluster } from '../helpers/plugin-cluster.ts';
import { startReceiver } from '../helpers/receiver.ts';

const KILLS = 4 * CRASH_FACTOR;
/** The primary waits longer before each replacement, so the server is started again after so many. */
const KILLS_PER_START = 4;
const WRITERS = 4;
/** Jobs that a killed worker was running wait for the end of their lease, so the load must go on without them. */
const MAX_UNDELIVERED = 1_000;

t.test(
  `every event is delivered although the background worker is killed ${KILLS} times`,
  { timeout: CRASH_FACTOR * 900_000 },
  async (t) => {
    const receiver = await startReceiver(t);
    const folder = await initFolder({
      rateLimit: { perMinute: 1_000_000 },
      plugins: [{ use: 'webhook', allowPrivate: true }],
    });
    t.teardown(() => rmSync(folder.dir, { recursive: true, force: true }));
    let cluster = await startPluginCluster(t, folder);
    await cluster.run('webhook', 'add', '--url', receiver.url);
    const first = await cluster.thread('first');
    await until(() => receiver.received.length > 0);

    let written = 0;
    let isLoading = true;
    const load = async ({ thread }: PluginCluster): Promise<void> => {
      while (isLoading) {
        await until(() => !isLoading || written - receiver.received.length < MAX_UNDELIVERED, 120_000);
        await thread('x');
        // About 60 events per second from all writers, which leaves a busy machine time to deliver them.
        await new Promise((resolve) => setTimeout(resolve, 60));
        written++;
      }
    };
    for (let kills = 0; kills < KILLS;) {
      isLoading = true;
      const { pids } = cluster;
      const writers = Array.from({ length: WRITERS }, () => load(cluster));
      for (const end = Math.min(KILLS, kills + KILLS_PER_START); kills < end; kills++) {
        // Some deliveries after each start, so that the kill comes in the middle of the work.
        const enough = receiver.received.length + Math.ceil(Math.random() * 30);
        await until(() => receiver.received.length >= enough && pids('background').length === 1, 120_000);
        for (const pid of pids('background')) process.kill(pid, 'SIGKILL');
      }
      isLoading = false;
      await Promise.all(writers);
      if (kills < KILLS) {
        await cluster.stop();
        cluster = await startPluginCluster(t, folder);
      }
    }

    const events: PluginEvent[] = [];
    for (;;) {
      const { body } = await cluster.call('GET', `/events?since=${events.at(-1)?.seq ?? 0}&limit=1000`);
      const items = body['items'] as PluginEvent[];
      if (items.length === 0) break;
      events.push(...items);
    }
    const expected = events
      .slice(events.findIndex(({ threadId }) => threadId === first))
      .filter(({ type }) => type === 'thread.created')
      .map(({ eventId }) => eventId);
    const bodies = new Map<unknown, Set<string>>();
    let count = 0;
    const isComplete = (): boolean => {
      for (const { headers, body } of receiver.received.splice(0)) {
        const id = headers['webhook-id'];
        bodies.set(id, (bodies.get(id) ?? new Set()).add(body.toString()));
        count++;
      }
      return expected.every((id) => bodies.has(id));
    };
    await until(isComplete, 120_000).catch(() => {});
    t.same(
      expected.filter((id) => !bodies.has(id)),
      [],
      `all of ${expected.length} events arrived, with ${count - bodies.size} repetitions`,
    );
    t.same(
      [...bodies.keys()].filter((id) => !events.some(({ eventId }) => eventId === id)),
      [],
      'and nothing else',
    );
    t.same(
      [...bodies.values()].filter((texts) => texts.size > 1),
      [],
      'a repeated delivery has the id and body of the first',
    );
  },
);
