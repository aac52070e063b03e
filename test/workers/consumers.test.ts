import t, { type Test } from 'tap';
import { createEnvironment, deleteEnvironment } from '../../src/domain/environments/environments.ts';
import { readConsumerCursor } from '../../src/domain/events/consumer-cursors.ts';
import { streamOf } from '../../src/domain/events/streams.ts';
import { putUser } from '../../src/domain/users/users.ts';
import { CollabError } from '../../src/model/errors.ts';
import type { EventEnvelope } from '../../src/model/event.ts';
import { createLogger } from '../../src/observability/log.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { receivedError, sentError } from '../../src/plugins/thread/messages.ts';
import type { BatchConsumer, ConsumedEvent, Consumer } from '../../src/domain/events/consumer.ts';
import { Consumers } from '../../src/workers/background/consumers.ts';
import { trimExpiredEvents } from '../../src/workers/background/event-retention.ts';
import { addComment, createWorld, startThread, type World } from '../domain/world.ts';
import { afterNow } from '../helpers/after-now.ts';
import { until } from '../helpers/cluster.ts';

type Handle = (event: EventEnvelope, signal: AbortSignal) => Promise<void>;

/** A consumer that records what it has handled, and the process around it. */
function running(
  t: Test,
  world: World,
  options: Partial<Omit<Consumer, 'handle'>> & { readonly work?: Handle } = {},
  startedAt = afterNow(world.clock),
) {
  const handled: EventEnvelope[] = [];
  const lines: string[] = [];
  const { work, ...fields } = options;
  const consumer: Consumer = {
    name: 'recorder',
    concurrency: 4,
    retryDelaysMs: null,
    handle: async ({ event }: ConsumedEvent, signal) => {
      await work?.(event, signal);
      handled.push(event);
    },
    ...fields,
  };
  const log = createLogger({
    level: 'info',
    name: 'background',
    destination: { write: (line: string) => void lines.push(line) },
  });
  const metrics = new Metrics();
  const consumers = new Consumers([consumer], { ctx: world.ctx, log, metrics, startedAt });
  t.teardown(() => consumers.stop());
  return {
    consumers,
    handled,
    lines,
    metrics,
    comments: () => handled.filter(({ type }) => type === 'comment.created'),
  };
}

const bodyOf = ({ data }: EventEnvelope): string => (data as { body: string }).body;

t.test('every event after the first start is handled once, in order within its thread', async (t) => {
  const world = await createWorld(t);
  const threads = await Promise.all([1, 2, 3].map(() => startThread(world)));
  const { consumers, comments } = running(t, world, { work: () => new Promise((resolve) => setImmediate(resolve)) });
  await consumers.start();
  for (let n = 0; n < 60; n++) await addComment(world, threads[n % 3]?.threadId ?? '', { body: String(n) });
  await until(() => comments().length >= 60);
  await consumers.stop();
  t.equal(comments().length, 60, 'and none of those before');
  for (const { threadId } of threads) {
    const order = comments()
      .filter((event) => event.threadId === threadId)
      .map((event) => Number(bodyOf(event)));
    t.same(
      order,
      order.toSorted((a, b) => a - b),
    );
  }
});

t.test(
  'what web workers commit before a new consumer is loaded is handled, and nothing from before the start of the server',
  async (t) => {
    const world = await createWorld(t);
    const { threadId } = await startThread(world);
    for (let n = 0; n < 250; n++) await addComment(world, threadId, { body: 'before' });
    world.clock.advance(1_000);
    const startedAt = world.clock.now();
    for (let n = 0; n < 250; n++) await addComment(world, threadId, { body: String(n) });
    const { consumers, comments } = running(t, world, {}, startedAt);
    await consumers.start();
    await addComment(world, threadId, { body: '250' });
    await until(() => comments().length >= 251);
    t.same(
      comments().map(bodyOf),
      Array.from({ length: 251 }, (_, n) => String(n)),
    );
  },
);

