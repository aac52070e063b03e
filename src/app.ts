import { realpathSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { MEGABYTE } from './lib/bytes.ts';
import type { CompactionOptions, CompactionResult } from './adapters/lmdb/compaction.ts';
import { findLockHolders } from './adapters/lmdb/env/lock-holders.ts';
import { storeFiles } from './adapters/lmdb/env/store-files.ts';
import type { ProcessChannel } from './cluster/channel.ts';
import type { ShutdownStep } from './cluster/shutdown.ts';
import type { Primary } from './cluster/primary.ts';
import type { LoadPlugins } from './workers/background/background-work.ts';
import type { StartWorker } from './workers/worker-process.ts';
import type { Config } from './config/schema.ts';
import type { Context } from './domain/context.ts';
import { type Clock, systemClock } from './lib/clock.ts';
import { ensureFolder } from './lib/files/durable-files.ts';
import { killIfFileOpen } from './lib/files/open-files.ts';
import type { Metrics } from './observability/metrics.ts';
import type { Logger, LogOutput } from './observability/log.ts';
import type { Blobs } from './ports/blobs.ts';
import type { LockHolder, StoreCopies } from './ports/store-operations.ts';

// The composition root. Each function imports only what it needs: the primary must stay small, and a command must not
// load what only workers need.

/** The store, shared memory and files of a data folder. Any number of processes may have them open at once. */
export interface OpenContext {
  readonly ctx: Context;
  /** Flushes and closes the store and shared memory. */
  readonly close: () => Promise<void>;
}

/** The only node of a store that is a folder: whoever holds the lock of the folder, whose other processes have ended. */
const FOLDER_NODE = 'folder';

const storePath = (config: Config): string => join(config.dataDir, 'store');
const minFreeBytes = (config: Config): number => config.storage.minFreeMb * MEGABYTE;
const sharedPath = (config: Config): string => join(config.dataDir, 'shared');
const codeCachePath = (config: Config, role: string): string => join(config.dataDir, 'cache', `${role}.bin`);

/** The functions of backup and restore that work on store folders. */
export async function storeCopies(): Promise<StoreCopies> {
  return import('./adapters/lmdb/backup.ts');
}

/** Opens the files of a data folder, without its store. */
export async function openBlobs(config: Config): Promise<Blobs> {
  const { LocalBlobs } = await import('./adapters/localfiles/blobs.ts');
  return new LocalBlobs({ path: join(config.dataDir, 'files'), minFreeBytes: minFreeBytes(config) });
}

/**
 * Opens the data folder of a configuration, and creates it if it does not exist. Works while a server is running.
 *
 * @param clock the time of the server; tests pass one that they turn
 */
export async function openContext(config: Config, clock: Clock = systemClock): Promise<OpenContext> {
  const [{ openLmdbStore }, { openLmdbShared }, { FallbackShared }, { LocalMedia }, { YjsThread }, { CrdtService }] =
    await Promise.all([
      import('./adapters/lmdb/store.ts'),
      import('./adapters/lmdb/shared.ts'),
      import('./adapters/fallback/shared.ts'),
      import('./adapters/media/media.ts'),
      import('./adapters/yjs/yjs-thread.ts'),
      import('./domain/rooms/crdt.ts'),
    ]);
  await ensureFolder(config.dataDir);
  const store = await openLmdbStore({ path: storePath(config), minFreeBytes: minFreeBytes(config) });
  const shared = new FallbackShared(openLmdbShared({ path: sharedPath(config), clock }), clock);
  const blobs = await openBlobs(config);
  const crdt = new CrdtService(new YjsThread(), config);
  return {
    ctx: { store, operations: store, shared, clock, blobs, media: new LocalMedia(), crdt },
    close: async () => {
      await crdt.close();
      await store.close();
      await shared.close();
    },
  };
}

/**
 * Starts the server as this process and its children. Wait for `ready`, then for `ended`, which resolves with the exit
 * code.
 *
 * @param output where all processes log
 * @throws {StartError} if another server uses the data folder, or the port cannot be used
 */
export async function startPrimary(config: Config, output: LogOutput): Promise<Primary> {
  const [{ runPrimary }, { forkWorker }, { WorkerGuard }] = await Promise.all([
    import('./cluster/primary.ts'),
    import('./cluster/fork.ts'),
    import('./cluster/worker-guard.ts'),
  ]);
  const guard = new WorkerGuard();
  const entry = workerEntry();
  const openLog = async (): Promise<Logger> =>
    (await import('./observability/log.ts')).createLogger({ level: config.log.level, name: 'primary', output });
  await ensureFolder(config.dataDir);
  return runPrimary({
    config,
    spawn: (role) => guard.watch(forkWorker(entry, role, output, codeCachePath(config, role))),
    prepare: async () => {
      // Shared memory is never flushed, so after a power cut it may be damaged; and its contents belong to the last
      // run.
      rmSync(sharedPath(config), { recursive: true, force: true });
      await compactWhenDue(config, openLog);
    },
    openLog,
    lockHolders: { find: () => findLockHoldersOf(config), kill: ({ pid, file }) => killIfFileOpen(pid, file) },
  });
}

/** As `readStoreFiles` of adapters/lmdb/file-faults.ts. */
export async function readFilesOfStore(config: Config): Promise<string | null> {
  const { readStoreFiles } = await import('./adapters/lmdb/file-faults.ts');
  return readStoreFiles(storePath(config));
}

/**
 * The processes that hold a lock of the store or of the shared memory of a data folder at the moment. Opens neither.
 */
export function findLockHoldersOf(config: Config): LockHolder[] {
  return [storePath(config), sharedPath(config)].flatMap(findLockHolders);
}

/** Compacts the store of a data folder that no server uses. See `compactStore`. */
export async function compact(
  config: Config,
  onlyWhenDue: CompactionOptions['onlyWhenDue'],
): Promise<CompactionResult> {
  const { compactStore } = await import('./adapters/lmdb/compaction.ts');
  return compactStore(storePath(config), { onlyWhenDue, minFreeBytes: minFreeBytes(config) });
}

/**
 * Compacts the store before the workers start, if that is due. A failure is logged and does not keep the server from
 * starting.
 */
async function compactWhenDue(config: Config, openLog: () => Promise<Logger>): Promise<void> {
  const { isCompactable } = await import('./adapters/lmdb/env/store-files.ts');
  if (!isCompactable(storePath(config))) return;
  try {
    const result = await compact(config, true);
    if (result.outcome !== 'not due')
      (await openLog()).info(result, 'compaction of the store, most of whose file is free space');
  } catch (error) {
    (await openLog()).warn(
      { err: error },
      'the store could not be compacted; the server starts with the file as it is',
    );
  }
}

/** The file that workers start from, next to the one that this process was started from. */
function workerEntry(): string {
  const own = realpathSync(process.argv[1] ?? '');
  return join(dirname(own), own.endsWith('.ts') ? 'worker.ts' : 'worker.cjs');
}

/** Runs this process as a worker of the given role. */
export async function startWorker(role: string): Promise<void> {
  const { runWorkerProcess } = await import('./workers/worker-process.ts');
  if (role === 'background') (await import('./lib/process/process-priority.ts')).lowerPriority();
  runWorkerProcess(role === 'background' ? startBackgroundWorker : startWebWorker);
}

/** Starts a web worker, which serves HTTP and WebSocket. */
export const startWebWorker: StartWorker = async ({ config, workerId, owner, port }, channel) => {
  const [{ createLogger }, { startTraces }, { runWebWorker }, { ipcBus }, { ctx, close }] = await Promise.all([
    import('./observability/log.ts'),
    import('./observability/traces.ts'),
    import('./workers/web-worker.ts'),
    import('./adapters/ipc/bus.ts'),
    openContext(config),
  ]);
  const log = createLogger({ level: config.log.level, name: workerId });
  const { metrics, report } = await startMetrics(config, channel, workerId);
  const traces = await startTraces({ variables: process.env, log, worker: workerId });
  const sendTraces: ShutdownStep = { name: 'send the last traces', withinMs: TRACES_MS, run: () => traces?.close() };
  const plugins = await (await import('./workers/web-plugins.ts')).requireWebPlugins({ ctx, config, log, metrics });
  const { countMissingPlugins } = await import('./workers/missing-plugins.ts');
  const { watchBackgroundWorker } = await import('./workers/background-state.ts');
  const states = {
    missingPlugins: countMissingPlugins(plugins.missing, channel),
    backgroundFailing: watchBackgroundWorker(channel),
  };
  const worker = await runWebWorker({
    config,
    ctx: plugins.filters === undefined ? ctx : { ...ctx, filters: plugins.filters },
    bus: ipcBus(channel),
    log,
    owner,
    port,
    metrics,
    traces,
    plugins,
    ...states,
  });
  return {
    ready: worker.ready,
    log,
    pluginOfError: plugins.pluginInStack,
    drain: (reason) => [
      ...worker.drain(reason),
      { name: 'end the threads of plugins', withinMs: 1_000, run: () => plugins.close() },
      report,
      sendTraces,
      { name: 'flush and close the store', withinMs: CLOSE_MS, run: close },
    ],
  };
};

/** Starts the background worker, which does slow work. */
export const startBackgroundWorker: StartWorker = async ({ config, workerId, startedAt }, channel) => {
  const [{ createLogger }, { runBackgroundWorker }, { ipcBus }, { ctx, close }] = await Promise.all([
    import('./observability/log.ts'),
    import('./workers/background-worker.ts'),
    import('./adapters/ipc/bus.ts'),
    openContext(config),
  ]);
  const log = createLogger({ level: config.log.level, name: workerId });
  const { metrics, report } = await startMetrics(config, channel, workerId);
  metrics?.gauge('lmdb_used_bytes', () => [
    [
      {},
      storeFiles(storePath(config)).reduce(
        (sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0),
        0,
      ),
    ],
  ]);
  const { BackgroundPlugins } = await import('./plugins/background/background-plugins.ts');
  const loadPlugins: LoadPlugins = async (workCtx, confirm) => {
    const plugins = await BackgroundPlugins.load({ ctx: workCtx, config, log, metrics, confirm });
    channel.send({ type: 'missingPlugins', data: { uses: plugins.missing } });
    return plugins;
  };
  const worker = runBackgroundWorker({
    config,
    ctx,
    bus: ipcBus(channel, { subscribes: false }),
    channel,
    log,
    startedAt,
    holder: { node: FOLDER_NODE, worker: workerId },
    metrics,
    loadPlugins,
  });
  await worker.started;
  return {
    ready: { port: 0, core: '', coreReason: '', oldCore: false },
    log,
    failed: worker.failed,
    drain: () => [...worker.drain(), report, { name: 'flush and close the store', withinMs: CLOSE_MS, run: close }],
  };
};

/** Creates a worker's metrics if metrics.port is set, and the shutdown step that reports them a last time. */
async function startMetrics(
  config: Config,
  channel: ProcessChannel,
  workerId: string,
): Promise<{ metrics: Metrics | undefined; report: ShutdownStep }> {
  const name = 'report the last metrics';
  if (config.metrics.port === 0) return { metrics: undefined, report: { name, withinMs: 0, run: () => {} } };
  const [{ Metrics }, { meterProcess }, { reportMetrics }] = await Promise.all([
    import('./observability/metrics.ts'),
    import('./observability/process-metrics.ts'),
    import('./cluster/metrics-reporter.ts'),
  ]);
  const metrics = new Metrics();
  meterProcess(metrics, workerId);
  return { metrics, report: { name, withinMs: 1_000, run: reportMetrics(channel, metrics) } };
}

/** How long sending the last traces may take. */
const TRACES_MS = 1_000;
/** How long closing the store may take. */
const CLOSE_MS = 3_000;
