import type { Connection } from '../connection.ts';
import type { Pool } from '../pool.ts';
import { MAINTENANCE_LOCK } from '../store/maintenance.ts';

/** Milliseconds to wait for a maintenance that is running. */
const WAIT_MS = 120_000;

/**
 * Keeps all processes from maintaining a database, by the lock that they would need, in a transaction of its own that
 * has no snapshot.
 */
export class MaintenancePause {
  readonly #pool: Pool;
  #connection: Connection | undefined;
  #end: () => void = () => {};
  #ended: Promise<void> | undefined;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Holds the lock from now on. Returns whether it was held since the call before; false if it is the first. */
  async hold(): Promise<boolean> {
    if (this.#connection !== undefined) {
      const isHeld = await this.#connection.run('select 1').then(
        () => true,
        () => false,
      );
      if (isHeld) return true;
      await this.end();
    }
    await new Promise<void>((resolve, reject) => {
      this.#ended = this.#pool
        .use(async (connection) => {
          await connection.run(`begin; select pg_advisory_xact_lock(${MAINTENANCE_LOCK})`, WAIT_MS);
          this.#connection = connection;
          await new Promise<void>((end) => {
            this.#end = end;
            resolve();
          });
          if (connection.isOpen) await connection.run('rollback');
        })
        .catch(reject);
    });
    return false;
  }

  /** Lets go of the lock. */
  async end(): Promise<void> {
    this.#connection = undefined;
    this.#end();
    await this.#ended;
  }
}
