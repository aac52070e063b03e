import { randomBytes } from 'node:crypto';
import { readdir, readFile, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { ensureFolder, writeDurably } from '../../lib/durable-files.ts';
import { livenessOf, currentProcess, parseProcessIdentity } from '../../lib/process-identity.ts';
import type { BlobHold } from '../../ports/blobs.ts';
import { isMissing } from './staged-file.ts';

const HEARTBEAT_MS = 15_000;
const EXPIRY_MS = 5 * 60_000;

/**
 * Creates a hold: a file in `folder` (created if it is missing) that identifies this process and is touched periodically
 * until the hold is released.
 */
export async function createHold(folder: string): Promise<BlobHold> {
  await ensureFolder(folder);
  const file = join(folder, randomBytes(12).toString('hex'));
  await writeDurably(file, JSON.stringify(currentProcess()));
  // If the file is gone, another process has removed it as expired: the blobs may be gone too, so it is not created again.
  const heartbeat = setInterval(() => void utimes(file, new Date(), new Date()).catch(() => clearInterval(heartbeat)), HEARTBEAT_MS);
  heartbeat.unref();
  return {
    async release() {
      clearInterval(heartbeat);
      await rm(file, { force: true });
    },
  };
}

/** Whether `folder` has a hold of a running process. Removes expired holds and those of ended processes. */
export async function hasHold(folder: string): Promise<boolean> {
  let found = false;
  for (const name of await namesIn(folder)) {
    const file = join(folder, name);
    if (await isCurrent(file)) found = true;
    else await rm(file, { force: true });
  }
  return found;
}

async function isCurrent(file: string): Promise<boolean> {
  const [text, found] = await Promise.all([readFile(file, 'utf8').catch(() => ''), stat(file).catch(() => null)]);
  if (found === null || Date.now() - found.mtimeMs > EXPIRY_MS) return false;
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
