import { existsSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RootDatabase } from 'lmdb';
import { makeFolderSync } from '../../../lib/files/make-folder.ts';
import { allowWaking, awaken } from '../../../lib/process/lost-wake-ups.ts';
import { DataError } from '../../../model/errors.ts';
import { repairEmptyEnv } from './empty-env.ts';
import { checkAccess } from './file-check.ts';
import { lockFileId } from './open-envs.ts';
import { openFile } from './open-file.ts';
import { otherReaders } from './readers.ts';
import { OPENING_FOLDER } from './store-files.ts';

/** How long an opening waits for pending commits; the longest, a checkpoint of a full log, takes about a second. */
const OPEN_TIMEOUT_MS = 30_000;
const POLL_MS = 1;
/** For how long a lock stays open after its folder is gone, in milliseconds: longer than an opening takes. */
const GONE_MS = 60_000;
const OPTIONS = { noSubdir: false, maxReaders: 1024, overlappingSync: false, compression: false } as const;

/** The LMDB environment of an opening lock in this process. */
interface LockState {
  readonly lmdbEnv: RootDatabase;
  readonly folder: string;
  /** Pending commits that share the lock. */
  commits: number;
  /** How many objects of the lock have not been closed. */
  users: number;
  /** When its folder was first seen to be removed (`performance.now()`); undefined before that. */
  goneAt?: number;
}

/** The LMDB environments of opening locks that this process has open, by device and inode of their lock file. */
const states = new Map<string, LockState>();

/**
 * Excludes commits to an LMDB environment while any process opens it: commits share this lock, an opening has it
 * exclusively. Also excludes closing it while another process opens or closes it.
 *
 * LMDB as shipped by lmdb-js 3.5.6 (without ITS#9496) lets a process that opens an LMDB environment reset the number of
 * the last transaction to the one that it read a moment before. A commit in between is then overwritten by the next
 * one, or pages appear that are newer than their transaction: commits fail with MDB_BAD_TXN, or the process ends by
 * SIGSEGV. And the process that closes an LMDB environment last destroys its mutexes, even if another one that opens it
 * has already found it in use: that process then fails with EINVAL, as does every one that opens the LMDB environment
 * before all have closed it.
 *
 * The lock is an LMDB environment of its own to which nothing is ever written, so that opening it does no harm. A
 * process that opens or closes holds its writers' lock; a process with a pending commit holds a reader. LMDB frees both
 * when the process is killed. What a power cut has left of its file is repaired before it is opened (empty-env.ts).
 * Nothing excludes closing the lock's own LMDB environment, so a process keeps it open until it ends, or some time after
 * its folder was removed (`closeRemovedLocks`), and opens it once only: LMDB must not open an LMDB environment twice,
 * since closing one file descriptor gives up all file locks. The name of a file tells commits that an opening is in
 * progress, because they can check that in a microsecond. The file is renamed instead of created, because a worker must
 * be able to start on a full disk.
 */
export class OpeningLock {
  readonly #state: LockState;
  readonly #idle: string;
  readonly #busy: string;

  /** @param path folder of the LMDB environment to be opened; it must exist */
  constructor(path: string) {
    allowWaking();
    const folder = join(path, OPENING_FOLDER);
    makeFolderSync(folder);
    this.#state = stateIn(folder);
    this.#state.users++;
    this.#idle = join(folder, 'idle');
    this.#busy = join(folder, 'busy');
  }