t.test('a text of the log that is no event is skipped and logged, and what follows is handled', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  const { consumers, comments, lines } = running(t, world);
  const batched: EventEnvelope[] = [];
  const batches: BatchConsumer = {
    name: 'batches',
    types: new Set(['comment.created']),
    retryDelaysMs: [],
    handleBatch: async (_, events) => void batched.push(...events),
  };
  const log = createLogger({ level: 'silent', name: 'background' });
  const deps = { ctx: world.ctx, log, metrics: new Metrics(), startedAt: afterNow(world.clock) };
  const others = new Consumers([batches], deps);
  t.teardown(() => others.stop());
  await Promise.all([consumers.start(), others.start()]);
  await addComment(world, threadId, { body: 'before' });
  const stream = streamOf(world.environment);
  for (const text of ['foreign', 'null', '5', '{"type":"comment.created"', '{"at":"2026"}'])
    await world.ctx.store.transact(async (tx) => tx.emit(stream, () => text));
  await addComment(world, threadId, { body: 'after' });
  await until(() => comments().length >= 2 && batched.length >= 2);
  t.same(comments().map(bodyOf), ['before', 'after']);
  t.same(batched.map(bodyOf), ['before', 'after']);
  t.equal(lines.filter((line) => line.includes('is no event, and a consumer skips it')).length, 5);
});

t.test('an event that fails is retried and holds up its own thread alone', async (t) => {
  const world = await createWorld(t);
  const [broken, fine] = [await startThread(world), await startThread(world)];
  let failing = true;
  const { consumers, comments, lines } = running(t, world, {
    retryDelaysMs: Array.from({ length: 10_000 }, () => 1),
    work: async (event) => {
      if (event.threadId === broken.threadId && failing) throw new Error('no answer');
    },
  });
  await consumers.start();
  await addComment(world, broken.threadId, { body: 'b1' });
  await addComment(world, broken.threadId, { body: 'b2' });
  for (let n = 0; n < 10; n++) await addComment(world, fine.threadId, { body: `f${n}` });
  await until(() => comments().length >= 10);
  t.ok(comments().every(({ threadId }) => threadId === fine.threadId));
  failing = false;
  await until(() => comments().length >= 12);
  t.same(
    comments()
      .filter(({ threadId }) => threadId === broken.threadId)
      .map(bodyOf),
    ['b1', 'b2'],
  );
  t.ok(lines.some((line) => line.includes('no answer') && line.includes('"consumer":"recorder"')));
});

t.test('a consumer without order handles the events of one thread at once', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  let finishFirst = (): void => {};
  const first = new Promise<void>((resolve) => (finishFirst = resolve));
  const { consumers, comments } = running(t, world, {
    ordered: false,
    work: async (event) => (event.type === 'comment.created' && bodyOf(event) === 'first' ? first : undefined),
  });
  await consumers.start();
  for (const body of ['first', 'second', 'third']) await addComment(world, threadId, { body });
  await until(() => comments().length >= 2);
  t.same(comments().map(bodyOf).toSorted(), ['second', 'third']);
  finishFirst();
  await until(() => comments().length >= 3);
});

t.test('an event whose attempts are used up is skipped, logged and counted', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  let attempts = 0;
  const { consumers, comments, lines, metrics } = running(t, world, {
    retryDelaysMs: [1, 1],
    work: async (event) => {
      if (event.type !== 'comment.created' || bodyOf(event) !== 'bad') return;
      attempts++;
      throw new Error('never');
    },
  });
  await consumers.start();
  await addComment(world, threadId, { body: 'bad' });
  await addComment(world, threadId, { body: 'good' });
  await until(() => comments().length === 1);
  t.equal(attempts, 3);
  t.same(comments().map(bodyOf), ['good']);
  t.equal(metrics.counter('consumer_events_total', { consumer: 'recorder', outcome: 'skipped' }).value, 1);
  t.equal(metrics.counter('consumer_events_total', { consumer: 'recorder', outcome: 'retried' }).value, 2);
  t.ok(lines.some((line) => line.includes('skips it') && line.includes('"attempt":3')));
});

for (const [where, refusal] of [
  ['the store', new CollabError('storage_full', 'The disk is full')],
  [
    'the store, reported by the thread of a plugin',
    receivedError(structuredClone(sentError(new CollabError('storage_full', 'The disk is full')))),
  ],
] as const) {
  t.test(`an event is not skipped for a refusal of ${where}, which is no attempt`, async (t) => {
    const world = await createWorld(t);
    const { threadId } = await startThread(world);
    const failures = [refusal, new Error('no answer')];
    const { consumers, comments } = running(t, world, {
      retryDelaysMs: [1],
      work: async (event) => {
        const failure = event.type === 'comment.created' ? failures.shift() : undefined;
        if (failure !== undefined) throw failure;
      },
    });
    await consumers.start();
    await addComment(world, threadId, { body: 'kept' });
    await until(() => comments().length === 1);
    t.equal(failures.length, 0);
  });
}

