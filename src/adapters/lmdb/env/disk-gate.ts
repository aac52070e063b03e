import { randomBytes } from 'node:crypto';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { storeErrorOf } from './commit-failure.ts';
import { isStoreError } from '../../../model/errors.ts';

/** The file that is written to try the disk. All processes use one name, so that a killed one leaves at most one. */
const PROBE_FILE = 'disk-probe';
/** A page of LMDB. Random, so that no file system stores it without taking space for it. */
const PROBE_BYTES = 4_096;
/** After a refusal, synchronous commits are refused for this long without another try, in milliseconds. */
const RETRY_MS = 250;

/** Whether the disk is known to work, has not been tried by this process, or has refused a write. */
type State = { readonly kind: 'open' | 'untried' } | { readonly kind: 'refusing'; readonly error: unknown };

/**
 * Lets no commit go to LMDB while the disk refuses writes: tries a small file first, before the first commit of a
 * process and before the next one after a failure.
 *
 * A commit that LMDB begins on such a disk costs more than the file, prints a line to standard error, and can end the
 * process where `shortenPageWriteMessage` has no effect.
 */
export class DiskGate {
  readonly #folder: string;
  readonly #flushes: boolean;
  #state: State = { kind: 'untried' };
  #trying: Promise<void> | null = null;
  #triedAt = Number.NEGATIVE_INFINITY;

  /**
   * @param folder folder of the LMDB environment
   * @param flushes whether its commits are flushed: then a disk that has failed must also flush the file before it
   *   counts as working
   */
  constructor(folder: string, flushes: boolean) {
    this.#folder = folder;
    this.#flushes = flushes;
  }

  /**
   * Runs a commit, at once if the disk is known to work. Rejects with the refusal (`storage_full`, `storage_failed`) if
   * the disk refuses.
   */
  async run<T>(commit: () => Promise<T>): Promise<T> {
    if (this.#state.kind !== 'open') await (this.#trying ??= this.#try().finally(() => (this.#trying = null)));
    try {
      return await commit();
    } catch (error) {
      throw this.#refusal(error);
    }
  }

  /** `run` for a synchronous commit, which never waits for a flush. */
  runSync<T>(commit: () => T): T {
    if (this.#state.kind !== 'open') this.#trySync();
    try {
      return commit();
    } catch (error) {
      throw this.#refusal(error);
    }
  }

  async #try(): Promise<void> {
    const flushes = this.#flushes && this.#state.kind === 'refusing';
    const file = join(this.#folder, PROBE_FILE);
    try {
      const handle = await open(file, 'w', 0o600);
      try {
        await handle.writeFile(randomBytes(PROBE_BYTES));
        if (flushes) await handle.datasync();
      } finally {
        await handle.close();
        await rm(file, { force: true });
      }
      this.#state = { kind: 'open' };
    } catch (error) {
      this.#fail(error);
    }
  }

  #trySync(): void {
    if (this.#state.kind === 'refusing' && performance.now() - this.#triedAt < RETRY_MS) throw this.#state.error;
    this.#triedAt = performance.now();
    const file = join(this.#folder, PROBE_FILE);
    try {
      const handle = openSync(file, 'w', 0o600);
      try {
        writeSync(handle, randomBytes(PROBE_BYTES));
      } finally {
        closeSync(handle);
        rmSync(file, { force: true });
      }
      // A flushed environment has no synchronous commit after a failed one, which only a flush could show to work
      // again.
      this.#state = { kind: 'open' };
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Throws the refusal of a failed try. What is not an error of the disk is left to the commit. */
  #fail(error: unknown): void {
    const refusal = this.#refusal(error);
    if (isStoreError(refusal)) throw refusal;
  }

  /** The error for the caller of a failed write, which closes the gate if the disk has caused it. */
  #refusal(error: unknown): unknown {
    const refusal = storeErrorOf(error, this.#folder);
    if (refusal !== error) {
      this.#state = { kind: 'refusing', error: refusal };
      this.#triedAt = performance.now();
    }
    return refusal;
  }
}
