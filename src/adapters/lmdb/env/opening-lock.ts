import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import { DataError } from '../../../model/errors.ts';
import { otherReaders } from './readers.ts';
import { OPENING_FOLDER } from './store-files.ts';

/** How long who opens waits for commits under way; the longest, a fold of a full log, takes about a second. */
const PATIENCE_MS = 30_000;
const LOOK_AGAIN_MS = 1;

/**
 * Keeps commits to an LMDB environment and its openings apart, in all processes: commits share this lock, an opening has
 * it alone.
 *
 * LMDB as lmdb-js 3.5.6 brings it (without ITS#9496) lets a process that opens an environment set back the number of the
 * last transaction to what it read a moment before. A commit of that moment is then overwritten by the next one, or pages
 * appear that are newer than their transaction: commits fail with MDB_BAD_TXN, or the process ends by SIGSEGV.
 *
 * The lock is an LMDB environment of its own, in which nothing is ever written, so that opening it does no harm. Who opens
 * holds its writers' lock, a commit under way holds a reader of it: LMDB frees both when their process is killed. That
 * somebody opens is said by the name of a file, because a commit can look at that in a microsecond; and it is renamed
 * instead of made, because a full disk must not keep a worker from starting.
 */
export class OpeningLock {
  readonly #environment: RootDatabase;
  readonly #idle: string;
  readonly #busy: string;
  /** Commits under way in this process. */
  #commits = 0;

  /** @param path folder of the environment to be opened; it must exist */
  constructor(path: string) {
    const folder = join(path, OPENING_FOLDER);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#environment = open({ path: folder, noSubdir: false, maxReaders: 1024, overlappingSync: false, compression: false });
    this.#idle = join(folder, 'idle');
    this.#busy = join(folder, 'busy');
  }

  /**
   * Runs `work`, which opens the environment, while no process commits to it and no other opens it. Blocks until then:
   * for a process that is starting.
   *
   * Commits of this very process don't count: it has the environment open, and lmdb-js doesn't open it again then.
   *
   * @throws {DataError} when another process commits without end
   */
  alone<T>(work: () => T): T {
    return this.#environment.transactionSync(() => {
      this.#announce();
      try {
        this.#waitForCommits();
        return work();
      } finally {
        this.#withdraw();
      }
    });
  }

  /** Runs `commit` while no process opens the environment. */
  async shared<T>(commit: () => Promise<T>): Promise<T> {
    let leave = this.#enter();
    for (; leave === undefined; leave = this.#enter()) await this.#environment.transaction(() => this.#withdraw());
    try {
      return await commit();
    } finally {
      leave();
    }
  }

  /** `shared` for a commit that blocks anyway. */
  sharedSync<T>(commit: () => T): T {
    if (this.#commits > 0) return commit();
    let leave = this.#enter();
    for (; leave === undefined; leave = this.#enter()) this.#environment.transactionSync(() => this.#withdraw());
    try {
      return commit();
    } finally {
      leave();
    }
  }

  /** Frees the places of readers whose process has ended; returns how many there were. */
  readerCheck(): number {
    return this.#environment.readerCheck();
  }

  /** Nothing may be under way. */
  async close(): Promise<void> {
    await this.#environment.close();
  }

  /** Says that a commit is under way, and how to end it; undefined when somebody opens. */
  #enter(): (() => void) | undefined {
    const reader = this.#environment.useReadTransaction();
    if (existsSync(this.#busy)) {
      reader.done();
      this.#environment.resetReadTxn();
      return undefined;
    }
    this.#commits++;
    return () => {
      this.#commits--;
      reader.done();
    };
  }

  #announce(): void {
    if (existsSync(this.#busy)) return;
    if (existsSync(this.#idle)) renameSync(this.#idle, this.#busy);
    else writeFileSync(this.#busy, '', { mode: 0o600 });
  }

  /** For who has the lock of openings: nobody opens then, and what a killed process has announced is withdrawn too. */
  #withdraw(): void {
    if (existsSync(this.#busy)) renameSync(this.#busy, this.#idle);
  }

  #waitForCommits(): void {
    const giveUp = performance.now() + PATIENCE_MS;
    let committing: number | undefined;
    do {
      // Before the first look too: until then, whoever has not seen the file yet has its reader in sight.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_AGAIN_MS);
      this.#environment.readerCheck();
      committing = this.#committing();
    } while (committing !== undefined && performance.now() < giveUp);
    if (committing === undefined) return;
    throw new DataError(`The store cannot be opened: process ${committing} has been writing to it for ${PATIENCE_MS / 1000} s. See whether it is stopped or its disk is stuck, or end it.`);
  }

  /** The id of another process that commits; undefined when none does. */
  #committing(): number | undefined {
    return otherReaders(this.#environment).find(({ snapshot }) => snapshot !== null)?.pid;
  }
}
