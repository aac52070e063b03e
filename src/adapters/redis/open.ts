import type { Clock } from '../../lib/clock.ts';
import { randomSecret } from '../../lib/ids.ts';
import type { EngineError } from '../../ports/engine-error.ts';
import { RedisBus } from './bus.ts';
import { connect, isOutdated } from './connect.ts';
import { openingError } from './faults.ts';
import { Link } from './link.ts';
import { RedisShared } from './shared.ts';
import { parseTarget, type Target } from './target.ts';

export interface RedisOptions {
  /** `shared.url`. */
  readonly url: string;
  /** Called with the line for the log when the server cannot be reached any more, and with null when it can again. */
  readonly onChange?: ((error: EngineError | null) => void) | undefined;
  /** Called with keys of ours that had values of another program, and were removed. */
  readonly onForeign?: ((keys: readonly string[]) => void) | undefined;
  /** The time of the memory, in place of that of the server: for tests. */
  readonly clock?: Pick<Clock, 'monotonic'> | undefined;
  /** Milliseconds until a command must have an answer: for tests. */
  readonly answerMs?: number | undefined;
  /** How often a process makes sure that it hears others, in milliseconds: for tests. */
  readonly beaconMs?: number | undefined;
}

/** `RedisOptions.beaconMs`, but in tests. */
const BEACON_MS = 5_000;

/** A Redis or Valkey that a process has opened. */
export interface OpenRedis {
  readonly shared: RedisShared;
  readonly bus: RedisBus;
  /** Ends the connections, after the calls of `shared` that were made before. */
  close(): Promise<void>;
}

/**
 * Opens shared memory and the bus, with two connections.
 *
 * @throws {EngineError} if the server cannot be used
 */
export async function openRedis(options: RedisOptions): Promise<OpenRedis> {
  const target = parseTarget(options.url, options.answerMs);
  const { link, shared } = await openMemory(target, options, () => bus.onCommandsUp());
  const bus = new RedisBus(link, () => connect(target), target.tag, options.beaconMs ?? BEACON_MS);
  const stopWatching = watchMaster(target, link, options.beaconMs ?? BEACON_MS);
  const close = async (): Promise<void> => {
    stopWatching();
    bus.close();
    await shared.close();
  };
  try {
    await bus.start();
    return { shared, bus, close };
  } catch (error) {
    await close();
    throw openingError(target, error);
  }
}

/**
 * Opens shared memory alone, with one connection: for commands.
 *
 * @throws {EngineError} if the server cannot be used
 */
export async function openRedisShared(options: RedisOptions): Promise<RedisShared> {
  return (await openMemory(parseTarget(options.url, options.answerMs), options, () => {})).shared;
}

async function openMemory(
  target: Target,
  { clock, onChange, onForeign }: RedisOptions,
  onUp: () => void,
): Promise<{ link: Link; shared: RedisShared }> {
  let isStarted = false;
  let isReported = false;
  const link = new Link(
    () => connect(target),
    (error) => {
      if (error === null && isStarted) onUp();
      // Once, not at each attempt.
      if ((error !== null) === isReported) return;
      isReported = error !== null;
      onChange?.(error === null ? null : openingError(target, error));
    },
  );
  const shared = new RedisShared(
    link,
    target.tag,
    clock === undefined ? undefined : () => String(Math.round(clock.monotonic() * 1_000)),
    onForeign,
  );
  try {
    await link.start();
    await requireRights(shared);
    isStarted = true;
    return { link, shared };
  } catch (error) {
    link.close();
    throw openingError(
      target,
      error instanceof Error && 'code' in error && error.code === 'storage_unavailable' ? error.cause : error,
    );
  }
}

/**
 * Replaces the connection for commands whenever the sentinels name another master. The one that hears follows by its
 * beacon. Returns a function that ends this.
 */
function watchMaster(target: Target, link: Link, everyMs: number): () => void {
  if (target.sentinel === undefined) return () => {};
  const timer = setInterval(() => {
    const connection = link.current;
    if (connection === undefined) return;
    void isOutdated(target, connection).then((outdated) => {
      if (outdated) connection.end(new Error('the sentinels name another master'));
    });
  }, everyMs).unref();
  return () => clearInterval(timer);
}

/** Makes every call once, so that a missing right is found at the start. */
async function requireRights(shared: RedisShared): Promise<void> {
  const key = `check-${randomSecret(9)}`;
  await Promise.all([
    shared.hit(key, 1, 1),
    shared.spend(key, { amount: 1, limit: 1, windowMs: 1 }),
    shared.beginLease(key),
    shared.count(key, key, 1),
    shared.count(key, key, -1),
    shared.put({ key, name: key, owner: key, text: '' }),
    shared.get(key, key),
    shared.list(key),
    shared.delete(key, key),
    shared.renewLease(key),
    shared.endLease(key, 0),
  ]);
}
