import type { Test } from 'tap';
import type { StoreBounds } from '../../src/adapters/lmdb/bounds.ts';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import type { BackendActor } from '../../src/domain/access/actor.ts';
import type { Context } from '../../src/domain/context.ts';
import { createEnvironment, updateEnvironment } from '../../src/domain/environments/environments.ts';
import type { EnvironmentSettings } from '../../src/model/environments/environment.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { newShared } from '../helpers/new-shared.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { START } from './world.ts';
import { backendOf } from '../helpers/backend-of.ts';

/** An environment in a store on disk, which bounds commits, and a backend with a full key. */
export interface DiskPlace {
  readonly ctx: Context;
  readonly clock: ManualClock;
  readonly backend: BackendActor;
}

/**
 * @param settings those of the environment that are not the default
 * @param bounds those of the store that are not the default
 */
export async function createDiskPlace(
  t: Test,
  settings: Partial<EnvironmentSettings> = {},
  bounds: Partial<StoreBounds> = {},
): Promise<DiskPlace> {
  const store = await openLmdbStore({ path: tempFolder(t), minFreeBytes: 0, bounds });
  t.teardown(() => store.close());
  const clock = new ManualClock(START);
  const ctx: Context = { store, shared: newShared(clock), clock };
  const { id } = await createEnvironment(ctx, { slug: 'dev' });
  const environment = await updateEnvironment(ctx, id, { settings });
  return {
    ctx,
    clock,
    backend: backendOf(environment),
  };
}
