import { type ChildProcess, spawn } from 'node:child_process';
import { findLockHoldersOf } from '../../app.ts';
import type { Config } from '../../config/schema.ts';
import { processInfo } from '../../lib/process/process-info.ts';
import { DataError } from '../../model/errors.ts';
import type { LockHolder } from '../../ports/store-operations.ts';
import { interruptible } from '../terminal/interruption.ts';

/**
 * For how long the same process must be seen with the same lock, while the store cannot be opened, until it counts as
 * blocking it.
 */
const HELD_MS = 4_000;
const POLL_MS = 100;

/** The result of opening a store in another process. */
export type StoreTrial =
  | { readonly outcome: 'ended' }
  /** The process was ended by a signal: a damaged file can do that. */
  | { readonly outcome: 'crashed'; readonly signal: NodeJS.Signals }
  /** Another process keeps a lock, so that the store cannot be opened. */
  | { readonly outcome: 'blocked'; readonly holder: LockHolder };

/**
 * Opens the store of a folder in another process first: a damaged file can crash that, and a lock that another process
 * keeps would block this one, so that it could not even react to a signal.
 *
 * @throws {InterruptedError} on SIGINT or SIGTERM
 */
export async function tryStore(dir: string, config: Config): Promise<StoreTrial> {
  const args = [...process.execArgv, process.argv[1] ?? '', 'env', 'list', '--json', '--dir', dir];
  return interruptible(async (signal) => {
    const child = spawn(process.execPath, args, { stdio: 'ignore', signal, killSignal: 'SIGKILL' });
    const watch = new AbortController();
    try {
      return await Promise.race([endOf(child), blocked(config, [child.pid], watch.signal)]);
    } finally {
      watch.abort();
      child.kill('SIGKILL');
    }
  });
}

/**
 * As `tryStore`, if another process has a lock of the store now. The lock of a healthy process is free again in
 * milliseconds.
 *
 * @throws {DataError} if a process keeps the store from being opened
 * @throws {InterruptedError} on SIGINT or SIGTERM
 */
export async function requireFreeStore(dir: string, config: Config): Promise<void> {
  if (findLockHoldersOf(config).length === 0) return;
  const trial = await tryStore(dir, config);
  if (trial.outcome === 'blocked') throw new DataError(...describeBlocked(trial.holder));
}

/** The finding about a process that keeps a lock, and what to do. */
export function describeBlocked({ pid, file }: LockHolder): [finding: string, remedy: string] {
  const { command, stopped } = processInfo(pid);
  const about = [command, stopped ? 'stopped' : null].filter((part) => part !== null).join(', ');
  const remedy = stopped
    ? `Resume it: kill -CONT ${pid}; or end it: kill -KILL ${pid}`
    : `Find out what the process is waiting for, or end it: kill -KILL ${pid}. A worker of a running server is replaced.`;
  return [
    `The store cannot be opened: process ${pid}${about === '' ? '' : ` (${about})`} has kept its lock ${file} for ${HELD_MS / 1_000} s, so that no write succeeds`,
    remedy,
  ];
}

function endOf(child: ChildProcess): Promise<StoreTrial> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (_code, signal) =>
      resolve(signal === null ? { outcome: 'ended' } : { outcome: 'crashed', signal }),
    );
  });
}

/**
 * Resolves when a process other than those given has been seen with the same lock for `HELD_MS`; never after `signal`.
 */
function blocked(config: Config, except: readonly (number | undefined)[], signal: AbortSignal): Promise<StoreTrial> {
  return new Promise((resolve) => {
    let heldSince = new Map<string, number>();
    const timer = setInterval(() => {
      const now = performance.now();
      const seen = new Map<string, number>();
      for (const holder of findLockHoldersOf(config)) {
        if (except.includes(holder.pid)) continue;
        const key = `${holder.pid} ${holder.file}`;
        const since = heldSince.get(key) ?? now;
        seen.set(key, since);
        if (now - since >= HELD_MS) resolve({ outcome: 'blocked', holder });
      }
      heldSince = seen;
    }, POLL_MS);
    signal.addEventListener('abort', () => clearInterval(timer));
  });
}
