import { type Damage, type DeepCounts, findDamage } from '../../domain/records/deep-check.ts';
import { type Check, fail, ok, reasonOf, type Subject } from './check.ts';
import { hasStore, useStore } from '../shared/folder.ts';
import { Progress } from '../terminal/progress.ts';

/** Faults that are named one by one. */
const NAMED = 50;
/** How often progress is looked at. */
const LOOK_MS = 200;
const REMEDY = 'Keep a copy of the data folder, restore the newest backup that is whole (collab restore), and look for errors of the disk in the log of the kernel (dmesg).';

/** Reads every record, event and file of a store. Nothing where there is no store: another check says so. */
export async function checkDeep({ config }: Subject): Promise<Check[]> {
  if (!hasStore(config)) return [];
  const counts: DeepCounts = { records: 0, events: 0, files: 0 };
  const text = (): string => `${counts.records} records, ${counts.events} events and ${counts.files} files`;
  const progress = new Progress();
  const found: Damage[] = [];
  const timer = setInterval(() => progress.say(() => `read ${text()}`), LOOK_MS);
  try {
    await useStore(config, async (ctx) => {
      for await (const damage of findDamage(ctx, counts)) found.push(damage);
    });
  } catch (error) {
    return [fail('deep', `reading everything ended after ${text()}: ${reasonOf(error)}`, REMEDY)];
  } finally {
    clearInterval(timer);
    progress.end();
  }
  if (found.length === 0) return [ok('deep', `${text()} are whole`)];
  const named = found.slice(0, NAMED).map(({ kind, name, fault }) => fail('deep', `the ${kind} ${name} ${fault}`, REMEDY));
  return found.length > NAMED ? [...named, fail('deep', `and ${found.length - NAMED} more of ${text()}`, REMEDY)] : named;
}
