import type { Context } from '../domain/context.ts';
import { checkFiles, findOrphans } from '../domain/file-sweep.ts';
import { type Check, fail, ok, reasonOf, type Subject, warn } from './check.ts';
import { useStore } from './folder.ts';
import { shellWord } from './output.ts';

/** Compares the files on the disk with their records, both ways. The store must open. */
export async function checkFilesOf({ dir, config }: Subject): Promise<Check> {
  try {
    return await useStore(config, (ctx) => compare(ctx, dir));
  } catch (error) {
    return fail('files', reasonOf(error), 'Make the files in the data folder readable for this user.');
  }
}

async function compare(ctx: Context, dir: string): Promise<Check> {
  const { files, lost } = await checkFiles(ctx);
  if (lost.length > 0) {
    return fail('files', `${lost.length} of ${files} files are missing on the disk, such as ${lost[0]}`, 'Put them back from a backup of the data folder: their comments still show them.');
  }
  let orphans = 0;
  let bytes = 0;
  for await (const orphan of findOrphans(ctx)) {
    orphans += 1;
    bytes += orphan.bytes;
  }
  if (orphans === 0) return ok('files', `${files}, all with their record`);
  return warn('files', `${orphans} files without a record take ${Math.ceil(bytes / 1024)} kB`, `collab gc --dir ${shellWord(dir)}`);
}
