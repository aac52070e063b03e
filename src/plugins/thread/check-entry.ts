import { parentPort, workerData } from 'node:worker_threads';
import { setUp } from '../hooks.ts';
import { loadPlugin } from '../loading/load.ts';
import { setupServices } from '../services/setup-services.ts';
import { infoOf } from './info.ts';
import type { LoadedTogether } from './messages.ts';

// The entry of the thread in which a start checks all plugins side by side: it posts what each one registers. About one
// that fails it says nothing: that one is checked again by itself, since another one may be the reason.

const entries = workerData as readonly Parameters<typeof loadPlugin>[0][];

const ignore = (): void => {};
process.on('unhandledRejection', ignore);
process.on('uncaughtException', ignore);

async function check(entry: (typeof entries)[number], index: number): Promise<void> {
  const loaded = await loadPlugin(entry);
  const hooks = await setUp(loaded.plugin, setupServices);
  parentPort?.postMessage({ index, info: infoOf(loaded, hooks) } satisfies LoadedTogether);
}

await Promise.all(entries.map((entry, index) => check(entry, index).catch(ignore)));
process.exit(0);