t.test('events of a batch are not skipped for a refusal of the store, which is no attempt', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  const failures = [new CollabError('storage_full', 'The disk is full'), new Error('no answer')];
  const handled: EventEnvelope[] = [];
  const consumer: BatchConsumer = {
    name: 'batches',
    types: new Set(['comment.created']),
    retryDelaysMs: [1],
    handleBatch: async (_environment, events) => {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      handled.push(...events);
    },
  };
  const log = createLogger({ level: 'silent', name: 'background' });
  const consumers = new Consumers([consumer], { ctx: world.ctx, log, startedAt: afterNow(world.clock) });
  t.teardown(() => consumers.stop());
  await consumers.start();
  await addComment(world, threadId, { body: 'kept' });
  await until(() => handled.length === 1);
  t.equal(failures.length, 0);
});

t.test('a consumer goes on where it stopped, and repeats after a crash what it had not stored', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  const first = running(t, world);
  await first.consumers.start();
  await addComment(world, threadId, { body: '1' });
  await until(() => first.comments().length === 1);
  await first.consumers.stop();
  await addComment(world, threadId, { body: '2' });

  let release = (): void => {};
  const crashed = running(t, world, { work: () => new Promise<void>((resolve) => (release = resolve)) });
  await crashed.consumers.start();
  const second = running(t, world);
  await second.consumers.start();
  await until(() => second.comments().length === 1);
  t.same(second.comments().map(bodyOf), ['2'], 'handled by the next process although the first never finished it');
  await second.consumers.stop();
  t.equal(
    await readConsumerCursor(world.ctx.store, world.environment, 'recorder'),
    await world.ctx.store.lastSeq(streamOf(world.environment)),
  );
  release();
});

t.test('what runs at a shutdown is aborted and comes again', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  let begun = false;
  const first = running(t, world, {
    work: (_event, signal) => {
      begun = true;
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
    },
  });
  await first.consumers.start();
  await addComment(world, threadId, { body: 'again' });
  await until(() => begun);
  await first.consumers.stop();
  const second = running(t, world);
  await second.consumers.start();
  await until(() => second.comments().length === 1);
  t.same(second.comments().map(bodyOf), ['again']);
});

t.test('an environment that is created later is handled from its first event', async (t) => {
  const world = await createWorld(t);
  const { consumers, handled } = running(t, world);
  await consumers.start();
  const environment = await createEnvironment(world.ctx, { slug: 'later' });
  const later: World = { ...world, environment, backend: { ...world.backend, environment } };
  await putUser(world.ctx, later.backend, 'ann', { name: 'Ann' });
  const { threadId } = await startThread(later);
  await until(() => handled.some((event) => event.threadId === threadId));
  await consumers.stop();
  t.equal(handled.filter((event) => event.threadId === threadId)[0]?.type, 'thread.created');
  t.equal(
    await readConsumerCursor(world.ctx.store, environment, 'recorder'),
    await world.ctx.store.lastSeq(streamOf(environment)),
  );
});

t.test('a comment that is written while consumers start brings back no history, and is handled once', async (t) => {
  const world = await createWorld(t);
  for (let n = 0; n < 20; n++) await createEnvironment(world.ctx, { slug: `other-${n}` });
  const environment = await createEnvironment(world.ctx, { slug: 'last' });
  const last: World = { ...world, environment, backend: { ...world.backend, environment } };
  await putUser(world.ctx, last.backend, 'ann', { name: 'Ann' });
  const { threadId } = await startThread(last);
  await addComment(last, threadId, { body: 'history' });
  const { consumers, comments } = running(t, world);
  const starting = consumers.start();
  await addComment(last, threadId, { body: 'during' });
  await starting;
  await addComment(last, threadId, { body: 'after' });
  await until(() => comments().some((event) => bodyOf(event) === 'after'));
  await consumers.stop();
  const bodies = comments().map(bodyOf);
  t.notOk(bodies.includes('history'));
  t.same(bodies, [...new Set(bodies)], 'each at most once');
});

