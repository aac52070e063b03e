import { statfs } from 'node:fs/promises';
import type { Store } from '../ports/store.ts';
import type { Logger } from '../log.ts';

/** What a process says about itself. */
export interface ServerStatus {
  /** Whether it is being shut down: it finishes what it has and should be sent nothing new. */
  draining: boolean;
}

export interface HealthDeps {
  readonly store: Store;
  /** A folder on the disk that the store writes to. */
  readonly dataDir: string;
  readonly status: ServerStatus;
  readonly log: Logger;
}

/** What is looked at, and what was found. Causes go to the log: anyone may ask. */
export interface HealthReport {
  readonly status: 'ok' | 'unavailable';
  readonly checks: { readonly store: 'ok' | 'failed'; readonly disk: 'ok' | 'low' | 'failed'; readonly draining: boolean };
}

const LEAST_FREE = 0.05;

/** Finds out whether this process can do its work. Calls that come while it looks get the same report. */
export class Health {
  readonly #deps: HealthDeps;
  #looking: Promise<HealthReport> | null = null;

  constructor(deps: HealthDeps) {
    this.#deps = deps;
  }

  /** Never rejects. */
  report(): Promise<HealthReport> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  async #look(): Promise<HealthReport> {
    const { draining } = this.#deps.status;
    const [store, disk] = await Promise.all([this.#store(), this.#disk()]);
    const well = store === 'ok' && disk === 'ok' && !draining;
    return { status: well ? 'ok' : 'unavailable', checks: { store, disk, draining } };
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
