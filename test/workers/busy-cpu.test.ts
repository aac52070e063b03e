import t, { type Test } from 'tap';
import type { EventEnvelope } from '../../src/model/event.ts';
import { createLogger } from '../../src/observability/log.ts';
import type { BatchConsumer } from '../../src/workers/background/consumer.ts';
import { Consumers } from '../../src/workers/background/consumers.ts';
import { addComment, createWorld, startThread } from '../domain/world.ts';
import { until } from '../helpers/cluster.ts';

const COMMENTS = 450;

/** Lets a consumer of batches handle comments that were written `ageMs` before, while other processes need the CPU. */
async function handleOnBusyCpu(t: Test, ageMs: number) {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  for (let n = 0; n < COMMENTS; n++) await addComment(world, threadId, { body: String(n) });
  const startedAt = world.clock.now();
  world.clock.advance(ageMs);
  const batches: { at: number; events: readonly EventEnvelope[] }[] = [];
  const consumer: BatchConsumer = {
    name: 'recorder',
    types: new Set(['comment.created']),
    retryDelaysMs: [],
    handleBatch: (_environment, events) => {
      batches.push({ at: performance.now(), events });
      return Promise.resolve();
    },
  };
  let looks = 0;
  const observeCpu = () => () => {
    looks++;
    return true;
  };
  const log = createLogger({ level: 'info', name: 'background', destination: { write: () => {} } });
  const consumers = new Consumers([consumer], { ctx: world.ctx, log, startedAt, observeCpu });
  t.teardown(() => consumers.stop());
  await consumers.start();
  await until(() => batches.flatMap(({ events }) => events).length >= COMMENTS);
  const pausesMs = batches.slice(1).map(({ at }, index) => at - (batches[index]?.at ?? 0));
  const bodies = batches.flatMap(({ events }) => events).map(({ data }) => (data as { body: string }).body);
  return { bodies, pausesMs, looks };
}

t.test('a consumer of batches rests after each batch of recent events while other processes need the CPU, and misses none', async (t) => {
  const { bodies, pausesMs } = await handleOnBusyCpu(t, 0);
  t.same(bodies, Array.from({ length: COMMENTS }, (_, n) => String(n)));
  t.equal(pausesMs.length, 2);
  // Node may fire a timer one millisecond early.
  for (const ms of pausesMs) t.ok(ms >= 999, `${ms} ms`);
});

t.test('events that are five seconds old do not wait any longer', async (t) => {
  const { bodies, looks } = await handleOnBusyCpu(t, 5_000);
  t.equal(bodies.length, COMMENTS);
  t.equal(looks, 0, 'the CPU does not matter');
});

t.test('events from the future, after the clock was set back, do not wait', async (t) => {
  const { bodies, looks } = await handleOnBusyCpu(t, -3_600_000);
  t.equal(bodies.length, COMMENTS);
  t.equal(looks, 0, 'the CPU does not matter');
});
