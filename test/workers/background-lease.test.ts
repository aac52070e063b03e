import t, { type Test } from 'tap';
import { ipcBus } from '../../src/adapters/ipc/bus.ts';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { channelPair } from '../../src/cluster/channel.ts';
import { shutDown } from '../../src/cluster/shutdown.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { Context } from '../../src/domain/context.ts';
import { createEnvironment } from '../../src/domain/environments/environments.ts';
import { readConsumerCursor } from '../../src/domain/events/consumer-cursors.ts';
import { putFileJob } from '../../src/domain/files/file-jobs.ts';
import { streamOf } from '../../src/domain/events/streams.ts';
import { readLease } from '../../src/domain/leases/leases.ts';
import { LEASES } from '../../src/domain/records/partitions.ts';
import { putUser } from '../../src/domain/users/users.ts';
import type { Environment } from '../../src/model/environments/environment.ts';
import type { EventEnvelope } from '../../src/model/event.ts';
import { createLogger } from '../../src/observability/log.ts';
import type { Media } from '../../src/ports/media.ts';
import type { Announcement, Bus } from '../../src/ports/bus.ts';
import type { Store } from '../../src/ports/store.ts';
import { runBackgroundWorker } from '../../src/workers/background-worker.ts';
import { addComment, createWorld, startThread } from '../domain/world.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { MemoryBlobs } from '../doubles/memory-blobs.ts';
import { until } from '../helpers/cluster.ts';
import { killLines, startFixture } from '../helpers/line-process.ts';
import { newShared } from '../helpers/new-shared.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { backendOf } from '../helpers/backend-of.ts';

const log = createLogger({ level: 'silent', name: 'test' });

type AnnounceOnly = Pick<Bus, 'announce' | 'onAnnounce'>;

/** A background worker of a node, and the positions of the events that its consumer has handled. */
function runner(t: Test, node: string, ctx: Context, startedAt: number, announcements: AnnounceOnly | null = null) {
  const handled: number[] = [];
  const [, channel] = channelPair();
  const worker = runBackgroundWorker({
    config: loadConfig({ dir: t.testdirName, env: {}, flags: {} }),
    ctx,
    bus: { ...ipcBus(channel), ...announcements },
    channel,
    log,
    startedAt,
    holder: { node, worker: 'background-1' },
    consumers: [
      {
        name: 'recorder',
        concurrency: 1,
        retryDelaysMs: null,
        handle: async ({ event }) => void handled.push(event.seq),
      },
    ],
  });
  const lost: Error[] = [];
  void worker.failed.then((error) => lost.push(error));
  t.teardown(() => shutDown([...worker.drain()], log));
  return { worker, handled, lost };
}

/** A store whose process can be stopped: its calls then wait until it goes on. */
function stoppable(store: Store): { store: Store; stop: () => void; goOn: () => void } {
  let stopped = Promise.resolve();
  let goOn = (): void => {};
  const late = new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      const call = (...args: readonly unknown[]): unknown => value.apply(target, args) as unknown;
      if (!['get', 'transact', 'events', 'range', 'cached'].includes(String(name))) return call;
      return async (...args: readonly unknown[]) => {
        await stopped;
        return call(...args);
      };
    },
  });
  const stop = (): void => {
    stopped = new Promise((resolve) => (goOn = resolve));
  };
  return { store: late, stop, goOn: () => goOn() };
}

/** A store that reports each read of a lease. */
function counting(store: Store, onRead: () => void): Store {
  return new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...args: readonly unknown[]): unknown => {
        if (name === 'get' && args[0] === LEASES) onRead();
        return value.apply(target, args) as unknown;
      };
    },
  });
}

const seqsTo = (last: number, from = 1): number[] => Array.from({ length: last - from + 1 }, (_, n) => from + n);

async function notificationsOf(store: Store, environment: Environment): Promise<string[]> {
  const events = await store.events(streamOf(environment), 0, 10_000);
  return events
    .map(({ text }) => JSON.parse(text) as EventEnvelope)
    .filter(({ type }) => type === 'notification.created')
    .map(({ data }) => (data as { commentId: string }).commentId);
}

t.test(
  'of the background workers of two nodes one works; when it is silent, the other goes on and each commit of the first is refused',
  async (t) => {
    const world = await createWorld(t);
    const { clock, environment } = world;
    const stream = streamOf(environment);
    const { store, stop, goOn } = stoppable(world.ctx.store);
    const one = runner(t, 'one', { ...world.ctx, store }, clock.now() + 1);
    await one.worker.started;
    const two = runner(t, 'two', world.peer, clock.now() + 1);
    await two.worker.started;
    const begin = (await world.peer.store.lastSeq(stream)) + 1;
    const { threadId, commentId } = await startThread(world, 'room', { mentions: ['bob'] });
    const isSaved = async (): Promise<boolean> =>
      (await readConsumerCursor(world.peer.store, environment, 'recorder')) ===
      (await world.peer.store.lastSeq(stream));
    await until(async () => (await notificationsOf(world.peer.store, environment)).length === 1 && (await isSaved()));
    t.strictSame(one.handled, seqsTo(await world.peer.store.lastSeq(stream), begin));
    t.strictSame(two.handled, [], 'it waits');
    await until(async () => (await readLease(world.peer.store, 'background')).isWanted);

    stop();
    const late = (await world.peer.store.lastSeq(stream)) + 1;
    const second = await addComment(world, threadId, { mentions: ['bob'] });
    clock.set(clock.now() - 600_000);
    await until(async () => {
      clock.advance(5_000);
      return two.handled.length > 0;
    });
    t.match(await readLease(world.peer.store, 'background'), { holder: { node: 'two' }, fence: 2 });
    await until(async () => (await notificationsOf(world.peer.store, environment)).length === 2 && (await isSaved()));
    goOn();
    await until(() => one.lost.length > 0);
    t.match(one.lost[0]?.message, /was lost: .* fencing number 1, and background-1 of node two holds it with 2 now/);
    await addComment(world, threadId);
    const last = await world.peer.store.lastSeq(stream);
    await until(isSaved);
    t.strictSame(one.handled, seqsTo(late - 1, begin), 'nothing more');
    t.strictSame(two.handled, seqsTo(last, late), 'the rest, once');
    t.strictSame(await notificationsOf(world.peer.store, environment), [commentId, second.id], 'each once');
  },
);

