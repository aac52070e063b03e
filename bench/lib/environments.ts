import type { Context } from '../../src/domain/context.ts';
import { MemoryShared } from '../../src/adapters/memory/shared.ts';
import { openPostgresStore } from '../../src/adapters/postgres/store/store.ts';
import { createEnvironment } from '../../src/domain/environments/environments.ts';
import { systemClock } from '../../src/lib/clock.ts';

/** Adds environments to a database, by the code of this tree: a command for each would take a minute. */
export async function fillEnvironments(database: string, count: number): Promise<void> {
  const store = await openPostgresStore({ url: database, connections: 2, name: 'collab bench' });
  const ctx: Context = { store, shared: new MemoryShared(), clock: systemClock };
  try {
    for (let n = 0; n < count; n += 1) await createEnvironment(ctx, { slug: `idle-${n}` });
  } finally {
    await store.close();
  }
}
