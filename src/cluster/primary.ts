import { availableParallelism } from 'node:os';
import { isLoopback } from '../lib/addresses/loopback.ts';
import type { Config } from '../config/schema.ts';
import { systemClock } from '../lib/clock.ts';
import type { Logger } from '../observability/log.ts';
import type { LockHolders } from '../ports/store-operations.ts';
import { coreLine } from './core-line.ts';
import { ExitCode, StartError } from './exit.ts';
import { findFreePort } from './free-port.ts';
import { type DataLock, lockDataFolder } from './data-folder-lock.ts';
import { withReserve } from './disk-reserve.ts';
import type { Role } from './messages.ts';
import type { MetricsServer } from './metrics-server.ts';
import { Supervisor } from './supervisor.ts';
import type { Spawn, WorkerProcess } from './worker.ts';

/** How long the workers of a killed primary may take to release the port. */
const ORPHANS_MS = 3_000;

/** Options of a primary. */
export interface PrimaryOptions {
  readonly config: Config;
  readonly spawn: Spawn;
  /** Prepares the data folder once it is locked, before anything in it is opened. */
  readonly prepare: () => Promise<void>;
  /** Loads the logger while the workers start. */
  readonly openLog: () => Promise<Logger>;
  /** The processes that hold locks of the store; undefined if it has none that processes of this machine can hold. */
  readonly lockHolders: LockHolders | undefined;
}

/** The report of a server that is ready. */
export interface Ready {
  readonly url: string;
  readonly port: number;
  readonly webWorkers: number;
  /** File of the native HTTP core, or `node`. */
  readonly core: string;
  /** Why it is not the native core; '' if it is. */
  readonly coreReason: string;
}

/** A running server, as seen by the process that was started. */
export interface Primary {
  /**
   * Resolves once all workers serve; with null if the server was stopped before that.
   * Rejects with a `StartError` if the server cannot start; all its processes have then ended or been killed.
   */
  readonly ready: Promise<Ready | null>;
  /** Resolves with the exit code once everything has ended. Never rejects. */
  readonly ended: Promise<number>;
  /** Drains and ends, as on SIGTERM. */
  stop(): Promise<void>;
}

/**
 * Locks the data folder, checks the port, starts the workers and supervises them. SIGTERM or SIGINT drains them; a
 * second one ends at once. SIGHUP replaces the web workers one by one. Opens no store and parses no request.
 *
 * @throws {StartError} if the folder is in use or the port cannot be used
 */
export async function runPrimary(options: PrimaryOptions): Promise<Primary> {
  const { config, prepare } = options;
  const lock = await withReserve(config.dataDir, () => lockDataFolder(config.dataDir));
  let metrics: MetricsServer | null = null;
  try {
    const port = await findFreePort(config.host, config.port, lock.tookOver ? ORPHANS_MS : 0);
    if (config.metrics.port !== 0) metrics = await (await import('./metrics-server.ts')).openMetrics(config.metrics);
    await prepare();
    return await supervise(options, port, lock, metrics);
  } catch (error) {
    metrics?.close();
    lock.release();
    throw error;
  }
}

async function supervise(
  { config, spawn, openLog, lockHolders }: PrimaryOptions,
  port: number,
  lock: DataLock,
  metrics: MetricsServer | null,
): Promise<Primary> {
  const webWorkers = config.workers === 'auto' ? availableParallelism() : config.workers;
  const spawned = spawnAll(spawn, webWorkers);
  const log = await openLog();
  const supervisor = new Supervisor({
    config,
    port,
    webWorkers,
    clock: systemClock,
    log,
    totals: metrics?.totals ?? null,
    ...(lockHolders === undefined ? {} : { lockHolders }),
    spawn: (role) => spawned[role].pop() ?? spawn(role),
  });

  let stopping = false;
  const { promise: ended, resolve: end } = deferred<number>();
  const stop = async (): Promise<void> => {
    if (stopping) return;
    stopping = true;
    log.info('stopping: finishing requests and closing sockets');
    await supervisor.stop();
    stopSignals();
    metrics?.close();
    lock.release();
    log.info('stopped');
    end(ExitCode.intended);
  };
  const stopSignals = onSignals({
    end: () => {
      if (!stopping) return void stop();
      supervisor.kill();
      lock.release();
      process.exit(ExitCode.intended);
    },
    roll: () => void supervisor.roll(),
  });
  process.once('exit', () => lock.release());

  const ready = supervisor.start().then(
    ({ core, coreReason, oldCore }): Ready | null => {
      // The workers may become ready before they get the order to drain.
      if (stopping) return null;
      const facts = { url: urlOf(config.host, port), port, webWorkers, core };
      log.info({ ...facts, node: process.versions.node, dataDir: config.dataDir }, 'ready');
      if (coreReason !== '') log[config.core === 'auto' ? 'warn' : 'info'](coreLine(coreReason));
      if (oldCore && isExposed(config)) {
        log.warn(
          { host: config.host },
          'the HTTP core for Node 20 is reachable from other machines and must not be exposed without a proxy: ' +
            'put a proxy in front and list it in trustProxy (docs/deploy), or run on Node 24',
        );
      }
      if (config.turn.urls.length === 0)
        log.warn(
          'turn.urls is empty: peer-to-peer sync will not work between browsers behind strict firewalls; add ' +
            'TURN servers to turn.urls if you need it',
        );
      return { ...facts, coreReason };
    },
    (error: unknown) => {
      supervisor.kill();
      stopSignals();
      metrics?.close();
      lock.release();
      end(error instanceof StartError ? error.exitCode : ExitCode.failure);
      throw error;
    },
  );
  return { ready: Promise.race([ready, ended.then(() => null)]), ended, stop };
}

/** Whether hosts other than this machine and the configured proxies can connect. */
function isExposed({ host, trustProxy }: Config): boolean {
  return !isLoopback(host) && trustProxy.length === 0;
}

/** Spawns all workers before this process loads anything else, because they take long to boot. */
function spawnAll(spawn: Spawn, webWorkers: number): Record<Role, WorkerProcess[]> {
  return { web: Array.from({ length: webWorkers }, () => spawn('web')), background: [spawn('background')] };
}

function onSignals({ end, roll }: { end: () => void; roll: () => void }): () => void {
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
  process.on('SIGHUP', roll);
  return () => {
    process.off('SIGTERM', end);
    process.off('SIGINT', end);
    process.off('SIGHUP', roll);
  };
}

function urlOf(host: string, port: number): string {
  const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`;
}

function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((done) => (resolve = done));
  return { promise, resolve };
}
