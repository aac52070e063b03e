import { setImmediate as nextIteration } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { ipcBus } from '../../src/adapters/ipc/bus.ts';
import { channelPair } from '../../src/cluster/channel.ts';
import { Relay } from '../../src/cluster/relay.ts';
import { shutDown } from '../../src/cluster/shutdown.ts';
import { loadConfig } from '../../src/config/load.ts';
import { streamOf } from '../../src/domain/events/streams.ts';
import { putUser } from '../../src/domain/users/users.ts';
import type { EventEnvelope } from '../../src/model/event.ts';
import { createLogger } from '../../src/observability/log.ts';
import type { Announcement } from '../../src/ports/bus.ts';
import { announceCommits } from '../../src/workers/announcements.ts';
import type { Consumer } from '../../src/domain/events/consumer.ts';
import { runBackgroundWorker } from '../../src/workers/background-worker.ts';
import { createWorld, startThread } from '../domain/world.ts';
import { afterNow } from '../helpers/after-now.ts';
import { until } from '../helpers/cluster.ts';
import { laggingStore } from '../helpers/lagging-store.ts';

const log = createLogger({ level: 'silent', name: 'test' });

/**
 * A web worker and a background worker on one relay. The store of the latter delivers events of the former only when it
 * is polled. Its sweeps never poll, because the clock stands still.
 */
async function workers(t: Test, consumers: readonly Consumer[], onSent: (type: string) => void = () => {}) {
  const world = await createWorld(t);
  const relay = new Relay();
  const join = () => {
    const [primary, channel] = channelPair();
    relay.add(primary);
    return { bus: ipcBus(channel), channel, primary };
  };
  const web = join();
  web.primary.onMessage(({ type }) => onSent(type));
  const background = join();
  announceCommits(world.ctx.store, web.bus);
  const lagging = laggingStore(world.peer.store);
  lagging.hold();
  const config = loadConfig({ dir: t.testdirName, env: {}, flags: {} });
  const worker = runBackgroundWorker({
    config,
    ctx: { ...world.peer, store: lagging.store },
    ...background,
    log,
    startedAt: afterNow(world.clock),
    holder: { node: 'here', worker: 'background-1' },
    consumers,
  });
  t.teardown(() => shutDown([...worker.drain()], log));
  return { world, web, lagging, worker };
}

/**
 * A background worker with a consumer that has handled every event so far, and the types of those that it handles from
 * now on.
 */
async function withConsumer(t: Test) {
  const events: EventEnvelope[] = [];
  const handle = async ({ event }: { readonly event: EventEnvelope }): Promise<void> => void events.push(event);
  const running = await workers(t, [{ name: 'recorder', concurrency: 1, retryDelaysMs: null, handle }]);
  const { world, web, lagging } = running;
  // It handles the events after its start, which is over at some time.
  let users = 0;
  await until(async () => {
    await putUser(world.ctx, world.backend, `user${++users}`, { name: 'x' });
    lagging.store.poll();
    return events.length > 0;
  });
  await until(() => (events.at(-1)?.data as { userId?: string } | undefined)?.userId === `user${users}`);
  // The web worker hears only after a moment that somebody listens to it.
  await until(() => {
    web.bus.announce(new Map([['probe', 0]]));
    return lagging.polls.some((growth) => growth?.has('probe'));
  });
  for (let i = 0; i < 10; i++) await nextIteration();
  events.length = 0;
  lagging.polls.length = 0;
  return { ...running, types: () => events.map(({ type }) => type) };
}

t.test('a consumer handles an event when a web worker announces it, without a poll', async (t) => {
  const { world, lagging, types } = await withConsumer(t);
  await startThread(world);
  await until(() => types().includes('thread.created'));
  const stream = streamOf(world.environment);
  t.ok(
    lagging.polls.length > 0 && lagging.polls.every((growth) => growth?.has(stream)),
    'each poll was asked for by an announcement',
  );
});

t.test('an event that is not announced waits for a poll', async (t) => {
  const { world, web, lagging, types } = await withConsumer(t);
  web.channel.close();
  await startThread(world);
  for (let i = 0; i < 50; i++) await nextIteration();
  t.strictSame(types(), []);
  lagging.store.poll();
  await until(() => types().includes('thread.created'));
});

t.test('the commits of the background worker are announced to the web workers', async (t) => {
  const { world, web } = await withConsumer(t);
  const heard: Announcement[] = [];
  web.bus.onAnnounce((announcement) => heard.push(announcement));
  // Until the background worker has heard that the web worker listens, it announces nothing.
  await until(async () => {
    await world.peer.store.transact(async (tx) => tx.emit('other', (seq) => `{"seq":${seq}}`));
    return heard.some((announcement) => announcement?.has('other'));
  });
});

t.test(
  'while no consumer wants events, web workers do not announce theirs; the next poll finds out when one does',
  async (t) => {
    const sent: string[] = [];
    let wanted = false;
    const events: EventEnvelope[] = [];
    const consumer: Consumer = {
      name: 'sometimes',
      concurrency: 1,
      retryDelaysMs: null,
      wants: () => Promise.resolve(wanted),
      handle: async ({ event }) => void events.push(event),
    };
    const { world, lagging } = await workers(t, [consumer], (type) => sent.push(type));
    await until(() => sent.includes('listens'));
    for (let i = 0; i < 50; i++) await nextIteration();
    sent.length = 0;
    await startThread(world);
    for (let i = 0; i < 50; i++) await nextIteration();
    t.notOk(sent.includes('announce'));
    t.strictSame(lagging.polls, []);

    wanted = true;
    await startThread(world);
    await until(() => {
      lagging.store.poll();
      return events.some(({ type }) => type === 'thread.created');
    });
    await until(async () => {
      lagging.polls.length = events.length = 0;
      await startThread(world);
      for (let i = 0; i < 50; i++) await nextIteration();
      return lagging.polls.some((growth) => growth?.has(streamOf(world.environment)));
    });
    await until(() => events.some(({ type }) => type === 'thread.created'));
  },
);