t.test('a worker that drains gives the work up, and that of another node begins it without waiting', async (t) => {
  const world = await createWorld(t);
  const { clock, environment } = world;
  const one = runner(t, 'one', world.ctx, clock.now() + 1);
  await one.worker.started;
  const two = runner(t, 'two', world.peer, clock.now() + 1);
  await two.worker.started;
  await shutDown([...one.worker.drain()], log);
  await startThread(world);
  await until(() => two.handled.length > 0);
  t.strictSame(one.handled, []);
  t.equal((await readLease(world.peer.store, 'background')).fence, 2);
  t.ok(await world.peer.store.lastSeq(streamOf(environment)));
});

t.test('after a clean stop the worker of a folder works on a full disk, so that files are removed', async (t) => {
  const path = tempFolder(t);
  const clock = new ManualClock(Date.now());
  const blobs = new MemoryBlobs();
  const inFolder = async (minFreeBytes: number): Promise<Context> => {
    const store = await openLmdbStore({ path, minFreeBytes });
    t.teardown(() => store.close());
    return { store, operations: store, shared: newShared(clock), clock, blobs, media: {} as Media };
  };
  const before = await inFolder(0);
  const first = runner(t, 'folder', before, 0);
  await first.worker.started;
  await shutDown([...first.worker.drain()], log);
  const staged = await blobs.stage('gone', 'file');
  await staged.write(Buffer.from('content'));
  await staged.commit();
  await before.store.transact(async (tx) => putFileJob(tx, 'clear', 'gone', ''));

  const full = await inFolder(Number.MAX_SAFE_INTEGER);
  await t.rejects(
    full.store.transact(async (tx) => tx.put('p', 'k', 'v')),
    { code: 'storage_full' },
  );
  await runner(t, 'folder', full, 0).worker.started;
  await until(async () => (await blobs.environments()).length === 0);
});

t.test('a worker that gives the lease up says so, and one that waits looks at once when it hears that', async (t) => {
  const world = await createWorld(t);
  const { clock } = world;
  const announced: Announcement[] = [];
  const listeners = new Set<(announcement: Announcement) => void>();
  const bus: AnnounceOnly = {
    announce: (announcement) => void announced.push(announcement),
    onAnnounce: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  const one = runner(t, 'one', world.ctx, clock.now() + 1, bus);
  await one.worker.started;
  // Of its consumer.
  await until(() => listeners.size === 1);
  let looks = 0;
  const two = runner(t, 'two', { ...world.peer, store: counting(world.peer.store, () => looks++) }, 0, bus);
  await two.worker.started;
  t.equal(listeners.size, 2);
  const before = looks;
  for (const listener of listeners) listener(null);
  await new Promise(setImmediate);
  t.ok(looks > before);
  await shutDown([...one.worker.drain()], log);
  t.equal(announced.at(-1), null);
});

t.test(
  'a process that is stopped beyond the term, and goes on, does nothing again that was done meanwhile',
  async (t) => {
    const path = tempFolder(t);
    const store = await openLmdbStore({ path, minFreeBytes: 0 });
    t.teardown(() => store.close());
    const clock = new ManualClock(Date.now());
    const ctx: Context = { store, shared: newShared(clock), clock };
    const environment = await createEnvironment(ctx, { slug: 'dev' });
    const stream = streamOf(environment);
    const backend = backendOf(environment);
    const world = { ctx, backend };
    for (const userId of ['ann', 'bob']) await putUser(ctx, backend, userId, { name: userId });
    const isSaved = async (): Promise<boolean> => {
      const last = await store.lastSeq(stream);
      const cursors = ['recorder', 'notifications'].map((name) => readConsumerCursor(store, environment, name));
      return (await Promise.all(cursors)).every((cursor) => cursor === last);
    };
    const child = startFixture('background-runner', path);
    t.teardown(() => killLines(child));
    const inChild = (): number[] =>
      child.lines.flatMap((line) => (line.startsWith('handled ') ? [Number(line.slice(8))] : []));
    const { threadId } = await startThread(world as never, 'room', { mentions: ['bob'] });
    await until(isSaved);
    // It has nothing to commit any more, so it is not stopped while it holds a lock of the store.
    child.child.kill('SIGSTOP');
    const own = runner(t, 'test', ctx, 0);
    await own.worker.started;
    const before = await store.lastSeq(stream);
    const second = await addComment(world as never, threadId, { mentions: ['bob'] });
    await until(async () => {
      clock.advance(5_000);
      return own.handled.length > 0 && (await isSaved());
    });
    child.child.kill('SIGCONT');
    await until(() => child.lines.includes('lost'));
    await addComment(world as never, threadId);
    await until(isSaved);
    t.strictSame(inChild(), seqsTo(before));
    t.strictSame(own.handled, seqsTo(await store.lastSeq(stream), before + 1));
    t.equal((await notificationsOf(store, environment)).filter((id) => id === second.id).length, 1);
  },
);
