import { randomBytes } from 'node:crypto';
import { statfs } from 'node:fs/promises';
import type { Clock } from '../lib/clock.ts';
import { withTimeout } from '../lib/concurrency/deadline.ts';
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
  /** Whether messages between nodes arrive; absent where they do as long as shared memory works. */
  readonly areMessagesArriving?: (() => boolean) | undefined;
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
  /** As `ENGINE_MS`, for tests. */
  readonly engineMs?: number | undefined;
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
  /**
   * Present if messages between nodes go by notifications of PostgreSQL. `failed`: events of other nodes arrive within a
   * second, cursors and typing do not. The server stays available.
   */
  readonly messages?: 'ok' | 'failed';
}

/** The part of the disk that must be free. */
const MIN_FREE = 0.05;
/** Milliseconds for which results are reused after the checks ended. Each check of the store is two flushed commits. */
const VALID_MS = 1_000;
/**
 * Milliseconds within which an engine on another machine must answer, or it is reported as failed: load balancers wait
 * for a few seconds only, and would take every node out if the report were as late as a bucket that hangs.
 */
const ENGINE_MS = 2_000;
/** Random, so that no file system stores them without taking space for them. */
const PROBE_BYTES = 4_096;

/** Checks whether this process can serve requests, at most about once a second. */
export class Health {
  readonly #deps: HealthDeps;
  /** What was logged of the checks that have failed since they last passed. */
  readonly #failing = new Map<keyof Checks, string>();
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
    const { hasFilesInFolder, probeShared, status } = this.#deps;
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
      // The bus logs the reason itself, when it happens.
      ...(status.areMessagesArriving === undefined ? {} : { messages: status.areMessagesArriving() ? 'ok' : 'failed' }),
    };
    this.#validUntil = this.#deps.clock.monotonic() + VALID_MS;
    this.#checking = null;
    return this.#checks;
  }

  async #checkStore(): Promise<'ok' | 'full' | 'failed'> {
    try {
      const isInFolder = this.#deps.probeShared === undefined;
      await (isInFolder ? this.#deps.store.probe() : this.#inTime(this.#deps.store.probe()));
      return this.#passed('store');
    } catch (err) {
      this.#failed('store', { err }, 'not ready: the store cannot be read and written');
      return kindOf(err);
    }
  }

  /**
   * Does what an upload does: writes a file, and looks for retention leases. The files may be on another disk than the
   * store, or in a bucket.
   */
  async #checkFiles(): Promise<'ok' | 'full' | 'failed'> {
    const { blobs, hasFilesInFolder } = this.#deps;
    if (blobs === undefined) return 'ok';
    try {
      await (hasFilesInFolder ? tryBlobs(blobs) : this.#inTime(tryBlobs(blobs)));
      return this.#passed('files');
    } catch (err) {
      const meaning = hasFilesInFolder ? 'not ready: files' : 'the bucket cannot be used: files, and nothing else,';
      this.#failed('files', { err }, `${meaning} cannot be written`);
      return kindOf(err);
    }
  }

  /** Settles as `work` does; rejects if it has not after `ENGINE_MS`. */
  #inTime(work: Promise<void>): Promise<void> {
    const { engineMs = ENGINE_MS } = this.#deps;
    return withTimeout(engineMs, work, () => {
      throw new Error(`no answer within ${engineMs / 1_000} s`);
    });
  }

  async #checkShared(probe: () => Promise<void>): Promise<'ok' | 'failed'> {
    try {
      await this.#inTime(probe());
      return this.#passed('shared');
    } catch (err) {
      this.#failed(
        'shared',
        { err },
        'the memory that the nodes share cannot be used: limits and presence are partial',
      );
      return 'failed';
    }
  }

  async #checkSpace(): Promise<'ok' | 'low' | 'failed'> {
    const { dataDir } = this.#deps;
    try {
      const { bavail, blocks } = await statfs(dataDir);
      if (bavail > blocks * MIN_FREE) return this.#passed('disk');
      this.#failed('disk', { dataDir }, `not ready: the disk has less than ${MIN_FREE * 100} % free`);
      return 'low';
    } catch (err) {
      this.#failed('disk', { err, dataDir }, 'not ready: the file system of the data folder cannot be read');
      return 'failed';
    }
  }

  /** Logs why a check fails, once until it passes again: load balancers ask every second or two. */
  #failed(check: keyof Checks, facts: object, message: string): void {
    if (this.#failing.get(check) === message) return;
    this.#failing.set(check, message);
    this.#deps.log.warn(facts, message);
  }

  #passed(check: keyof Checks): 'ok' {
    if (this.#failing.delete(check)) this.#deps.log.info({ check }, 'a check of /readyz that failed passes again');
    return 'ok';
  }
}

async function tryBlobs(blobs: Blobs): Promise<void> {
  const staged = await blobs.stage('health', 'probe');
  try {
    await staged.write(randomBytes(PROBE_BYTES));
  } finally {
    await staged.discard();
  }
  await blobs.isRetained();
}

const kindOf = (error: unknown): 'full' | 'failed' =>
  error instanceof CollabError && error.code === 'storage_full' ? 'full' : 'failed';
