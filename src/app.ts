import { realpathSync, rmSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import type { CompactionOptions, CompactionResult } from './adapters/lmdb/compaction.ts';
import { findLockHolders } from './adapters/lmdb/env/lock-holders.ts';
import { storeFiles } from './adapters/lmdb/env/store-files.ts';
import type { ProcessChannel } from './cluster/channel.ts';
import type { ShutdownStep } from './cluster/shutdown.ts';
import type { Role } from './cluster/messages.ts';
import type { Primary } from './cluster/primary.ts';
import type { WorkerProcess } from './cluster/worker.ts';
import type { LoadPlugins } from './workers/background/background-work.ts';
import type { StartWorker } from './workers/worker-process.ts';
import { hasStoreInFolder } from './config/engines.ts';
import type { Config } from './config/schema.ts';
import type { Context } from './domain/context.ts';
import type { NodeFacts } from './domain/nodes.ts';
import {
  minFreeBytes,
  openBlobs,
  openMemory,
  type OpenMemory,
  openShared,
  openStore,
  sharedPath,
  storePath,
  type WorkerOptions,
} from './engines.ts';
import { type Clock, systemClock } from './lib/clock.ts';
import { ensureFolder } from './lib/files/durable-files.ts';
import { killIfFileOpen } from './lib/files/open-files.ts';
import type { Metrics } from './observability/metrics.ts';
import type { Logger, LogOutput } from './observability/log.ts';
import type { Blobs } from './ports/blobs.ts';
import type { Shared } from './ports/shared.ts';
import type { LockHolder, StoreCopies } from './ports/store-operations.ts';

// The composition root. Each function imports only what it needs: the primary must stay small, and a command must not
// load what only workers need.

/** The store, shared memory and files of a data folder. Any number of processes may have them open at once. */
export interface OpenContext {
  readonly ctx: Context;
  /** Flushes and closes the store and shared memory. */
  readonly close: () => Promise<void>;
}

const codeCachePath = (config: Config, role: string): string => join(config.dataDir, 'cache', `${role}.bin`);

/** The functions of backup and restore that work on store folders. */
export async function storeCopies(): Promise<StoreCopies> {
  return import('./adapters/lmdb/backup.ts');
}

/**
 * Opens the data folder of a configuration, and creates it if it does not exist, and the engines that it names. Works
 * while servers are running.
 *
 * @param clock the time of the server; tests pass one that they turn
 * @throws {EngineError} if an engine cannot be used
 */
export async function openContext(config: Config, clock: Clock = systemClock): Promise<OpenContext> {
  return openWith(config, clock, 'command', async () => ({ shared: await openShared(config, clock) }));
}

/**
 * As `openContext`, with the bus of a worker. Tests give it a channel to a relay of their own. `lost` resolves when the
 * worker must end, because the store turned out to be another one than was opened.
 */
export async function openWorkerContext(
  config: Config,
  worker: WorkerOptions,
  clock: Clock = systemClock,
): Promise<OpenContext & Pick<OpenMemory, 'bus'> & { readonly lost: Promise<Error> }> {
  const opened = await openWith(config, clock, worker.workerId, () => openMemory(config, clock, worker));
  const close = async (): Promise<void> => {
    await opened.close();
    await opened.closeBus();
  };
  return { ...opened, close };
}

async function openWith<T extends { readonly shared: Shared }>(
  config: Config,
  clock: Clock,
  user: string,
  openMemoryOf: () => Promise<T>,
): Promise<OpenContext & Omit<T, 'shared'> & { readonly lost: Promise<Error> }> {
  const [{ LocalMedia }, { YjsThread }, { CrdtService }] = await Promise.all([
    import('./adapters/media/media.ts'),
    import('./adapters/yjs/yjs-thread.ts'),
    import('./domain/rooms/crdt.ts'),
  ]);
  await ensureFolder(config.dataDir);
  let onLost: (error: Error) => void = () => {};
  const lost = new Promise<Error>((resolve) => (onLost = resolve));
  const { store, operations } = await openStore(config, user, onLost);
  let memory: T | undefined;
  let blobs: Blobs;
  try {
    memory = await openMemoryOf();
    blobs = await openBlobs(config);
  } catch (error) {
    await Promise.allSettled([store.close(), memory?.shared.close()]);
    throw error;
  }
  const { shared, ...rest } = memory;
  const crdt = new CrdtService(new YjsThread(), config);
  return {
    ...rest,
    lost,
    ctx: { store, operations, shared, clock, blobs, media: new LocalMedia(), crdt },
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
  const [{ runPrimary }, { forkWorker, SEMI_SPACE_MB }, { WorkerGuard }] = await Promise.all([
    import('./cluster/primary.ts'),
    import('./cluster/fork.ts'),
    import('./cluster/worker-guard.ts'),
  ]);
  const guard = new WorkerGuard();
  const entry = workerEntry();
  const openLog = async (): Promise<Logger> =>
    (await import('./observability/log.ts')).createLogger({ level: config.log.level, name: 'primary', output });
  await ensureFolder(config.dataDir);
  const isInFolder = hasStoreInFolder(config);
  const semiSpaceMb = isInFolder ? SEMI_SPACE_MB.local : SEMI_SPACE_MB.remote;
  const spawn = (role: Role): WorkerProcess =>
    guard.watch(forkWorker({ entry, role, output, codeCache: codeCachePath(config, role), semiSpaceMb }));
  return runPrimary({
    config,
    spawn,
    prepare: async () => {
      if (!isInFolder) return;
      // Shared memory is never flushed, so after a power cut it may be damaged; and its contents belong to the last
      // run.
      rmSync(sharedPath(config), { recursive: true, force: true });
      await compactWhenDue(config, openLog);
    },
    openLog,
    lockHolders: isInFolder
      ? { find: () => findLockHoldersOf(config), kill: ({ pid, file }) => killIfFileOpen(pid, file) }
      : undefined,
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
export const startWebWorker: StartWorker = async (
  { config, workerId, owner, node, port, startedAt },
  channel,
  stop,
) => {
  const log = (await import('./observability/log.ts')).createLogger({ level: config.log.level, name: workerId });
  const [{ startTraces }, { runWebWorker }, { version }, { ctx, bus, lost, close }] = await Promise.all([
    import('./observability/traces.ts'),
    import('./workers/web-worker.ts'),
    import('./model/version.ts'),
    openWhenReachable(config, { workerId, channel, log, subscribes: true }, stop),
  ]);
  const facts: NodeFacts = { node, worker: workerId, host: hostname(), version, startedAt };
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
    bus,
    log,
    owner,
    node: hasStoreInFolder(config) ? undefined : facts,
    port,
    metrics,
    traces,
    plugins,
    ...states,
  });
  return {
    ready: worker.ready,
    log,
    failed: lost,
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
export const startBackgroundWorker: StartWorker = async ({ config, workerId, node, startedAt }, channel, stop) => {
  const isInFolder = hasStoreInFolder(config);
  const log = (await import('./observability/log.ts')).createLogger({ level: config.log.level, name: workerId });
  const [{ runBackgroundWorker }, { FOLDER_NODE }, { ctx, bus, lost, close }] = await Promise.all([
    import('./workers/background-worker.ts'),
    import('./domain/leases/leases.ts'),
    openWhenReachable(config, { workerId, channel, log, subscribes: false }, stop),
  ]);
  const { metrics, report } = await startMetrics(config, channel, workerId);
  if (isInFolder) metrics?.gauge('lmdb_used_bytes', () => [[{}, sizeOfStore(config)]]);
  const { BackgroundPlugins } = await import('./plugins/background/background-plugins.ts');
  const loadPlugins: LoadPlugins = async (workCtx, confirm) => {
    const plugins = await BackgroundPlugins.load({ ctx: workCtx, config, log, metrics, confirm });
    channel.send({ type: 'missingPlugins', data: { uses: plugins.missing } });
    return plugins;
  };
  const worker = runBackgroundWorker({
    config,
    ctx,
    bus,
    channel,
    log,
    startedAt,
    holder: { node: isInFolder ? FOLDER_NODE : node, worker: workerId },
    metrics,
    loadPlugins,
  });
  await worker.started;
  return {
    ready: { port: 0, core: '', coreReason: '', oldCore: false },
    log,
    failed: Promise.race([worker.failed, lost]),
    drain: () => [...worker.drain(), report, { name: 'flush and close the store', withinMs: CLOSE_MS, run: close }],
  };
};

/** Opens what a worker needs. Waits for an engine that cannot be reached now: a worker must not end for that. */
async function openWhenReachable(
  config: Config,
  worker: WorkerOptions,
  stop: AbortSignal,
): ReturnType<typeof openWorkerContext> {
  const { whenReachable } = await import('./workers/reachable.ts');
  return whenReachable(() => openWorkerContext(config, worker), worker.log, stop);
}

/** The bytes that the files of the store take. */
function sizeOfStore(config: Config): number {
  return storeFiles(storePath(config)).reduce(
    (sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0),
    0,
  );
}

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
