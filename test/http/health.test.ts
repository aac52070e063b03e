import t from 'tap';
import { Health, type HealthDeps } from '../../src/http/health.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/observability/log.ts';
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
