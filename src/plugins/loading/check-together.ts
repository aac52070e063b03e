import { Worker } from 'node:worker_threads';
import type { PluginEntry } from '../../config/plugin-entries.ts';
import { withTimeout } from '../../lib/concurrency/deadline.ts';
import type { LoadedTogether, PluginInfo } from '../thread/messages.ts';

/** How long the plugins may take together. What has not loaded by then is checked by itself. */
const TOGETHER_MS = 10_000;

/**
 * Loads plugins side by side in one thread and runs their setup, which takes a fraction of what a thread for each one
 * does. Returns what they register, in the order of the entries: null for one that failed, and for those that had not
 * loaded when the thread ended or the time had passed. Never rejects.
 */
export async function checkTogether(entries: readonly PluginEntry[]): Promise<readonly (PluginInfo | null)[]> {
  const infos: (PluginInfo | null)[] = entries.map(() => null);
  const thread = new Worker(threadFile(), { workerData: entries, stdout: true, stderr: true });
  const ended = new Promise<void>((resolve) => {
    thread.on('message', ({ index, info }: LoadedTogether) => (infos[index] = info));
    thread.on('error', () => resolve());
    thread.on('exit', () => resolve());
  });
  await withTimeout(TOGETHER_MS, ended, () => undefined);
  await thread.terminate();
  return [...infos];
}

/** As the thread of a plugin, always the built file. */
function threadFile(): URL {
  return new URL(
    import.meta.url.endsWith('.ts') ? '../../../dist/threads/check.js' : '../threads/check.js',
    import.meta.url,
  );
}
