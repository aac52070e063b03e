import type { Test } from 'tap';
import { OPTIONS, openLmdbEnv } from '../../src/adapters/lmdb/env/lmdb-env.ts';
import { otherReaders } from '../../src/adapters/lmdb/env/readers.ts';
import { until } from './cluster.ts';
import { killLines, startFixture } from './line-process.ts';

/**
 * Starts a process that holds a snapshot of the memory in `path`, kills it, and returns whether the memory still has
 * its slot.
 */
export async function endHolderOf(t: Test, path: string): Promise<() => boolean> {
  const root = openLmdbEnv({ ...OPTIONS, path, maxDbs: 4, noSync: true }, (opened) => opened);
  t.teardown(() => root.close());
  const holder = startFixture('shared-holder', path);
  t.teardown(() => killLines(holder));
  await until(() => holder.lines.includes('held'));
  const { pid } = holder.child;
  await killLines(holder);
  return () => otherReaders(root).some((slot) => slot.pid === pid);
}

/** Returns a function that counts the leases, counts and records in the memory in `path`. */
export function storedIn(t: Test, path: string): () => number {
  const root = openLmdbEnv({ ...OPTIONS, path, maxDbs: 4, noSync: true }, (opened) => opened);
  t.teardown(() => root.close());
  const tables = ['leases', 'counts', 'records'].map((name) => root.openDB(name, { encoding: 'string' }));
  return () => {
    root.resetReadTxn();
    return tables.reduce((sum, table) => sum + [...table.getKeys()].length, 0);
  };
}