t.test('a consumer that throws when it learns of lost events goes on with the others', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  const { store } = world.ctx;
  const stream = streamOf(world.environment);
  const first = running(t, world);
  await first.consumers.start();
  await first.consumers.stop();
  for (let n = 0; n < 5; n++) await addComment(world, threadId, { body: String(n) });
  const cursor = await readConsumerCursor(store, world.environment, 'recorder');
  await store.trimEvents(stream, (cursor ?? 0) + 2);
  const second = running(t, world, {
    onLost: () => {
      throw new Error('not prepared for that');
    },
  });
  await second.consumers.start();
  await until(() => second.comments().length === 3);
  await second.consumers.stop();
  t.equal(second.metrics.counter('consumer_events_total', { consumer: 'recorder', outcome: 'lost' }).value, 2);
  t.ok(second.lines.some((line) => line.includes('not prepared for that')));
});

t.test('a deleted environment leaves no cursor behind', async (t) => {
  const world = await createWorld(t);
  const { consumers, handled } = running(t, world);
  await consumers.start();
  await startThread(world);
  await until(() => handled.length > 0);
  await deleteEnvironment(world.ctx, world.environment.id);
  await consumers.stop();
  t.same(await world.ctx.store.range(`e/${world.environment.id}/cursors`), []);
});

t.test('one stuck event lets at most a thousand others be handled before it', async (t) => {
  const world = await createWorld(t);
  const [stuck, fine] = [await startThread(world), await startThread(world)];
  let release = (): void => {};
  const { consumers, comments } = running(t, world, {
    work: async (event) => {
      if (event.threadId === stuck.threadId) await new Promise<void>((resolve) => (release = resolve));
    },
  });
  await consumers.start();
  await addComment(world, stuck.threadId);
  for (let n = 0; n < 1_050; n++) await addComment(world, fine.threadId, { body: String(n) });
  await until(() => comments().length >= 999);
  t.equal(comments().length, 999, 'the stuck one and these fill the window');
  t.equal(consumers.lags().get('recorder'), 1_051);
  release();
  await until(() => comments().length === 1_051);
});

t.test('a backlog is read in whole pages, also if one event ends after the other', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  const { store } = world.ctx;
  const first = running(t, world);
  await first.consumers.start();
  await first.consumers.stop();
  for (let n = 0; n < 1_500; n++) await addComment(world, threadId, { body: String(n) });
  let reads = 0;
  const events = store.events.bind(store);
  Object.assign(store, { events: (...range: Parameters<typeof events>) => ((reads += 1), events(...range)) });
  const second = running(t, world, { work: () => new Promise((resolve) => setImmediate(resolve)) });
  await second.consumers.start();
  await until(() => second.comments().length === 1_500);
  t.ok(reads < 20, `${reads} reads`);
});

t.test(
  'retention keeps what a consumer has yet to handle, up to a bound, and reports what it removes past it',
  async (t) => {
    const world = await createWorld(t);
    const { threadId } = await startThread(world);
    const { store } = world.ctx;
    const stream = streamOf(world.environment);
    const lost: [number, number][] = [];
    const first = running(t, world);
    await first.consumers.start();
    await first.consumers.stop();
    const cursor = await store.lastSeq(stream);

    const stuck = running(t, world, {
      work: (_event, signal) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))),
    });
    await stuck.consumers.start();
    for (let n = 0; n < 12; n++) await addComment(world, threadId);
    world.clock.advance(48 * 3_600_000);
    const retain = (retentionCount: number): Promise<void> =>
      trimExpiredEvents(
        world.ctx,
        stream,
        { retentionHours: 1, retentionCount },
        stuck.consumers.lowestConsumerCursor(stream),
      );
    await retain(2);
    t.equal(await store.oldestSeq(stream), cursor + 1, 'what it has handled goes, the rest stays');
    await retain(1);
    const oldest = await store.oldestSeq(stream);
    t.equal(oldest, cursor + 3, 'ten times the count at most');
    await stuck.consumers.stop();

    const last = running(t, world, { onLost: (_environmentId, from, to) => void lost.push([from, to]) });
    await last.consumers.start();
    await until(() => last.comments().length === 10);
    t.same(lost, [[cursor + 1, oldest - 1]]);
    t.equal(last.metrics.counter('consumer_events_total', { consumer: 'recorder', outcome: 'lost' }).value, 2);
    t.ok(last.lines.some((line) => line.includes('removed by retention')));
  },
);

t.test('a consumer with a bad name or concurrency is refused', async (t) => {
  const world = await createWorld(t);
  t.throws(() => running(t, world, { name: 'Mail' }), { message: /must match .*"Mail" does not/ });
  t.throws(() => running(t, world, { concurrency: 65 }), { message: /from 1 to 64/ });
});
