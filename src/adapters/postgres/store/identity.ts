import { randomBytes } from 'node:crypto';
import { EngineError } from '../../../ports/engine-error.ts';
import type { Connection } from '../connection.ts';
import type { Pool } from '../pool.ts';
import { createEventPartitions } from './maintenance.ts';
import { COMPATIBLE_VERSION, migrations, SCHEMA_VERSION } from './schema.ts';

/** Oldest version of PostgreSQL that is supported, as in `server_version_num`. */
const OLDEST_SERVER = 140_000;
/** Of the lock of migrations: "Collab" in ASCII. */
const MIGRATION_LOCK = 0x43_6f_6c_6c_61_62;
/** Milliseconds that a statement of a migration may take, with waiting for that of another process. */
const LOCKED_MS = 90_000;

/**
 * SQL of where a database is: the timeline of its WAL, which a promotion of a standby and a restore to a point in time
 * change, and the table itself, which a restore from a dump creates anew. Fails with SQLSTATE 55000 on a standby.
 */
const PLACE = `left(pg_walfile_name(pg_current_wal_lsn()), 8) || '/' || 'collab.meta'::regclass::oid`;
/** As `PLACE`, also over clusters: what an opening store compares. */
const IDENTITY = `(select system_identifier from pg_control_system()) || '/' || ${PLACE}`;
/** SQL of what changes when the database is another one than before, or another process has found that it is. */
export const INCARNATION = `${PLACE} || '/' || (select value from collab.meta where name = 'epoch')`;
/**
 * SQL of the columns that `incarnationOf` makes the same text of, of the row `m` of `collab.meta` that is named "epoch":
 * to put them together costs the server as much as to find them, and a look for events comes every second.
 */
export const INCARNATION_COLUMNS = 'pg_walfile_name(pg_current_wal_lsn()), m.tableoid, m.value';
/** Makes the next store that opens begin a new epoch. */
export const FORGET_IDENTITY = `update collab.meta set value = '' where name = 'identity'`;

/** The incarnation from its columns, as `INCARNATION` gives it. */
export function incarnationOf([file, table, epoch]: readonly (string | null | undefined)[]): string {
  return `${file?.slice(0, 8)}/${table}/${epoch}`;
}

/** What a store knows of its database. */
export interface Identity {
  readonly epoch: string;
  /** As `INCARNATION` gives it. */
  readonly incarnation: string;
  readonly schema: number;
}

/**
 * Creates or migrates the schema, and gives the store a new epoch if the database was restored or promoted since it was
 * last opened, or if older programs can no longer use the schema. Safe when several processes do it at once. Rejects
 * with an `EngineError` for a server, a database or a schema that cannot be used, or with the error of the server.
 */
export async function prepareDatabase(pool: Pool): Promise<Identity> {
  const refuse = (message: string): EngineError =>
    new EngineError(pool.target.option, `PostgreSQL at ${pool.target.label} ${message}`, { retry: false });
  const [rows] = await pool.run(
    `select current_setting('server_version_num'), current_setting('server_encoding'), pg_is_in_recovery()`,
  );
  const [version, encoding, standby] = rows?.[0] ?? [];
  if (Number(version) < OLDEST_SERVER)
    throw refuse(`is older than version ${OLDEST_SERVER / 10_000}: upgrade it, or use another one`);
  if (standby === 't') throw refuse('is a read-only standby: let the URL name the primary');
  if (encoding !== 'UTF8') throw refuse(`has a database in ${encoding}: create one with the encoding UTF8`);
  return pool.use(async (connection) => {
    const found = await readStored(connection);
    requireKnown(found, refuse);
    return found !== undefined && isCurrent(found) ? found : migrate(connection, refuse);
  });
}

interface Stored extends Identity {
  readonly compatible: number;
  /** Whether the database is the one that the epoch was made for. */
  readonly same: boolean;
}

/** Returns undefined if there is no schema yet. */
async function readStored(connection: Connection): Promise<Stored | undefined> {
  // Not to_regclass, whose cache may not know yet what another process has committed before this one had the lock.
  const [exists] = await connection.run(
    `select exists (select from pg_tables where schemaname = 'collab' and tablename = 'meta')`,
  );
  if (exists?.[0]?.[0] !== 't') return undefined;
  const [metaRows, now] = await connection.run(
    `select name, value from collab.meta; select ${INCARNATION}, ${IDENTITY}`,
  );
  const meta = new Map(metaRows?.map(([name, value]) => [name, value ?? '']));
  const [incarnation, identity] = now?.[0] ?? [];
  return {
    epoch: meta.get('epoch') ?? '',
    incarnation: incarnation ?? '',
    schema: Number(meta.get('schema') ?? 0),
    compatible: Number(meta.get('compatible') ?? 0),
    same: meta.get('identity') === identity,
  };
}

function requireKnown(found: Stored | undefined, refuse: (message: string) => EngineError): void {
  if (found !== undefined && found.compatible > SCHEMA_VERSION)
    throw refuse(
      `has schema ${found.schema} of a newer version of Collab, and this one knows up to ${SCHEMA_VERSION}: upgrade Collab on this node`,
    );
}

function isCurrent(found: Stored): boolean {
  return found.schema >= SCHEMA_VERSION && found.same && found.compatible >= COMPATIBLE_VERSION;
}

/** In one transaction, while no other process does the same. */
async function migrate(connection: Connection, refuse: (message: string) => EngineError): Promise<Identity> {
  // A transaction-level lock: a pooler hands a session-level one to another client.
  await connection.run(
    `begin; set local lock_timeout = '60s'; select pg_advisory_xact_lock(${MIGRATION_LOCK})`,
    LOCKED_MS,
  );
  const found = await readStored(connection);
  requireKnown(found, refuse);
  for (const statements of migrations.slice(found?.schema ?? 0)) await connection.run(statements, LOCKED_MS);
  if (found === undefined) await connection.run(createEventPartitions, LOCKED_MS);
  if (found === undefined || !isCurrent(found)) {
    // With another epoch, running nodes that cannot use the schema find that at their next commit, and start again.
    const keepsEpoch = found?.same === true && found.compatible >= COMPATIBLE_VERSION;
    const schema = Math.max(found?.schema ?? 0, SCHEMA_VERSION);
    const compatible = Math.max(found?.compatible ?? 0, COMPATIBLE_VERSION);
    await connection.run(
      `insert into collab.meta (name, value)
        values ('schema', '${schema}'), ('compatible', '${compatible}'), ('identity', ${IDENTITY})
          ${keepsEpoch ? '' : `, ('epoch', '${randomBytes(8).toString('hex')}')`}
        on conflict (name) do update set value = excluded.value` +
        // Numbers of transactions of another cluster may be higher than those to come, and versions would repeat.
        (found?.same === true ? '' : `; update collab.streams set commit = '0' where commit <> '0'`),
      LOCKED_MS,
    );
  }
  const stored = await readStored(connection);
  await connection.run('commit', LOCKED_MS);
  if (stored === undefined) throw refuse('lost its schema while it was created');
  return stored;
}
