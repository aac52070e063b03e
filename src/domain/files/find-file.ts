import type { StoredFile } from '../../model/attachment.ts';
import { ID_PATTERN } from '../../model/id.ts';
import type { Reader } from '../../ports/store.ts';
import { filesOf } from '../records/partitions.ts';
import { readRecord } from '../records/record.ts';

/** The record of a file; undefined if there is none, also for text that cannot be an id. */
export async function findFile(
  reader: Pick<Reader, 'get'>,
  environmentId: string,
  fileId: string,
): Promise<StoredFile | undefined> {
  return ID_PATTERN.test(fileId) ? readRecord<StoredFile>(reader, filesOf(environmentId), fileId) : undefined;
}
