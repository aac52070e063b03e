import { execFileSync } from 'node:child_process';
import type { Test } from 'tap';
import { openPool } from '../../../src/adapters/postgres/pool.ts';
import { openPostgresStore, type PostgresStore } from '../../../src/adapters/postgres/store/store.ts';
import { type Disk, storeConformance } from '../../conformance/store.ts';
import { fixtureArgs } from '../fixture-program.ts';

/** Makes each commit fail as the server does when its disk does. */
const failing = (state: string): string => `
  create function collab.fail() returns trigger language plpgsql as
    $$ begin raise exception 'the disk' using errcode = '${state}'; end $$;
  create trigger fail before insert on collab.commits for each row execute function collab.fail()`;

const EMPTY = `
  truncate collab.records, collab.partitions, collab.streams, collab.events, collab.commits;
  drop trigger if exists fail on collab.commits;
  drop function if exists collab.fail`;

/** Runs the conformance suite of the store on the database at a URL, which becomes empty before each case. */
export async function postgresConformance(t: Test, url: string): Promise<void> {
  const admin = await openPool({ option: 'store.url', url, connections: 1, name: 'admin' });
  t.teardown(() => admin.close());
  const open = (): Promise<PostgresStore> => openPostgresStore({ url, connections: 4, name: 'test' });
  await (await open()).close();
  await storeConformance(t, async (_, disk: Disk) => {
    await admin.run(EMPTY);
    const [store, peer] = await Promise.all([open(), open()]);
    if (disk !== 'works') await admin.run(failing(disk === 'full' ? '53100' : '58030'));
    const outside = {
      commit: (...record: readonly string[]) =>
        execFileSync(process.execPath, [...fixtureArgs('postgres-commit'), url, ...record]),
    };
    return {
      store,
      peer,
      outside,
      close: async () => {
        await store.close();
        await peer.close();
      },
    };
  });
}
