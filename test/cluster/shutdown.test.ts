import t from 'tap';
import { idleIteration, shutDown } from '../../src/cluster/shutdown.ts';
import { createLogger } from '../../src/observability/log.ts';

function logging() {
  const lines: string[] = [];
  return {
    lines,
    log: createLogger({
      level: 'info',
      name: 'web-1',
      destination: { write: (line: string) => void lines.push(line) },
    }),
  };
}

t.test('steps run one after another', async (t) => {
  const { log, lines } = logging();
  const order: string[] = [];
  const step = (name: string) => ({
    name,
    withinMs: 10_000,
    run: async () => {
      order.push(`${name} begins`);
      await new Promise(setImmediate);
      order.push(`${name} ends`);
    },
  });
  await shutDown([step('one'), step('two')], log);
  t.same(order, ['one begins', 'one ends', 'two begins', 'two ends']);
  t.same(lines, []);
});

t.test('a step that fails or hangs is named in the log and skipped', async (t) => {
  const { log, lines } = logging();
  let reached = false;
  await shutDown(
    [
      {
        name: 'throws',
        withinMs: 10_000,
        run: () => {
          throw new Error('no');
        },
      },
      { name: 'rejects', withinMs: 10_000, run: () => Promise.reject(new Error('never')) },
      { name: 'hangs', withinMs: 20, run: () => new Promise<void>(() => {}) },
      { name: 'last', withinMs: 10_000, run: () => void (reached = true) },
    ],
    log,
  );
  t.ok(reached);
  const logged = lines
    .map((line) => JSON.parse(line) as { step: string; err: { message: string } })
    .map(({ step, err }) => `${step}: ${err.message}`);
  t.same(logged, ['throws: no', 'rejects: never', 'hangs: not finished within 20 ms']);
});

t.test('an idle iteration comes soon in an idle loop, and within bounds in a busy one', async (t) => {
  await idleIteration();
  let busy = true;
  const keepBusy = (): void => {
    const until = performance.now() + 3;
    while (performance.now() < until);
    if (busy) setImmediate(keepBusy);
  };
  setImmediate(keepBusy);
  const startedAt = performance.now();
  await idleIteration();
  busy = false;
  t.ok(performance.now() - startedAt < 10_000);
});
