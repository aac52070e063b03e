import { execFileSync, spawn, type SpawnOptions, spawnSync } from 'node:child_process';
import { appendFileSync, chmodSync, chownSync, existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { loadCore } from './cores.ts';
import { newFolder } from './folders.ts';
import { processTree } from './processes.ts';
import { freePort } from './server-process.ts';
import { until } from './wait.ts';

/** A program that servers keep their data in, with all its processes on the core of the load: another machine. */
export interface Engine {
  readonly name: 'PostgreSQL' | 'Redis';
  readonly port: number;
  pids(): number[];
  stop(): Promise<void>;
}

/** A private PostgreSQL. */
export interface Postgres extends Engine {
  /** Creates an empty database, and returns its URL. */
  createDatabase(name: string): string;
}

const START_MS = 30_000;

/** Other users than root run PostgreSQL; nobody is on every machine. */
const user = process.getuid?.() === 0 ? { uid: idOf('-u'), gid: idOf('-g') } : {};

function idOf(option: string): number {
  return Number(execFileSync('id', [option, 'nobody'], { encoding: 'utf8' }));
}

/**
 * Starts PostgreSQL in a new folder. Commits wait for the disk, as by default; besides the memory for pages and the
 * number of connections, nothing is configured.
 *
 * @throws {Error} naming the package that is not installed
 */
export async function startPostgres(): Promise<Postgres> {
  const folder = newFolder('postgres');
  // The user of PostgreSQL has to reach its folder.
  chmodSync(dirname(folder), 0o711);
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid);
  const dir = join(folder, 'db');
  const bin = binFolder();
  const initdb = ['-D', dir, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C'];
  execFileSync(join(bin, 'initdb'), initdb, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'], ...user });
  const port = await freePort();
  appendFileSync(
    join(dir, 'postgresql.conf'),
    `listen_addresses = '127.0.0.1'\nport = ${port}\nunix_socket_directories = ''\nshared_buffers = 256MB\nmax_connections = 200\n`,
  );
  const isReady = (): boolean =>
    spawnSync(join(bin, 'pg_isready'), ['-q', '-h', '127.0.0.1', '-p', String(port)]).status === 0;
  const options = { cwd: folder, ...user };
  const engine = await startEngine('PostgreSQL', port, [join(bin, 'postgres'), '-D', dir], options, isReady);
  return {
    ...engine,
    createDatabase: (name) => {
      const connection = ['-h', '127.0.0.1', '-p', String(port), '-U', 'postgres', '-d', 'postgres'];
      execFileSync(join(bin, 'psql'), [...connection, '-X', '-q', '-c', `create database "${name}"`]);
      return `postgres://postgres@127.0.0.1:${port}/${name}`;
    },
  };
}

/** Starts Redis, which keeps nothing on the disk. */
export async function startRedis(): Promise<Engine> {
  if (spawnSync('redis-server', ['--version']).error !== undefined)
    throw new Error('redis-server is not installed: apt-get install redis-server');
  const port = await freePort();
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const isReady = (): boolean => spawnSync('redis-cli', ['-p', String(port), 'ping']).stdout.toString() === 'PONG\n';
  return startEngine('Redis', port, ['redis-server', ...args], { cwd: newFolder('redis') }, isReady);
}

async function startEngine(
  name: Engine['name'],
  port: number,
  command: readonly string[],
  options: SpawnOptions,
  isReady: () => boolean,
): Promise<Engine> {
  let output = '';
  const child = spawn('taskset', ['-c', String(loadCore), ...command], {
    ...options,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk) => (output = (output + String(chunk)).slice(-8192)));
  // PostgreSQL ends its other processes at SIGQUIT.
  const kill = (): void => void child.kill('SIGQUIT');
  process.once('exit', kill);
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await until(`the start of ${name}`, START_MS, () => {
    if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}:\n${output}`);
    return isReady();
  });
  return {
    name,
    port,
    pids: () => processTree(child.pid ?? 0),
    stop: async () => {
      process.off('exit', kill);
      child.kill('SIGINT');
      await exited;
    },
  };
}

function binFolder(): string {
  const root = '/usr/lib/postgresql';
  const [latest] = existsSync(root) ? readdirSync(root).toSorted((a, b) => Number(b) - Number(a)) : [];
  if (latest === undefined) throw new Error('PostgreSQL is not installed: apt-get install postgresql');
  return join(root, latest, 'bin');
}
