import t from 'tap';
import { Health, type HealthDeps } from '../../src/http/health.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/observability/log.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { MemoryStore } from '../doubles/memory-store.ts';

const never = (): Promise<never> => new Promise(() => {});

const deps: HealthDeps = {
  clock: systemClock,
  store: new MemoryStore(),
  blobs: undefined,
  dataDir: '.',
  hasFilesInFolder: true,
  status: { draining: false },
  log: createLogger({ level: 'silent', name: 'test' }),
  engineMs: 5,
};

t.test('an engine that does not answer is named in time, and only the store makes a node unavailable', async (t) => {
  const blobs = { stage: never, isRetained: never } as unknown as HealthDeps['blobs'];
  const hanging: HealthDeps = { ...deps, blobs, hasFilesInFolder: false, probeShared: never };
  t.match(await new Health(hanging).report(), {
    status: 'ok',
    checks: { store: 'ok', disk: 'ok', files: 'failed', shared: 'failed' },
  });
  const store = Object.assign(new MemoryStore(), { probe: never });
  t.match(await new Health({ ...hanging, store }).report(), { status: 'unavailable', checks: { store: 'failed' } });
});

t.test('a check that keeps failing is logged once, and once more when it passes again', async (t) => {
  const clock = new ManualClock(0);
  const lines: string[] = [];
  const log = createLogger({ level: 'info', name: 'test', destination: { write: (line) => void lines.push(line) } });
  let fails = true;
  const probeShared = async (): Promise<void> => {
    if (fails) throw new Error('nobody answers');
  };
  const health = new Health({ ...deps, engineMs: 30_000, clock, log, probeShared });
  const said = async (): Promise<number> => {
    for (let n = 0; n < 3; n++) {
      await health.report();
      clock.advance(2_000);
    }
    return lines.length;
  };
  t.equal(await said(), 1);
  t.match(lines[0], /"level":"warn".*nobody answers.*limits and presence are partial/);
  fails = false;
  t.equal(await said(), 2);
  t.match(lines[1], /"level":"info".*"check":"shared"/);
  fails = true;
  t.equal(await said(), 3);
});
