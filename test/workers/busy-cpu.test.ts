import t, { type Test } from 'tap';
import type { EventEnvelope } from '../../src/model/event.ts';
import { createLogger } from '../../src/observability/log.ts';
import type { BatchConsumer } from '../../src/domain/events/consumer.ts';
import { Consumers } from '../../src/workers/background/consumers.ts';
import { addComment, createWorld, startThread } from '../domain/world.ts';
import { until } from '../helpers/cluster.ts';

/** How often the CPU is found contended, before it is free. */
const BUSY_LOOKS = 2;

/** Lets a consumer of batches handle comments that were written `ageMs` before, while other processes need the CPU. */
async function handleOnBusyCpu(t: Test, count: number, ageMs: number) {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  for (let n = 0; n < count; n++) await addComment(world, threadId, { body: String(n) });
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
  const cpu = {
    get isContended() {
      return ++looks <= BUSY_LOOKS;
    },
    stop: () => {},
  };
  const log = createLogger({ level: 'info', name: 'background', destination: { write: () => {} } });
  const consumers = new Consumers([consumer], { ctx: world.ctx, log, startedAt, cpu });
  const runningSince = performance.now();
  t.teardown(() => consumers.stop());
  await consumers.start();
  await until(() => batches.flatMap(({ events }) => events).length >= count);
  const waitedMs = (batches[0]?.at ?? 0) - runningSince;
  const bodies = batches.flatMap(({ events }) => events).map(({ data }) => (data as { body: string }).body);
  return { bodies, waitedMs, looks };
}

t.test(
  'a consumer of batches leaves 50 recent events for as long as other processes need the CPU, and misses none',
  async (t) => {
    const { bodies, waitedMs } = await handleOnBusyCpu(t, 450, 0);
    t.same(
      bodies,
      Array.from({ length: 450 }, (_, n) => String(n)),
    );
    // Node may fire a timer one millisecond early.
    t.ok(waitedMs >= BUSY_LOOKS * 999, `${waitedMs} ms`);
  },
);

t.test('fewer events do not wait', async (t) => {
  const { bodies, looks } = await handleOnBusyCpu(t, 40, 0);
  t.equal(bodies.length, 40);
  t.equal(looks, 0, 'the CPU does not matter');
});

for (const [title, ageMs] of [
  ['events that are five seconds old do not wait any longer', 5_000],
  ['events from the future, after the clock was set back, do not wait', -3_600_000],
] as const) {
  t.test(title, async (t) => {
    const { bodies, looks } = await handleOnBusyCpu(t, 450, ageMs);
    t.equal(bodies.length, 450);
    t.equal(looks, 0, 'the CPU does not matter');
  });
}
