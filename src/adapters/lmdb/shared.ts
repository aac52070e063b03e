import type { Database as Table, RootDatabase } from 'lmdb';
import type { RateLimitResult, Shared } from '../../ports/shared.ts';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { spendFrom, type SpentBudget } from '../memory/budget.ts';
import { openLmdbEnv, SMALL_MAP_BYTES } from './env/lmdb-env.ts';
import { sharedEntries } from './shared-entries.ts';

/**
 * Prefix of the keys of budgets, which are stored with the windows: both values end with a time, by which they are
 * swept.
 */
const BUDGET = 'budget ';

/** How `openLmdbShared` opens shared memory. */
export interface LmdbSharedOptions {
  /** Folder of the memory; created if it is missing. */
  readonly path: string;
  /** The time of the memory: that of the machine, whose processes share its origin. Another one for tests. */
  readonly clock?: Pick<Clock, 'monotonic'> | undefined;
}

/**
 * Opens the shared memory of a cluster: an LMDB environment in folder `path` that is never flushed, so its content may
 * be lost with the machine. A window is a list of times, 8 bytes per hit; a budget is the time at which it is full.
 */
export function openLmdbShared({ path, clock = systemClock }: LmdbSharedOptions): Shared {
  const options = {
    path,
    noSubdir: false,
    maxDbs: 4,
    maxReaders: 1024,
    noSync: true,
    overlappingSync: false,
    compression: false,
    mapSize: SMALL_MAP_BYTES,
  };
  const { root, windows, ...tables } = openLmdbEnv(options, openTables);

  /** Runs `read` on a new snapshot and ends the snapshot. */
  const reading = <T>(read: () => T): T => {
    root.resetReadTxn();
    try {
      return read();
    } finally {
      root.resetReadTxn();
    }
  };

  const entries = sharedEntries({ root, ...tables, now: () => clock.monotonic(), reading });

  return {
    ...entries,

    async hit(key, limit, windowMs) {
      return root.transactionSync(() => {
        const now = clock.monotonic();
        const { window, hits } = countHit(windows.get(key), limit, windowMs, now);
        if (window.allowed) windows.putSync(key, hits);
        return window;
      });
    },

    async spend(key, budget) {
      const name = `${BUDGET}${key}`;
      const spent = (): SpentBudget => spendFrom(windows.get(name)?.readDoubleLE(0), budget, clock.monotonic());
      // To look at it, as before each read of a socket, is no transaction.
      if (budget.amount === 0) return reading(() => spent().window);
      return root.transactionSync(() => {
        const { window, fullAt } = spent();
        const stored = Buffer.alloc(8);
        stored.writeDoubleLE(fullAt);
        windows.putSync(name, stored);
        return window;
      });
    },

    async sweep(idleMs) {
      entries.sweep();
      const before = clock.monotonic() - idleMs;
      for (const key of reading(() => [...windows.getKeys()])) {
        root.transactionSync(() => {
          const hits = windows.get(key);
          if (hits !== undefined && hits.readDoubleLE(hits.byteLength - 8) < before) windows.removeSync(key);
        });
      }
    },

    async maintain() {
      root.readerCheck();
    },

    async close() {
      await root.close();
    },
  };
}

interface Tables {
  readonly root: RootDatabase;
  readonly windows: Table<Buffer, string>;
  readonly leases: Table<string, string>;
  readonly counts: Table<string, string>;
  readonly records: Table<string, string>;
}

function openTables(root: RootDatabase): Tables {
  return {
    root,
    windows: root.openDB('windows', { encoding: 'binary' }),
    leases: root.openDB('leases', { encoding: 'string' }),
    counts: root.openDB('counts', { encoding: 'string' }),
    records: root.openDB('records', { encoding: 'string' }),
  };
}

/**
 * Counts a hit in a list of the times of allowed hits, oldest first.
 *
 * @returns the window for the caller, and the list to store if the hit was allowed
 */
function countHit(
  stored: Buffer | undefined,
  limit: number,
  windowMs: number,
  now: number,
): { window: RateLimitResult; hits: Buffer } {
  const times = stored ?? Buffer.alloc(0);
  let expired = 0;
  while (expired < times.byteLength && times.readDoubleLE(expired) <= now - windowMs) expired += 8;
  const counted = (times.byteLength - expired) / 8;
  const oldest = counted > 0 ? times.readDoubleLE(expired) : now;
  if (counted >= limit) {
    // If there are more hits than the limit, because it was lowered, more than the oldest must expire.
    const blocking = times.readDoubleLE(expired + (counted - limit) * 8);
    return { window: { allowed: false, remaining: 0, resetMs: blocking + windowMs - now }, hits: times };
  }
  const hits = Buffer.alloc(times.byteLength - expired + 8);
  times.copy(hits, 0, expired);
  hits.writeDoubleLE(now, hits.byteLength - 8);
  return { window: { allowed: true, remaining: limit - counted - 1, resetMs: oldest + windowMs - now }, hits };
}
