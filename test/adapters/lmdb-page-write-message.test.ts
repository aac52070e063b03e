import { join } from 'node:path';
import t from 'tap';
import type { RootDatabase } from 'lmdb';
import { openLmdbEnv, OPTIONS } from '../../src/adapters/lmdb/env/lmdb-env.ts';
import { messageOf } from '../../src/lib/thrown.ts';
import { noSmallDisk, smallDisk } from '../helpers/small-disk.ts';

// Why the message is shortened is described at `shortenPageWriteMessage`.
await t.test('what LMDB says of a page that it cannot write fits into its buffer', { skip: noSmallDisk }, async (t) => {
  const disk = smallDisk(t, 4);
  const open = (root: RootDatabase<string, string>) => root;
  const root = openLmdbEnv({ ...OPTIONS, path: join(disk.path, 'env') }, open);
  t.teardown(() => root.close());
  const messages = new Set<string>();
  for (let round = 0; round < 20; round++) {
    await root.transaction(() => root.put(`${round}`, 'x'));
    disk.fill();
    const commit = root.transaction(() => root.put(`${round}.large`, 'x'.repeat(100_000)));
    const refusal = await commit.then(
      () => null,
      (error: Error) => error,
    );
    messages.add(messageOf(refusal?.cause));
    disk.empty();
  }
  // What LMDB says when a part of the page was written.
  messages.delete('Input/output error');
  t.not(messages.size, 0);
  for (const message of messages)
    t.match(message, /^No space left on device: Attempting to write page at position \d+, size \d+, blocks \d+$/);
});
