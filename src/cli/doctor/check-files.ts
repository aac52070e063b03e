import { accessDenialOf } from '../../lib/files/access-denial.ts';
import { firstLine } from '../../lib/thrown.ts';
import { type Context, requireFileStorage } from '../../domain/context.ts';
import { checkFiles, findOrphans, STAGED_MS } from '../../domain/files/file-sweep.ts';
import { type Check, fail, ok, type CheckedFolder, warn } from './check.ts';
import { hasFilesInFolder } from '../../config/engines.ts';
import { useStore } from '../shared/open-store.ts';
import { InterruptedError } from '../terminal/interruption.ts';
import { shellWord } from '../../lib/shell-word.ts';

/** What to do about lost files of a bucket. */
export const RESTORE_OBJECTS = 'Bring back their objects, by their versions or from the copy of the bucket';

/** Compares the stored files with their records, both ways. The store must be openable. */
export async function checkFilesOf({ dir, config }: CheckedFolder): Promise<Check> {
  try {
    return await useStore(config, (ctx) => compare(ctx, dir, hasFilesInFolder(config)));
  } catch (error) {
    if (error instanceof InterruptedError) throw error;
    const { message, remedy } = accessDenialOf(error) ?? {
      message: firstLine(error),
      remedy: 'Make the files in the data folder readable for this user.',
    };
    return fail('files', message, remedy);
  }
}

async function compare(ctx: Context, dir: string, isInFolder: boolean): Promise<Check> {
  const { files, lost } = await checkFiles(ctx);
  const unneeded = await unneededFiles(ctx);
  const collect = `collab gc --dir ${shellWord(dir)}`;
  if (lost.length > 0) {
    const missing = `${lost.length} of ${files} files are missing ${isInFolder ? 'on the disk' : 'in the bucket'}, such as ${lost[0]}`;
    const remedy = `${isInFolder ? 'Restore them from a backup of the data folder' : RESTORE_OBJECTS}; their comments still show them.`;
    return fail(
      'files',
      [missing, ...unneeded].join('; '),
      unneeded.length === 0 ? remedy : `${remedy} To remove the files that are not needed: ${collect}`,
    );
  }
  return unneeded.length === 0
    ? ok('files', `${files}, each with its record`)
    : warn('files', unneeded.join('; '), collect);
}

/** Describes the files that are not needed; empty if there are none. */
async function unneededFiles(ctx: Context): Promise<string[]> {
  let orphans = 0;
  let bytes = 0;
  for await (const orphan of findOrphans(ctx)) {
    orphans += 1;
    bytes += orphan.bytes;
  }
  const staged = await requireFileStorage(ctx).blobs.sweepStaged(STAGED_MS, true);
  return [
    ...(orphans === 0 ? [] : [`${orphans} files without a record take ${Math.ceil(bytes / 1024)} kB`]),
    ...(staged === 0 ? [] : [`${staged} uploads were never finished`]),
  ];
}
