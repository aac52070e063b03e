import { randomBytes } from 'node:crypto';
import { statfs } from 'node:fs/promises';
import type { Clock } from '../lib/clock.ts';
import { CollabError } from '../model/errors.ts';
import type { Logger } from '../observability/log.ts';
import type { Blobs } from '../ports/blobs.ts';
import type { Store } from '../ports/store.ts';

/** The state of a process. */
export interface ServerStatus {
  /** Whether the process is shutting down: it finishes what it has and should receive no new requests. */
  draining: boolean;
  /** How many plugins the server runs without, although they are configured; none if absent. */
  readonly missingPlugins?: () => number;
  /** Whether the background worker cannot start; false if absent. */
  readonly backgroundFailing?: () => boolean;
}

/** Dependencies of the health checks. */
export interface HealthDeps {
  readonly clock: Clock;
  readonly store: Store;
  /** The files of uploads; undefined in a process that keeps none. */
  readonly blobs: Blobs | undefined;
  /** A folder on the disk that the store, or what is staged for it, is written to. */
  readonly dataDir: string;
  /** Looks for shared memory that other nodes use too; absent if this server has its own. */
  readonly probeShared?: (() => Promise<void>) | undefined;
  /** Whether the files are in the folder, on the disk. */
  readonly hasFilesInFolder: boolean;
  readonly status: ServerStatus;
  readonly log: Logger;
}

/** The results of the health checks. Causes are logged and not reported, because the report is public. */
export interface HealthReport {
  readonly status: 'ok' | 'unavailable';
  readonly checks: Checks & { readonly draining: boolean };
  /**
   * The number of plugins that could not be loaded, by this process or the background worker, although they are
   * configured; absent if there are none. The log names them. The server can serve requests without them, so it is
   * ready.
   */
  readonly missingPlugins?: number;
  /**
   * That the background worker cannot start; absent otherwise. Requests are served meanwhile. The log names the reason.
   */
  readonly background?: 'failing';
}

/** Results of the checks that take time. */
interface Checks {
  readonly store: 'ok' | 'failed';
  /**
   * `low`: less than 5 % is free. `full`: the store or the files have refused a write for lack of space, or of inodes
   * or quota, however much the file system reports as free. `failed`: files cannot be written, or the file system
   * cannot be read.
   */
  readonly disk: 'ok' | 'low' | 'full' | 'failed';
  /**
   * Present if the files are in a bucket. `failed` does not make the server unavailable: everything else works, and
   * another node would not have them either.
   */
  readonly files?: 'ok' | 'failed';
  /**
   * Present if nodes share their memory. `failed`: limits and presence are partial meanwhile, and events of other nodes
   * arrive within a second. The server stays available.
   */
  readonly shared?: 'ok' | 'failed';
}

/** The part of the disk that must be free. */
const MIN_FREE = 0.05;
/** Milliseconds for which results are reused after the checks ended. Each check of the store is two flushed commits. */
const VALID_MS = 1_000;
/** Random, so that no file system stores them without taking space for them. */
const PROBE_BYTES = 4_096;

/** Checks whether this process can serve requests, at most about once a second. */
export class Health {
  readonly #deps: HealthDeps;
  #checking: Promise<Checks> | null = null;
  #checks: Checks | null = null;
  #validUntil = Number.NEGATIVE_INFINITY;

  constructor(deps: HealthDeps) {
    this.#deps = deps;
  }

  /**
   * Reports the results of the last checks if they ended less than a second ago; otherwise runs new ones, which all
   * callers share. Never rejects.
   */
  async report(): Promise<HealthReport> {
    const checks = await this.#results();
    const { draining } = this.#deps.status;
    const missingPlugins = this.#deps.status.missingPlugins?.() ?? 0;
    const isHealthy = checks.store === 'ok' && checks.disk === 'ok' && !draining;
    return {
      status: isHealthy ? 'ok' : 'unavailable',
      checks: { ...checks, draining },
      ...(missingPlugins > 0 ? { missingPlugins } : {}),
      ...(this.#deps.status.backgroundFailing?.() === true ? { background: 'failing' } : {}),
    };
  }

  async #results(): Promise<Checks> {
    if (this.#checks !== null && this.#deps.clock.monotonic() < this.#validUntil) return this.#checks;
    this.#checking ??= this.#check();
    return this.#checking;
  }

  async #check(): Promise<Checks> {
    const { hasFilesInFolder, probeShared } = this.#deps;
    const [store, files, space, shared] = await Promise.all([
      this.#checkStore(),
      this.#checkFiles(),
      this.#checkSpace(),
      probeShared === undefined ? null : this.#checkShared(probeShared),
    ]);
    const written = hasFilesInFolder ? files : 'ok';
    const disk = store === 'full' || written === 'full' ? 'full' : written === 'failed' ? 'failed' : space;
    this.#checks = {
      store: store === 'full' ? 'failed' : store,
      disk,
      ...(hasFilesInFolder ? {} : { files: files === 'ok' ? 'ok' : 'failed' }),
      ...(shared === null ? {} : { shared }),
    };
    this.#validUntil = this.#deps.clock.monotonic() + VALID_MS;
    this.#checking = null;
    return this.#checks;
  }

  async #checkStore(): Promise<'ok' | 'full' | 'failed'> {
    try {
      await this.#deps.store.probe();
      return 'ok';
    } catch (err) {
      this.#deps.log.warn({ err }, 'not ready: the store cannot be read and written');
      return kindOf(err);
    }
  }

  /**
   * Does what an upload does: writes a file, and looks for retention leases. The files may be on another disk than the
   * store, or in a bucket.
   */
  async #checkFiles(): Promise<'ok' | 'full' | 'failed'> {
    const { blobs, log } = this.#deps;
    if (blobs === undefined) return 'ok';
    try {
      const staged = await blobs.stage('health', 'probe');
      try {
        await staged.write(randomBytes(PROBE_BYTES));
      } finally {
        await staged.discard();
      }
      await blobs.isRetained();
      return 'ok';
    } catch (err) {
      log.warn({ err }, 'not ready: files cannot be written');
      return kindOf(err);
    }
  }

  async #checkShared(probe: () => Promise<void>): Promise<'ok' | 'failed'> {
    try {
      await probe();
      return 'ok';
    } catch (err) {
      this.#deps.log.warn({ err }, 'the memory that the nodes share cannot be used: limits and presence are partial');
      return 'failed';
    }
  }

  async #checkSpace(): Promise<'ok' | 'low' | 'failed'> {
    const { dataDir, log } = this.#deps;
    try {
      const { bavail, blocks } = await statfs(dataDir);
      if (bavail > blocks * MIN_FREE) return 'ok';
      log.warn({ dataDir }, `not ready: the disk has less than ${MIN_FREE * 100} % free`);
      return 'low';
    } catch (err) {
      log.warn({ err, dataDir }, 'not ready: the file system of the data folder cannot be read');
      return 'failed';
    }
  }
}

const kindOf = (error: unknown): 'full' | 'failed' =>
  error instanceof CollabError && error.code === 'storage_full' ? 'full' : 'failed';