  /**
   * Runs `work`, which opens the LMDB environment, while no other process commits to it or opens it. Blocks the thread
   * until then: for a process that is starting.
   *
   * Commits of this process do not count: it has the LMDB environment open already, and lmdb-js does not open it again
   * then.
   *
   * @throws {DataError} when another process commits without end
   */
  exclusive<T>(work: () => T): T {
    return this.#state.lmdbEnv.transactionSync(() => {
      this.#markBusy();
      try {
        this.#waitForCommits();
        return work();
      } finally {
        this.#markIdle();
      }
    });
  }

  /** Runs `commit` while no process opens the LMDB environment. */
  async shared<T>(commit: () => Promise<T>): Promise<T> {
    let leave = this.#enter();
    // The writers' lock is free once the opening is over. A killed process may have left the file name, so it is reset.
    for (; leave === undefined; leave = this.#enter())
      await awaken(this.#state.lmdbEnv.transaction(() => this.#markIdle()));
    try {
      return await commit();
    } finally {
      leave();
    }
  }

  /** `shared` for a synchronous commit. */
  sharedSync<T>(commit: () => T): T {
    if (this.#state.commits > 0) return commit();
    let leave = this.#enter();
    for (; leave === undefined; leave = this.#enter()) this.#state.lmdbEnv.transactionSync(() => this.#markIdle());
    try {
      return commit();
    } finally {
      leave();
    }
  }

  /**
   * Runs `close`, which closes the LMDB environment, while no other process opens or closes it.
   *
   * @param close must not wait for a commit to the LMDB environment
   */
  async closing(close: () => Promise<void>): Promise<void> {
    await awaken(this.#state.lmdbEnv.transaction(close));
    this.#state.users--;
  }

  /** Frees the reader slots of processes that have ended; returns how many there were. */
  readerCheck(): number {
    return this.#state.lmdbEnv.readerCheck();
  }

  /**
   * Registers a pending commit and returns a function that ends it; undefined while a process opens the LMDB
   * environment.
   */
  #enter(): (() => void) | undefined {
    const reader = this.#state.lmdbEnv.useReadTransaction();
    if (existsSync(this.#busy)) {
      reader.done();
      this.#state.lmdbEnv.resetReadTxn();
      return undefined;
    }
    this.#state.commits++;
    return () => {
      this.#state.commits--;
      reader.done();
      // lmdb-js ends the read transaction in a timer, which a thread that blocks next would not run.
      if (this.#state.commits === 0) this.#state.lmdbEnv.resetReadTxn();
    };
  }

  #markBusy(): void {
    if (existsSync(this.#busy)) return;
    if (existsSync(this.#idle)) renameSync(this.#idle, this.#busy);
    else writeFileSync(this.#busy, '', { mode: 0o600 });
  }

  /**
   * Inside a write transaction of the lock: no process opens then, so this also corrects the name that a killed process
   * has left.
   */
  #markIdle(): void {
    if (existsSync(this.#busy)) renameSync(this.#busy, this.#idle);
  }

  #waitForCommits(): void {
    const giveUp = performance.now() + OPEN_TIMEOUT_MS;
    let committing: number | undefined;
    do {
      // Also before the first check: afterwards the reader of any commit that has not seen the file name is visible.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, POLL_MS);
      this.#state.lmdbEnv.readerCheck();
      committing = this.#committing();
    } while (committing !== undefined && performance.now() < giveUp);
    if (committing === undefined) return;
    throw new DataError(
      `The store cannot be opened: process ${committing} has been writing to it for ` +
        `${OPEN_TIMEOUT_MS / 1000} s. See whether it is stopped or its disk is stuck, or end it.`,
      `\`kill -CONT ${committing}\` resumes a stopped process. When it has finished or ended, run the command again.`,
    );
  }

  /** The id of another process with a pending commit; undefined if there is none. */
  #committing(): number | undefined {
    return otherReaders(this.#state.lmdbEnv).find(({ snapshot }) => snapshot !== null)?.pid;
  }
}

/**
 * Closes the LMDB environments of locks whose folders have been removed, as those of replaced logs are, and that were
 * seen so a minute ago: no process can open them any more then, but for one that had begun before that. Returns before
 * they are closed. Called whenever a process opens another one, and by tests.
 *
 * @param now in milliseconds, as `performance.now()`
 */
export function closeRemovedLocks(now: number): void {
  for (const [id, state] of states) {
    if (state.users > 0 || state.commits > 0 || lockFileId(state.folder) === id) continue;
    state.goneAt ??= now;
    if (now - state.goneAt < GONE_MS) continue;
    states.delete(id);
    // If it stayed open, it would take three file descriptors.
    state.lmdbEnv.close().catch(() => {});
  }
}

function stateIn(folder: string): LockState {
  const opened = states.get(lockFileId(folder));
  if (opened !== undefined) return opened;
  closeRemovedLocks(performance.now());
  checkAccess(folder);
  repairEmptyEnv(folder, OPTIONS);
  const state = { lmdbEnv: openFile({ ...OPTIONS, path: folder }), folder, commits: 0, users: 0 };
  states.set(lockFileId(folder), state);
  return state;
}
