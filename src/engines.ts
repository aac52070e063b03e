import { join } from 'node:path';
import { hasFilesInFolder, hasStoreInFolder } from './config/engines.ts';
import type { Config } from './config/schema.ts';
import type { ProcessChannel } from './cluster/channel.ts';
import { type Clock, systemClock } from './lib/clock.ts';
import { MEGABYTE } from './lib/bytes.ts';
import type { Logger } from './observability/log.ts';
import type { Blobs } from './ports/blobs.ts';
import type { Bus } from './ports/bus.ts';
import type { Shared } from './ports/shared.ts';
import type { Store } from './ports/store.ts';
import type { StoreOperations } from './ports/store-operations.ts';
import type { StoreTransfer } from './ports/store-transfer.ts';

// Part of the composition root: opens what the configuration names. Each function imports only the adapter that it
// needs, so that a server on its own folder loads nothing of the others.

/** A store, with what only one in a folder can do. */
export interface OpenStore {
  readonly store: Store;
  readonly operations?: StoreOperations;
}

/** The folder of the store of a data folder. */
export const storePath = (config: Config): string => join(config.dataDir, 'store');
/** The folder of the shared memory of a data folder. */
export const sharedPath = (config: Config): string => join(config.dataDir, 'shared');
/** The bytes below which writes are refused. */
export const minFreeBytes = (config: Config): number => config.storage.minFreeMb * MEGABYTE;

/**
 * Opens the store.
 *
 * @param user names this process to the operators of the database
 * @param onLost called when the store turns out to be another one than was opened, such as after a failover: the process
 *   must end and open it again
 * @throws {EngineError} if it is a PostgreSQL that cannot be used, or was moved (`collab migrate`)
 */
export async function openStore(config: Config, user: string, onLost: (error: Error) => void): Promise<OpenStore> {
  if (!hasStoreInFolder(config)) {
    const { openPostgresStore } = await import('./adapters/postgres/store/store.ts');
    return { store: await openPostgresStore({ ...config.store, name: `collab ${user}`, onLost }) };
  }
  const { openLmdbStore } = await import('./adapters/lmdb/store.ts');
  const store = await openLmdbStore({ path: storePath(config), minFreeBytes: minFreeBytes(config) });
  return { store, operations: store };
}

/**
 * Opens a whole store, to be moved.
 *
 * @throws {EngineError} if it is a PostgreSQL that cannot be used
 */
export async function openTransfer(config: Config): Promise<StoreTransfer> {
  if (!hasStoreInFolder(config)) {
    const { openPostgresTransfer } = await import('./adapters/postgres/transfer/transfer.ts');
    return openPostgresTransfer(config.store);
  }
  const { openLmdbTransfer } = await import('./adapters/lmdb/transfer/transfer.ts');
  return openLmdbTransfer({ path: storePath(config), minFreeBytes: minFreeBytes(config) });
}

/** Shared memory, and the bus of a worker. */
export interface OpenMemory {
  readonly shared: Shared;
  readonly bus: Bus;
  /** Ends the connections of the bus. */
  readonly closeBus: () => Promise<void>;
}

/**
 * Opens the shared memory for a command, which needs no bus: Redis, else the PostgreSQL of the store, else the folder.
 *
 * @param clock the time of the folder, and of what counts in this process only while the memory fails. Any other than
 *   that of the system is also that of an engine
 * @throws {EngineError} if it cannot be used
 */
export async function openShared(config: Config, clock: Clock): Promise<Shared> {
  if (config.shared.url !== '') {
    const { openRedisShared } = await import('./adapters/redis/open.ts');
    return remote(await openRedisShared({ ...config.shared, clock: turned(clock) }), clock);
  }
  if (!hasStoreInFolder(config)) return remote(await openPostgresMemory(config, clock), clock);
  const [{ FallbackShared }, { openLmdbShared }] = await Promise.all([
    import('./adapters/fallback/shared.ts'),
    import('./adapters/lmdb/shared.ts'),
  ]);
  return new FallbackShared(openLmdbShared({ path: sharedPath(config), clock }), clock);
}

/** Where a worker has its bus. */
export interface WorkerOptions {
  readonly workerId: string;
  readonly channel: ProcessChannel;
  /** Whether it may subscribe to topics. */
  readonly subscribes: boolean;
  /** Where it says that other nodes cannot be heard, and when they are again. */
  readonly log: Logger;
}

/**
 * Opens the shared memory and the bus of a worker: over its primary, or between all nodes.
 *
 * @throws {EngineError} if an engine cannot be used
 */
export async function openMemory(config: Config, clock: Clock, worker: WorkerOptions): Promise<OpenMemory> {
  const { channel, log } = worker;
  if (hasStoreInFolder(config)) {
    const [{ ipcBus }, shared] = await Promise.all([import('./adapters/ipc/bus.ts'), openShared(config, clock)]);
    return { shared, bus: ipcBus(channel, worker), closeBus: () => Promise.resolve() };
  }
  if (config.shared.url === '') {
    const { openPostgresBus } = await import('./adapters/postgres/bus/bus.ts');
    const onTrouble = (message: string | null): void => {
      if (message === null) log.info('messages between nodes arrive');
      else log.warn({ option: 'store.url' }, message);
    };
    const [shared, bus] = await Promise.all([
      openPostgresMemory(config, clock),
      openPostgresBus({ option: 'store.url', url: config.store.url, subscribes: worker.subscribes, onTrouble }),
    ]);
    return { shared: await remote(shared, clock), bus, closeBus: () => bus.close() };
  }
  const { openRedis } = await import('./adapters/redis/open.ts');
  const { shared, bus } = await openRedis({
    ...config.shared,
    clock: turned(clock),
    onChange: (error) => {
      if (error !== null)
        log.warn({ option: error.option }, `${error.message}; limits and presence are partial meanwhile`);
      else log.info({ option: 'shared.url' }, 'the shared memory can be reached again');
    },
    onForeign: (keys) =>
      log.warn(
        { option: 'shared.url', keys },
        'keys in Redis had values of another program and were removed; give Collab a database or a prefix of its own',
      ),
  });
  return { shared: await remote(shared, clock), bus, closeBus: () => Promise.resolve(bus.close()) };
}

async function openPostgresMemory({ store }: Config, clock: Clock): Promise<Shared> {
  const { openPostgresShared } = await import('./adapters/postgres/shared/shared.ts');
  const now = turned(clock) === undefined ? undefined : () => clock.monotonic();
  return openPostgresShared({ option: 'store.url', url: store.url, now });
}

/** The clock that a test turns; undefined for that of the system, in whose place the memory has its own. */
function turned(clock: Clock): Clock | undefined {
  return clock === systemClock ? undefined : clock;
}

async function remote(shared: Shared, clock: Clock): Promise<Shared> {
  const { RemoteShared } = await import('./adapters/fallback/remote-shared.ts');
  return new RemoteShared(shared, clock);
}

/**
 * Opens the uploaded files.
 *
 * @throws {EngineError} if they are in a bucket that cannot be used
 */
export async function openBlobs(config: Config): Promise<Blobs> {
  if (!hasFilesInFolder(config)) {
    const { openS3Blobs } = await import('./adapters/s3/open.ts');
    const staging = { folder: join(config.dataDir, 'staging'), minFreeBytes: minFreeBytes(config) };
    return openS3Blobs({ ...config.blobs, staging, env: process.env });
  }
  const { LocalBlobs } = await import('./adapters/localfiles/blobs.ts');
  return new LocalBlobs({ path: join(config.dataDir, 'files'), minFreeBytes: minFreeBytes(config) });
}
