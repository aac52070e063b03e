import { statfs } from 'node:fs/promises';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../observability/log.ts';
import type { Store } from '../ports/store.ts';

/** What a process says about itself. */
export interface ServerStatus {
  /** Whether it is being shut down: it finishes what it has and should be sent nothing new. */
  draining: boolean;
}

export interface HealthDeps {
  readonly clock: Clock;
  readonly store: Store;
  /** A folder on the disk that the store writes to. */
  readonly dataDir: string;
  readonly status: ServerStatus;
  readonly log: Logger;
}

/** The checks and their results. Causes go to the log: the report is public. */
export interface HealthReport {
  readonly status: 'ok' | 'unavailable';
  readonly checks: Checks & { readonly draining: boolean };
}

/** Results of the checks that take time. */
interface Checks {
  readonly store: 'ok' | 'failed';
  readonly disk: 'ok' | 'low' | 'failed';
}

const LEAST_FREE = 0.05;
/** How long a report is repeated, in milliseconds after the checks ended. Each check of the store is two flushed commits. */
const VALID_MS = 1_000;

/** Finds out whether this process can do its work, at most about once a second however often it is asked. */
export class Health {
  readonly #deps: HealthDeps;
  #checking: Promise<Checks> | null = null;
  #checks: Checks | null = null;
  #validUntil = Number.NEGATIVE_INFINITY;

  constructor(deps: HealthDeps) {
    this.#deps = deps;
  }

  /** What the last checks found, if they ended less than a second ago; otherwise of new ones, which all callers share. Never rejects. */
  async report(): Promise<HealthReport> {
    const { store, disk } = await this.#found();
    const { draining } = this.#deps.status;
    const well = store === 'ok' && disk === 'ok' && !draining;
    return { status: well ? 'ok' : 'unavailable', checks: { store, disk, draining } };
  }

  #found(): Checks | Promise<Checks> {
    if (this.#checks !== null && this.#deps.clock.monotonic() < this.#validUntil) return this.#checks;
    this.#checking ??= this.#check();
    return this.#checking;
  }

  async #check(): Promise<Checks> {
    const [store, disk] = await Promise.all([this.#store(), this.#disk()]);
    this.#checks = { store, disk };
    this.#validUntil = this.#deps.clock.monotonic() + VALID_MS;
    this.#checking = null;
    return this.#checks;
  }

  async #store(): Promise<'ok' | 'failed'> {
    try {
      await this.#deps.store.probe();
      return 'ok';
    } catch (err) {
      this.#deps.log.warn({ err }, 'not ready: the store cannot be read and written');
      return 'failed';
    }
  }

  async #disk(): Promise<'ok' | 'low' | 'failed'> {
    const { dataDir, log } = this.#deps;
    try {
      const { bavail, blocks } = await statfs(dataDir);
      if (bavail > blocks * LEAST_FREE) return 'ok';
      log.warn({ dataDir }, `not ready: the disk has less than ${LEAST_FREE * 100} % free`);
      return 'low';
    } catch (err) {
      log.warn({ err, dataDir }, 'not ready: the data folder cannot be looked at');
      return 'failed';
    }
  }
}
