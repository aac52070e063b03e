import t from 'tap';
import { readConsumerCursor } from '../../src/domain/events/consumer-cursors.ts';
import { streamOf } from '../../src/domain/events/streams.ts';
import type { EventEnvelope } from '../../src/model/event.ts';
import { createLogger } from '../../src/observability/log.ts';
import type { Consumer } from '../../src/domain/events/consumer.ts';
import { Consumers } from '../../src/workers/background/consumers.ts';
import { addComment, createWorld, startThread, type World } from '../domain/world.ts';
import { afterNow } from '../helpers/after-now.ts';
import { until } from '../helpers/cluster.ts';

/** A consumer that wants events while `wanted` is set, and what it has handled. */
function running(world: World, work: () => Promise<void> = async () => {}) {
  const handled: string[] = [];
  const state = { wanted: false };
  const consumer: Consumer = {
    name: 'recorder',
    concurrency: 4,
    retryDelaysMs: null,
    wants: () => Promise.resolve(state.wanted),
    handle: async ({ event }: { event: EventEnvelope }) => {
      await work();
      handled.push((event.data as { body: string }).body);
    },
  };
  const log = createLogger({ level: 'info', name: 'background', destination: { write: () => {} } });
  return {
    consumers: new Consumers([consumer], { ctx: world.ctx, log, startedAt: afterNow(world.clock) }),
    handled,
    state,
  };
}

t.test('events that were passed over are not handled after a crash', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  const first = running(world);
  t.teardown(() => first.consumers.stop());
  await first.consumers.start();
  await addComment(world, threadId, { body: 'unwanted' });
  const last = await world.ctx.store.lastSeq(streamOf(world.environment));
  // Without a stop of the first process, which would store the cursor.
  await until(async () => (await readConsumerCursor(world.ctx.store, world.environment, 'recorder')) === last);
  const second = running(world);
  t.teardown(() => second.consumers.stop());
  second.state.wanted = true;
  await second.consumers.start();
  await addComment(world, threadId, { body: 'wanted' });
  await until(() => second.handled.length > 0);
  t.same(second.handled, ['wanted']);
});

t.test('the cursor does not pass an event that is handled while later ones are passed over', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  let finish = (): void => {};
  let isBusy = false;
  const { consumers, handled, state } = running(world, () => {
    isBusy = true;
    return new Promise((resolve) => (finish = resolve));
  });
  t.teardown(() => consumers.stop());
  state.wanted = true;
  await consumers.start();
  const stream = streamOf(world.environment);
  const before = await world.ctx.store.lastSeq(stream);
  await addComment(world, threadId, { body: 'busy' });
  await until(() => isBusy);
  state.wanted = false;
  await addComment(world, threadId, { body: 'unwanted' });
  const last = await world.ctx.store.lastSeq(stream);
  await until(() => consumers.lags().get('recorder') === last - before);
  t.equal(consumers.lowestConsumerCursor(stream), before);
  finish();
  await until(() => consumers.lowestConsumerCursor(stream) === last);
  await until(async () => (await readConsumerCursor(world.ctx.store, world.environment, 'recorder')) === last);
  t.same(handled, ['busy']);
});
