import { firstLine } from '../../lib/thrown.ts';
import { type Damage, type DeepCounts, findDamage } from '../../domain/records/deep-check.ts';
import { isStoreError } from '../../model/errors.ts';
import { asFailure } from '../failure.ts';
import { type Check, fail, ok, type CheckedFolder } from './check.ts';
import type { Config } from '../../config/schema.ts';
import { RESTORE_OBJECTS } from './check-files.ts';
import { hasFilesInFolder, hasStoreInFolder } from '../../config/engines.ts';
import { hasStore } from '../shared/folder.ts';
import { useStore } from '../shared/open-store.ts';
import { InterruptedError } from '../terminal/interruption.ts';
import { Progress } from '../terminal/progress.ts';

/** How many faults are listed one by one. */
const MAX_LISTED = 50;
/** How often progress is updated. */
const PROGRESS_MS = 200;
const REMEDY =
  'Keep a copy of the data folder, restore the latest intact backup (`collab restore <backup>`), and ' +
  'check the kernel log (dmesg) for disk errors.';
const ENGINE_REMEDY = 'Keep a copy of the database, and bring the rows back from a backup of it.';

/** Reads every record, event and file of a store. Returns nothing if there is no store, which another check reports. */
export async function checkDeep({ config }: CheckedFolder): Promise<Check[]> {
  if (!hasStore(config)) return [];
  const counts: DeepCounts = { records: 0, events: 0, files: 0 };
  const text = (): string => `${counts.records} records, ${counts.events} events and ${counts.files} files`;
  const progress = new Progress();
  const found: Damage[] = [];
  const timer = setInterval(() => progress.update(() => `read ${text()}`), PROGRESS_MS);
  try {
    await useStore(config, async (ctx) => {
      for await (const damage of findDamage(ctx, counts)) found.push(damage);
    });
  } catch (error) {
    if (error instanceof InterruptedError) throw error;
    const remedy = isStoreError(error) ? asFailure(error).remedies.join(' ') : remedyOf(config, 'record');
    return [fail('deep', `reading stopped after ${text()}: ${firstLine(error)}`, remedy)];
  } finally {
    clearInterval(timer);
    progress.end();
  }
  if (found.length === 0) return [ok('deep', `${text()} are intact`)];
  const listed = found
    .slice(0, MAX_LISTED)
    .map(({ kind, name, fault }) => fail('deep', `the ${kind} ${name} ${fault}`, remedyOf(config, kind)));
  return found.length > MAX_LISTED
    ? [...listed, fail('deep', `${found.length - MAX_LISTED} more faults in ${text()}`, remedyOf(config, 'record'))]
    : listed;
}

/** What to do about something that is damaged or lost, where it is. */
function remedyOf(config: Config, kind: Damage['kind']): string {
  if (kind === 'file' && !hasFilesInFolder(config)) return `${RESTORE_OBJECTS}.`;
  return kind === 'file' || hasStoreInFolder(config) ? REMEDY : ENGINE_REMEDY;
}
