import { randomInt } from 'node:crypto';
import type { EngineOption } from '../../../ports/engine-error.ts';
import type { RateLimitResult, Shared, SharedRecord } from '../../../ports/shared.ts';
import { openingError } from '../faults.ts';
import { Link } from '../link.ts';
import { parseTarget } from '../target.ts';
import { decodeText, encodeText } from '../stored-text.ts';
import { checkKey } from './call.ts';
import { SharedCalls } from './calls.ts';
import { CREATE_SHARED, IS_CREATED } from './schema.ts';

/** How `openPostgresShared` opens shared memory. */
export interface PostgresSharedOptions {
  /** The option that has the URL, which messages name. */
  readonly option: EngineOption;
  /** `postgres://…` */
  readonly url: string;
  /** Milliseconds for which a call may be tried again before it rejects; 2 000 when absent. */
  readonly patienceMs?: number | undefined;
  /** The time in place of that of the database, in milliseconds, for tests. */
  readonly now?: (() => number) | undefined;
}

/** Milliseconds for which opening waits for a connection. */
const OPEN_MS = 10_000;
const PATIENCE_MS = 2_000;

type Window = readonly [allowed: boolean, remaining: number, resetMs: number];
type Shown = readonly [name: string, owner: string, text: string, putAt: number, expiresInMs: number | null];

/**
 * Opens the shared memory of a cluster in a PostgreSQL: unlogged tables in the schema `collab`, created if they are
 * missing, and one connection per process, also through a pooler in transaction mode. Throws an `EngineError`.
 *
 * While the database cannot be reached, calls reject with `storage_unavailable`: the first ones after 2 s, later ones at
 * once. It connects again by itself.
 */
export async function openPostgresShared({
  option,
  url,
  patienceMs = PATIENCE_MS,
  now,
}: PostgresSharedOptions): Promise<Shared> {
  const target = parseTarget(option, url);
  const link = new Link(target, 'collab shared');
  try {
    const connection = await link.connect(OPEN_MS);
    const [rows] = await connection.run(IS_CREATED);
    if (rows?.[0]?.[0] !== 't') await connection.run(CREATE_SHARED);
  } catch (error) {
    link.close();
    throw openingError(target, error);
  }
  const calls = new SharedCalls(link, patienceMs, now);

  return {
    async hit(key, limit, windowMs) {
      checkKey(key);
      return windowOf(await calls.call('hit', key, limit, windowMs));
    },

    async spend(key, { amount, limit, windowMs, overdraw = false }) {
      checkKey(key);
      const name = amount === 0 ? 'look' : 'spend';
      return windowOf(await calls.call(name, key, amount, limit, windowMs, overdraw));
    },

    async beginLease(owner) {
      checkKey(owner);
      await calls.call('begin', owner, randomInt(2 ** 47));
    },

    async renewLease(owner) {
      return (await calls.call('renew', owner)) as boolean;
    },

    async endLease(owner, keepRecordsMs) {
      await calls.call('end', owner, keepRecordsMs);
    },

    async count(key, owner, delta) {
      checkKey(key);
      return (await calls.call('count', key, owner, delta)) as number;
    },

    async total(key) {
      return (await calls.call('total', key)) as number;
    },

    async put({ key, name, owner, text, expiresInMs = Number.POSITIVE_INFINITY }) {
      checkKey(key, name);
      await calls.call('put', key, name, owner, encodeText(text), Number.isFinite(expiresInMs) ? expiresInMs : null);
    },

    async delete(key, name) {
      checkKey(key, name);
      await calls.call('delete', key, name);
    },

    async list(key) {
      return ((await calls.call('list', key)) as readonly Shown[]).map((shown) => recordOf(key, shown));
    },

    async get(key, name) {
      const shown = (await calls.call('get', key, name)) as Shown | null;
      return shown === null ? undefined : recordOf(key, shown);
    },

    sweep: (idleMs) => calls.sweep(idleMs),

    async maintain() {
      // A process that ends holds nothing in the database: its connection ends with it.
    },

    async close() {
      await calls.settled();
      link.close();
    },
  };
}

function windowOf(answer: unknown): RateLimitResult {
  const [allowed, remaining, resetMs] = answer as Window;
  return { allowed, remaining, resetMs };
}

function recordOf(key: string, [name, owner, text, putAt, expiresInMs]: Shown): SharedRecord {
  return { key, name, owner, text: decodeText(text), putAt, expiresInMs };
}
