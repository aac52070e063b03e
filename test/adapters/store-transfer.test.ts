import t, { type Test } from 'tap';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { openLmdbTransfer } from '../../src/adapters/lmdb/transfer/transfer.ts';
import { openPostgresStore } from '../../src/adapters/postgres/store/store.ts';
import { openPostgresTransfer } from '../../src/adapters/postgres/transfer/transfer.ts';
import { storeTransferConformance } from '../conformance/store-transfer.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { POSTGRES, startPostgres } from '../helpers/engines/postgres.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

t.test('a folder', async (t: Test) => {
  await storeTransferConformance(t, async (t) => {
    const path = tempFolder(t);
    return {
      open: () => openLmdbStore({ path, minFreeBytes: 0 }),
      transfer: () => openLmdbTransfer({ path, minFreeBytes: 0 }),
    };
  });
});

t.test('PostgreSQL', { skip: skipWithout(...POSTGRES) }, async (t: Test) => {
  const postgres = await startPostgres(t, { locale: 'en_US' });
  let databases = 0;
  await storeTransferConformance(t, async () => {
    const url = postgres.createDatabase(`db${databases++}`);
    return {
      open: () => openPostgresStore({ url, connections: 4, name: 'test' }),
      transfer: () => openPostgresTransfer({ url }),
    };
  });
});
