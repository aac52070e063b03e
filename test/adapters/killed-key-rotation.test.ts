import t from 'tap';
import type { StoreBounds } from '../../src/adapters/lmdb/bounds.ts';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { MemoryShared } from '../../src/adapters/memory/shared.ts';
import { authenticateSecretKey, createKey, listKeys } from '../../src/domain/access/keys.ts';
import { readHead } from '../../src/domain/audit/audit.ts';
import { verifyChain } from '../../src/domain/audit/verify.ts';
import { createEnvironment } from '../../src/domain/environments/environments.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { until } from '../helpers/cluster.ts';
import { CRASH_FACTOR } from '../helpers/crash-factor.ts';
import { killLines, startFixture } from '../helpers/line-process.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const BOUNDS: Partial<StoreBounds> = {
  rotateBytes: 256 * 1024,
  rotationCheckMs: 0,
  checkpointBytes: 16 * 1024,
  checkpointWaitMs: 0,
  ringRecords: 64,
};

t.test(
  'when processes that rotate a key are killed, every key that was shown works, its predecessor ends, and each has its audit record',
  { timeout: CRASH_FACTOR * 300_000 },
  async (t) => {
    const path = tempFolder(t);
    const open = () => openLmdbStore({ path, minFreeBytes: 0, bounds: BOUNDS });
    const first = await open();
    const made = { store: first, shared: new MemoryShared(), clock: systemClock };
    const environment = await createEnvironment(made, { slug: 'dev' });
    const { key } = await createKey(made, environment, { kind: 'secret' });
    const before = await readHead(first, environment.id);
    await first.close();

    const shown: string[] = [];
    for (let kill = 0; kill < 2 * CRASH_FACTOR; kill++) {
      const rotator = startFixture('key-rotator', path, 'dev', JSON.stringify(BOUNDS));
      t.teardown(() => killLines(rotator));
      await until(() => rotator.lines.length > 5 + (kill % 2) * 30, 60_000);
      await killLines(rotator);
      shown.push(...rotator.lines);
    }

    const store = await open();
    t.teardown(() => store.close());
    const ctx = { store, shared: new MemoryShared(), clock: systemClock };
    const keys = (await listKeys(ctx, environment)).filter(({ kind }) => kind === 'secret');
    for (const [i, { id, expiresAt }] of keys.entries())
      if ((expiresAt === null) !== (i === keys.length - 1))
        t.fail(`key ${i} of ${keys.length}, ${id}, ends ${expiresAt}`);
    for (const line of shown) {
      const [id = '', value = ''] = line.split(' ');
      const { actor } = await authenticateSecretKey(ctx, value, 'rest');
      if (actor.keyId !== id) t.fail(`${id} is ${actor.keyId}`);
    }
    t.ok(keys.some(({ id }) => id === key.id));
    t.ok(keys.length > shown.length, `${shown.length} keys were shown, ${keys.length} are there`);
    const { head, faults } = await verifyChain(ctx, environment.id);
    t.strictSame(faults, []);
    t.equal(head.seq - before.seq, keys.length - 1, 'each rotation has one record');
  },
);
