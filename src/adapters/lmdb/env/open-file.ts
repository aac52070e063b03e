import { type Key, open, type RootDatabase, type RootDatabaseOptionsWithPath } from 'lmdb';
import { shortenPageWriteMessage } from './page-write-message.ts';
import { quietFailures } from './quiet-failures.ts';

/**
 * As `open` of lmdb-js 3.5.6, which is called only here: what it does wrong when a disk fails is mended before.
 */
export function openFile<V, K extends Key>(options: RootDatabaseOptionsWithPath): RootDatabase<V, K> {
  quietFailures();
  shortenPageWriteMessage();
  return open<V, K>(options);
}
