import t from 'tap';
import { ManualClock } from '../../doubles/manual-clock.ts';
import { createLogger } from '../../../src/observability/log.ts';
import { type Sweep, Sweeper } from '../../../src/workers/background/sweeper.ts';

function sweeping(...sweeps: Sweep[]) {
  const lines: string[] = [];
  const clock = new ManualClock(1_000_000);
  const log = createLogger({
    level: 'info',
    name: 'background',
    destination: { write: (line: string) => void lines.push(line) },
  });
  const sweeper = new Sweeper(sweeps, { clock, log });
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms);
    sweeper.runDue();
    await sweeper.idle();
  };
  return { clock, sweeper, pass, lines };
}

t.test('each sweep runs at its own interval', async (t) => {
  const runs = { often: 0, seldom: 0 };
  const { pass } = sweeping(
    { name: 'often', everyMs: 250, run: () => void runs.often++ },
    { name: 'seldom', everyMs: 1_000, run: () => void runs.seldom++ },
  );
  await pass(0);
  t.same(runs, { often: 0, seldom: 0 }, 'nothing is due at the start');
  for (let i = 0; i < 8; i++) await pass(250);
  t.same(runs, { often: 8, seldom: 2 });
  await pass(10_000);
  t.same(runs, { often: 9, seldom: 3 }, 'missed times are not made up for');
});

t.test('a sweep that fails is logged, runs again, and does not affect others', async (t) => {
  let healthy = 0;
  const { pass, lines } = sweeping(
    {
      name: 'throws',
      everyMs: 100,
      run: () => {
        throw new Error('at once');
      },
    },
    { name: 'rejects', everyMs: 100, run: () => Promise.reject(new Error('later')) },
    { name: 'healthy', everyMs: 100, run: () => void healthy++ },
  );
  await pass(100);
  await pass(100);
  t.equal(healthy, 2);
  const logged = lines.map((line) => JSON.parse(line) as { sweep: string; level: string; err: { message: string } });
  const shown = logged.map(({ sweep, level, err }) => `${level} ${sweep}: ${err.message}`);
  t.same(
    shown.toSorted((a, b) => a.localeCompare(b)),
    ['error rejects: later', 'error rejects: later', 'error throws: at once', 'error throws: at once'],
  );
});

t.test('a long sweep is not started twice, and is awaited by stop', async (t) => {
  let started = 0;
  let finish = (): void => {};
  const { clock, sweeper } = sweeping({
    name: 'long',
    everyMs: 100,
    run: () =>
      new Promise<void>((done) => {
        started++;
        finish = done;
      }),
  });
  for (let i = 0; i < 5; i++) {
    clock.advance(100);
    sweeper.runDue();
  }
  t.equal(started, 1);
  let stopped = false;
  const stop = sweeper.stop().then(() => (stopped = true));
  await new Promise(setImmediate);
  t.equal(stopped, false);
  finish();
  await stop;
});

t.test('sweeps keep their interval when the clock is set back a day', async (t) => {
  let runs = 0;
  const { clock, pass } = sweeping({ name: 'often', everyMs: 250, run: () => void runs++ });
  await pass(250);
  clock.set(clock.now() - 86_400_000);
  await pass(250);
  t.equal(runs, 2);
});
