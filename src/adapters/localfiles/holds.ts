import { randomBytes } from 'node:crypto';
import { readdir, readFile, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { ensureFolder, writeDurably } from '../../lib/durable-files.ts';
import { livenessOf, currentProcess, parseProcessIdentity } from '../../lib/process-identity.ts';
import type { BlobHold } from '../../ports/blobs.ts';
import { isMissing } from './staged-file.ts';

const BEAT_MS = 15_000;
const SILENT_MS = 5 * 60_000;

/** Puts a file that names this process into `folder`, which is made where it is missing, and touches it until it is released. */
export async function beginHold(folder: string): Promise<BlobHold> {
  await ensureFolder(folder);
  const file = join(folder, randomBytes(12).toString('hex'));
  await writeDurably(file, JSON.stringify(currentProcess()));
  // A file that is gone was taken for that of a process that had ended: what was held may be gone too.
  const beat = setInterval(() => void utimes(file, new Date(), new Date()).catch(() => clearInterval(beat)), BEAT_MS);
  beat.unref();
  return {
    async release() {
      clearInterval(beat);
      await rm(file, { force: true });
    },
  };
}

/** Whether a file of `beginHold` is in `folder` whose process runs. The others are removed. */
export async function isHeldBySome(folder: string): Promise<boolean> {
  let held = false;
  for (const name of await namesIn(folder)) {
    const file = join(folder, name);
    if (await isCurrent(file)) held = true;
    else await rm(file, { force: true });
  }
  return held;
}

async function isCurrent(file: string): Promise<boolean> {
  const [text, found] = await Promise.all([readFile(file, 'utf8').catch(() => ''), stat(file).catch(() => null)]);
  if (found === null || Date.now() - found.mtimeMs > SILENT_MS) return false;
  const holder = parseProcessIdentity(text);
  return holder === null || livenessOf(holder) !== 'dead';
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}
