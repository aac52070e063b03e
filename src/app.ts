import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Primary } from './cluster/primary.ts';
import type { StartWorker } from './cluster/worker-process.ts';
import type { Config } from './config/schema.ts';
import type { Context } from './domain/context.ts';
import { systemClock } from './lib/clock.ts';

// The composition root. Each function loads what it needs and no more: the primary must stay small, and a command must
// not wait for what only workers need.

/** The store and shared memory of a data folder, for one process; any number may have them open at once. */
export interface OpenContext {
  readonly ctx: Context;
  /** Flushes and closes both. */
  readonly close: () => Promise<void>;
}

const storePath = (config: Config): string => join(config.dataDir, 'store');
const sharedPath = (config: Config): string => join(config.dataDir, 'shared');

/** Opens the data folder of a configuration, and makes it where there is none. Works beside a running server. */
export async function openContext(config: Config): Promise<OpenContext> {
  const [{ openLmdbStore }, { openLmdbShared }] = await Promise.all([import('./adapters/lmdb/store.ts'), import('./adapters/lmdb/shared.ts')]);
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 });
  const store = await openLmdbStore({ path: storePath(config), minFreeBytes: config.storage.minFreeMb * 1024 * 1024 });
  const shared = openLmdbShared({ path: sharedPath(config) });
  return {
    ctx: { store, shared, clock: systemClock },
    close: async () => {
      await store.close();
      await shared.close();
    },
  };
}

/**
 * Starts the server as this process and its children. Wait for `ready`, then for `ended`, which gives the exit code.
 *
 * @throws {StartError} when another server has the data folder, or the port cannot be had
 */
export async function startPrimary(config: Config): Promise<Primary> {
  const [{ runPrimary }, { forkWorker }] = await Promise.all([import('./cluster/primary.ts'), import('./cluster/fork.ts')]);
  const entry = process.argv[1] ?? '';
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 });
  return runPrimary({
    config,
    spawn: (role) => forkWorker(entry, role),
    // Shared memory is never flushed, so after a power cut nobody can trust it; and what it holds is of the last run.
    prepare: () => rmSync(sharedPath(config), { recursive: true, force: true }),
    openLog: async () => (await import('./log.ts')).createLogger({ level: config.log.level, name: 'primary' }),
  });
}

/** Runs this process as the worker that the primary forked it for. */
export async function startWorker(role: string): Promise<void> {
  const { runWorkerProcess } = await import('./cluster/worker-process.ts');
  runWorkerProcess(role === 'background' ? startBackgroundWorker : startWebWorker);
}

/** A worker that serves HTTP and WebSocket, over the line to its primary. */
export const startWebWorker: StartWorker = async ({ config, workerId, port }, channel) => {
  const [{ createLogger }, { runWebWorker }, { ipcBus }, { hintLine }, { ctx, close }] = await Promise.all([
    import('./log.ts'),
    import('./cluster/web-worker.ts'),
    import('./adapters/ipc/bus.ts'),
    import('./cluster/relay.ts'),
    openContext(config),
  ]);
  const log = createLogger({ level: config.log.level, name: workerId });
  const worker = await runWebWorker({ config, ctx, bus: ipcBus(hintLine(channel)), log, workerId, port });
  return {
    ready: worker.ready,
    log,
    drain: (reason) => [...worker.drain(reason), { name: 'flush and close the store', withinMs: CLOSE_MS, run: close }],
  };
};

/** A worker that does what may be slow, over the line to its primary. */
export const startBackgroundWorker: StartWorker = async ({ config, workerId }, channel) => {
  const [{ createLogger }, { runBackgroundWorker }, { ctx, close }] = await Promise.all([
    import('./log.ts'),
    import('./cluster/background-worker.ts'),
    openContext(config),
  ]);
  const log = createLogger({ level: config.log.level, name: workerId });
  const worker = runBackgroundWorker({ config, ctx, channel, log });
  return {
    ready: { port: 0, core: '', oldCore: false },
    log,
    drain: () => [...worker.drain(), { name: 'flush and close the store', withinMs: CLOSE_MS, run: close }],
  };
};

/** What closing the store may take at most. */
const CLOSE_MS = 3_000;
