import { readFileSync } from 'node:fs';
import { readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { writeNamed } from '../../lib/files/named-writes.ts';
import { livenessOf, currentProcess, parseProcessIdentity } from '../../lib/process/process-identity.ts';

const PREFIX = '.setup-';
const OWNER = 'owner.json';
/** A setup whose process cannot be checked counts as ended if its folder was not touched for this long. */
const SILENT_MS = 600_000;
const TOUCH_MS = 60_000;

/** The folder in which this process prepares a store before it moves it into place. */
export function setupFolder(dataDir: string): string {
  return join(dataDir, `${PREFIX}${process.pid}`);
}

/**
 * Records this process as the owner of a `setupFolder`, atomically, so that a killed setup can be recognised. Touches
 * the folder every minute while it exists.
 */
export async function claimSetup(folder: string): Promise<void> {
  const temporary = join(folder, `${OWNER}.draft`);
  await writeNamed(temporary, JSON.stringify(currentProcess()), { mode: 0o600 });
  await rename(temporary, join(folder, OWNER));
  const touching = setInterval(
    () => void utimes(folder, new Date(), new Date()).catch(() => clearInterval(touching)),
    TOUCH_MS,
  );
  touching.unref();
}

/** The folders that killed setups left in a data folder; none if that folder does not exist or cannot be read. */
export async function findAbandonedSetups(dataDir: string): Promise<string[]> {
  const names = await readdir(dataDir).catch((): string[] => []);
  const folders = names.filter((name) => name.startsWith(PREFIX)).map((name) => join(dataDir, name));
  const ended = await Promise.all(folders.map(hasEnded));
  return folders.filter((_, at) => ended[at]);
}

/** Removes these folders. Setups that are still running are not affected. */
export async function removeAbandonedSetups(dataDir: string): Promise<void> {
  for (const folder of await findAbandonedSetups(dataDir)) await rm(folder, { recursive: true, force: true });
}

async function hasEnded(folder: string): Promise<boolean> {
  const state = ownerState(folder);
  if (state !== 'unsure') return state === 'dead';
  const found = await stat(folder).catch(() => null);
  return found !== null && Date.now() - found.mtimeMs > SILENT_MS;
}

function ownerState(folder: string): 'alive' | 'dead' | 'unsure' {
  try {
    const owner = parseProcessIdentity(readFileSync(join(folder, OWNER), 'utf8'));
    return owner === null ? 'unsure' : livenessOf(owner);
  } catch {
    return 'unsure';
  }
}
