import { execFileSync, type ExecFileSyncOptions, spawnSync } from 'node:child_process';
import { appendFileSync, chownSync, existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { stablePort, until } from '../cluster.ts';
import { memoryFolder, tempFolder } from '../temp-folder.ts';
import {
  accepts,
  findProgram,
  hasEnded,
  type Instance,
  killInstance,
  signalInstance,
  startInstance,
  unprivileged,
} from './instance.ts';

/** How long PostgreSQL may take to end its processes at once; five seconds later it kills them itself. */
const QUIT_MS = 10_000;

/** The programs that `startPostgres` needs, for `skipWithout`. */
export const POSTGRES = ['initdb', 'postgres', 'psql'] as const;

export interface PostgresOptions {
  /** Collation of the database; `C` when absent. `en_US` is that of ICU, or of the C library in PostgreSQL 14. */
  readonly locale?: 'C' | 'en_US';
  /** Whether commits wait for the disk, as a test needs that kills the server; false when absent. */
  readonly durable?: boolean;
  /** Further lines of postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** A private PostgreSQL on a port of the loopback interface. */
export interface Postgres {
  readonly port: number;
  /** `postgres://` URL of the superuser and the database `collab`. */
  readonly url: string;
  /** Folder of the database cluster. */
  readonly dir: string;
  /** Runs SQL by psql as the superuser, and returns what it prints: rows of values separated by `|`. */
  sql(text: string, database?: string): string;
  /** Creates a database, empty and with the same collation, and returns its URL. */
  createDatabase(name: string): string;
  /** Sends a signal to the server with all its processes. */
  signal(signal: NodeJS.Signals): void;
  /** Kills all its processes (SIGKILL). */
  kill(): Promise<void>;
  /** Starts it again in the same folder on the same port, after `kill`. */
  restart(): Promise<void>;
}

/** Starts a PostgreSQL that ends with the test. Skip the test by `skipWithout(...POSTGRES)`. */
export async function startPostgres(t: Pick<Test, 'teardown'>, options: PostgresOptions = {}): Promise<Postgres> {
  const folder = options.durable === true ? tempFolder(t) : memoryFolder(t);
  const user = unprivileged();
  if (user.uid !== undefined && user.gid !== undefined) chownSync(folder, user.uid, user.gid);
  const dir = join(folder, 'db');
  const { args, env } = options.locale === 'en_US' ? enUs(folder) : { args: ['--locale=C'], env: {} };
  const spawnOptions = { cwd: folder, env: { ...process.env, ...env }, ...user };
  initialize(dir, args, spawnOptions);
  const port = await stablePort();
  const settings = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    fsync: options.durable === true ? 'on' : 'off',
    shared_buffers: '32MB',
    ...options.settings,
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'\n`);
  appendFileSync(join(dir, 'postgresql.conf'), lines.join(''));
  let instance: Instance;
  const start = async (): Promise<void> => {
    instance = startInstance(programPath('postgres'), ['-D', dir], spawnOptions);
    const started = instance;
    process.once('exit', () => signalInstance(started, 'SIGKILL'));
    await accepts(started, port);
    // After a kill it accepts connections before it has recovered.
    await until(() => spawnSync(programPath('pg_isready'), ['-q', '-h', '127.0.0.1', '-p', String(port)]).status === 0);
  };
  t.teardown(() => quit(instance));
  await start();

  const sql = (text: string, database = 'collab'): string =>
    execFileSync(
      programPath('psql'),
      ['-h', '127.0.0.1', '-p', String(port), '-U', 'postgres', '-d', database, '-X', '-q', '-A', '-t', '-c', text],
      { encoding: 'utf8' },
    ).trim();
  const createDatabase = (name: string): string => {
    sql(`create database "${name}"`, 'postgres');
    return `postgres://postgres@127.0.0.1:${port}/${name}`;
  };
  return {
    port,
    url: createDatabase('collab'),
    dir,
    sql,
    createDatabase,
    signal: (signal) => signalInstance(instance, signal),
    kill: () => killInstance(instance),
    restart: start,
  };
}

/**
 * Ends a server without a checkpoint, as after a kill. One that is killed leaves its shared memory in /dev/shm until
 * the machine starts again.
 */
async function quit(instance: Instance): Promise<void> {
  // Processes that a test has stopped would not end.
  signalInstance(instance, 'SIGCONT');
  instance.child.kill('SIGQUIT');
  await until(() => hasEnded(instance.child), QUIT_MS).catch(() => killInstance(instance));
}

/**
 * Makes the folder of a database cluster: a copy of what `initdb` made first in this run with the same arguments, which
 * takes a second of processor time.
 */
function initialize(dir: string, args: readonly string[], options: ExecFileSyncOptions): void {
  const build = process.env['TEST_BUILD'];
  const template = join(build ?? dir, `database-cluster ${args.join(' ')}`);
  // With owners and modes, which the server checks.
  const copy = (from: string, to: string): void => void execFileSync('cp', ['-a', from, to]);
  if (build !== undefined && existsSync(template)) {
    copy(template, dir);
    return;
  }
  execFileSync(
    programPath('initdb'),
    ['-D', dir, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync', ...args],
    { ...options, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  if (build === undefined) return;
  const draft = `${template} ${process.pid}`;
  copy(dir, draft);
  try {
    // Appears complete; another process may have made it meanwhile.
    renameSync(draft, template);
  } catch {
    rmSync(draft, { recursive: true });
  }
}

/** How a server is started whose databases have the collation en_US. */
function enUs(folder: string): { args: readonly string[]; env: Readonly<Record<string, string>> } {
  const version = execFileSync(programPath('initdb'), ['--version'], { encoding: 'utf8' });
  if (!/ 14\./.test(version)) return { args: ['--locale-provider=icu', '--icu-locale=en-US'], env: {} };
  // PostgreSQL 14 knows no databases of ICU, and a machine may have no locale but C: this takes the package locales.
  execFileSync('localedef', ['-i', 'en_US', '-f', 'UTF-8', join(folder, 'en_US.UTF-8')]);
  return { args: ['--locale=en_US.UTF-8'], env: { LOCPATH: folder } };
}

/** A private PgBouncer in transaction mode. */
export interface Pgbouncer {
  readonly port: number;
  /** `postgres://` URL of the database that the URL of the server names. */
  readonly url: string;
}

/** Starts a PgBouncer in transaction mode in front of a server. It ends with the test. */
export async function startPgbouncer(t: Test, postgres: Pick<Postgres, 'port' | 'url'>): Promise<Pgbouncer> {
  const folder = tempFolder(t);
  const user = unprivileged();
  const port = await stablePort();
  const file = join(folder, 'pgbouncer.ini');
  const users = join(folder, 'users');
  appendFileSync(users, '"postgres" ""\n');
  appendFileSync(
    file,
    `[databases]
* = host=127.0.0.1 port=${postgres.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${users}
pool_mode = transaction
max_client_conn = 500
default_pool_size = 8
server_login_retry = 1
ignore_startup_parameters = extra_float_digits
`,
  );
  if (user.uid !== undefined && user.gid !== undefined)
    for (const path of [folder, file, users]) chownSync(path, user.uid, user.gid);
  const instance = startInstance(programPath('pgbouncer'), [file], { cwd: folder, ...user });
  t.teardown(() => killInstance(instance));
  process.once('exit', () => signalInstance(instance, 'SIGKILL'));
  await accepts(instance, port);
  return { port, url: postgres.url.replace(`:${postgres.port}/`, `:${port}/`) };
}

function programPath(name: string): string {
  const path = findProgram(name);
  if (path === undefined) throw new Error(`${name} not found`);
  return path;
}
