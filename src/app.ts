import type * as StoreCopies from './adapters/lmdb/backup.ts';
import { storeFiles } from './adapters/lmdb/env/store-files.ts';
import { realpathSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ProcessChannel } from './cluster/channel.ts';
import type { Step } from './cluster/lifecycle.ts';
import type { Primary } from './cluster/primary.ts';
import type { StartWorker } from './workers/worker-process.ts';
import type { Config } from './config/schema.ts';
import type { Context } from './domain/context.ts';
import { systemClock } from './lib/clock.ts';
import { ensureFolder } from './lib/durable-files.ts';
import type { Metrics } from './observability/metrics.ts';
import type { LogOutput } from './observability/log.ts';
import type { Blobs } from './ports/blobs.ts';

// The composition root. Each function loads what it needs and no more: the primary must stay small, and a command must
// not wait for what only workers need.

/** The store, shared memory and files of a data folder, for one process; any number may have them open at once. */
export interface OpenContext {
  readonly ctx: Context;
  /** Flushes and closes both. */
  readonly close: () => Promise<void>;
}

const storePath = (config: Config): string => join(config.dataDir, 'store');
const minFreeBytes = (config: Config): number => config.storage.minFreeMb * 1024 * 1024;
const sharedPath = (config: Config): string => join(config.dataDir, 'shared');

/** What backup and restore do with whole stores, by their folders. */
export async function storeCopies(): Promise<typeof StoreCopies> {
  return import('./adapters/lmdb/backup.ts');
}

/** The files of a data folder, without its store. */
export async function openBlobs(config: Config): Promise<Blobs> {
  const { LocalBlobs } = await import('./adapters/localfiles/blobs.ts');
  return new LocalBlobs({ path: join(config.dataDir, 'files'), minFreeBytes: minFreeBytes(config) });
}

/** Opens the data folder of a configuration, and makes it where there is none. Works beside a running server. */
export async function openContext(config: Config): Promise<OpenContext> {
  const [{ openLmdbStore }, { openLmdbShared }, { FallbackShared }, { LocalMedia }, { YjsThread }, { CrdtService }] = await Promise.all([
    import('./adapters/lmdb/store.ts'),
    import('./adapters/lmdb/shared.ts'),
    import('./adapters/fallback/shared.ts'),
    import('./adapters/media/media.ts'),
    import('./adapters/yjs/yjs-thread.ts'),
    import('./domain/rooms/crdt.ts'),
  ]);
  await ensureFolder(config.dataDir);
  const store = await openLmdbStore({ path: storePath(config), minFreeBytes: minFreeBytes(config) });
  const shared = new FallbackShared(openLmdbShared({ path: sharedPath(config) }));
  const blobs = await openBlobs(config);
  const crdt = new CrdtService(new YjsThread(), config);
  return {
    ctx: { store, shared, clock: systemClock, blobs, media: new LocalMedia(), crdt },
    close: async () => {
      await crdt.close();
      await store.close();
      await shared.close();
    },
  };
}

/**
 * Starts the server as this process and its children. Wait for `ready`, then for `ended`, which gives the exit code.
 *
 * @param output where all of them log
 * @throws {StartError} when another server has the data folder, or the port cannot be had
 */
export async function startPrimary(config: Config, output: LogOutput): Promise<Primary> {
  const [{ runPrimary }, { forkWorker }] = await Promise.all([import('./cluster/primary.ts'), import('./cluster/fork.ts')]);
  const entry = workerEntry();
  await ensureFolder(config.dataDir);
  return runPrimary({
    config,
    spawn: (role) => forkWorker(entry, role, output),
    // Shared memory is never flushed, so after a power cut nobody can trust it; and what it holds is of the last run.
    prepare: () => rmSync(sharedPath(config), { recursive: true, force: true }),
    openLog: async () => (await import('./observability/log.ts')).createLogger({ level: config.log.level, name: 'primary', output }),
  });
}

/** The file that workers start from: it stands beside the one that this process was started with. */
function workerEntry(): string {
  const own = realpathSync(process.argv[1] ?? '');
  return join(dirname(own), own.endsWith('.ts') ? 'worker.ts' : 'worker.cjs');
}

/** Runs this process as the worker that the primary forked it for. */
export async function startWorker(role: string): Promise<void> {
  const { runWorkerProcess } = await import('./workers/worker-process.ts');
  if (role === 'background') (await import('./lib/process-priority.ts')).lowerPriority();
  runWorkerProcess(role === 'background' ? startBackgroundWorker : startWebWorker);
}

/** A worker that serves HTTP and WebSocket, over the line to its primary. */
export const startWebWorker: StartWorker = async ({ config, workerId, port }, channel) => {
  const [{ createLogger }, { runWebWorker }, { ipcBus }, { ctx, close }] = await Promise.all([
    import('./observability/log.ts'),
    import('./workers/web-worker.ts'),
    import('./adapters/ipc/bus.ts'),
    openContext(config),
  ]);
  const log = createLogger({ level: config.log.level, name: workerId });
  const { metrics, report } = await startMeasuring(config, channel);
  const worker = await runWebWorker({ config, ctx, bus: ipcBus(channel), log, workerId, port, metrics });
  return {
    ready: worker.ready,
    log,
    drain: (reason) => [...worker.drain(reason), report, { name: 'flush and close the store', withinMs: CLOSE_MS, run: close }],
  };
};

/** A worker that does what may be slow, over the line to its primary. */
export const startBackgroundWorker: StartWorker = async ({ config, workerId }, channel) => {
  const [{ createLogger }, { runBackgroundWorker }, { ctx, close }] = await Promise.all([
    import('./observability/log.ts'),
    import('./workers/background-worker.ts'),
    openContext(config),
  ]);
  const log = createLogger({ level: config.log.level, name: workerId });
  const { metrics, report } = await startMeasuring(config, channel);
  metrics?.gauge('lmdb_used_bytes', () => [[{}, storeFiles(storePath(config)).reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0)]]);
  const worker = runBackgroundWorker({ config, ctx, channel, log, metrics });
  return {
    ready: { port: 0, core: '', oldCore: false },
    log,
    drain: () => [...worker.drain(), report, { name: 'flush and close the store', withinMs: CLOSE_MS, run: close }],
  };
};

/** Where a worker counts, while metrics.port is set, and the last step in telling the primary. */
async function startMeasuring(config: Config, channel: ProcessChannel): Promise<{ metrics: Metrics | undefined; report: Step }> {
  const name = 'report the last measurements';
  if (config.metrics.port === 0) return { metrics: undefined, report: { name, withinMs: 0, run: () => {} } };
  const [{ Metrics }, { reportMetrics }] = await Promise.all([import('./observability/metrics.ts'), import('./cluster/metrics-reporter.ts')]);
  const metrics = new Metrics();
  return { metrics, report: { name, withinMs: 1_000, run: reportMetrics(channel, metrics) } };
}

/** What closing the store may take at most. */
const CLOSE_MS = 3_000;
