import { readFileSync } from 'node:fs';
import { readdir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { livenessOf, currentProcess, parseProcessIdentity } from '../../lib/process-identity.ts';

const PREFIX = '.setup-';
const OWNER = 'owner.json';
/** Whoever can't be asked counts as ended when its folder was not touched for so long. */
const SILENT_MS = 600_000;
const BEAT_MS = 60_000;

/** Where this process fills a store aside, before it moves it into its place. */
export function setupFolder(dataDir: string): string {
  return join(dataDir, `${PREFIX}${process.pid}`);
}

/**
 * Says in a folder of `setupFolder` whose it is: whole or not at all, so that a killed process is known as one. The
 * folder is touched every minute, as long as it is there.
 */
export async function claimSetup(folder: string): Promise<void> {
  const draft = join(folder, `${OWNER}.draft`);
  await writeFile(draft, JSON.stringify(currentProcess()), { mode: 0o600 });
  await rename(draft, join(folder, OWNER));
  const beat = setInterval(() => void utimes(folder, new Date(), new Date()).catch(() => clearInterval(beat)), BEAT_MS);
  beat.unref();
}

/** What setups that were killed midway have left in a data folder; none where there is no such folder, or it can't be read. */
export async function findLeftovers(dataDir: string): Promise<string[]> {
  const names = await readdir(dataDir).catch((): string[] => []);
  const folders = names.filter((name) => name.startsWith(PREFIX)).map((name) => join(dataDir, name));
  const ended = await Promise.all(folders.map(hasEnded));
  return folders.filter((_, at) => ended[at]);
}

/** Removes it. A setup that still runs is left alone. */
export async function removeLeftovers(dataDir: string): Promise<void> {
  for (const folder of await findLeftovers(dataDir)) await rm(folder, { recursive: true, force: true });
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
