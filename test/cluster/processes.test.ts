import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { lockHolder } from '../../src/cluster/data-folder-lock.ts';
import { type Cluster, collab, type Folder, initFolder, isRunning, startCluster, until } from '../helpers/cluster.ts';
import { collabJson } from '../helpers/command.ts';
import { RawConnection } from '../helpers/raw-http.ts';
import { TestSocket } from '../helpers/socket.ts';
import { userToken } from '../helpers/user-token.ts';

const quick = { shutdown: { drainSeconds: 5, closeSpreadSeconds: 0 }, rateLimit: { exempt: ['127.0.0.1'] } };

/** The folder on which the servers of these tests run, one after the other. */
let folder: Folder;

t.before(async () => {
  folder = await initFolder(quick);
});
t.teardown(async () => {
  await successor?.kill();
  rmSync(folder.dir, { recursive: true, force: true });
});

/** A server on that folder, which ends with the test in any case. */
async function cluster(t: Test, { shutdown = quick.shutdown, ...options }: ServerOptions = {}): Promise<Cluster> {
  writeFileSync(join(folder.dir, 'config.json'), JSON.stringify({ storage: { minFreeMb: 0 }, ...quick, shutdown }));
  const running = await startCluster({ ...options, folder });
  t.teardown(() => running.kill());
  return running;
}

/** Calls the API as the backend. */
async function api<T>(
  { url, keys }: Cluster,
  method: string,
  path: string,
  body?: object,
): Promise<{ status: number; body: T }> {
  const answer = await fetch(`${url}/api/v1${path}`, {
    method,
    headers: { Authorization: `Bearer ${keys.secretKey}`, 'Content-Type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return { status: answer.status, body: (await answer.json()) as T };
}

async function startThread(server: Cluster): Promise<string> {
  await api(server, 'PUT', '/users/ann', { name: 'Ann' });
  const { body } = await api<{ thread: { id: string } }>(server, 'POST', '/rooms/lobby/threads', {
    userId: 'ann',
    body: 'first',
  });
  return body.thread.id;
}

const bodies = async (server: Cluster, threadId: string): Promise<string[]> =>
  (await api<{ items: { body: string }[] }>(server, 'GET', `/threads/${threadId}/comments`)).body.items.map(
    ({ body }) => body,
  );

async function connect(server: Cluster, userId: string): Promise<TestSocket> {
  const token = await userToken(server.keys, userId);
  const socket = new TestSocket(`${server.url.replace('http', 'ws')}/api/v1/ws`, {
    headers: { 'X-Service-Key': server.keys.publishableKey, 'X-Service-Token': token },
  });
  await socket.frame('welcome');
  return socket;
}

interface ServerOptions {
  readonly workers?: number;
  readonly port?: number;
  readonly shutdown?: typeof quick.shutdown;
}

const isReady = async ({ url }: Cluster): Promise<boolean> =>
  (await fetch(`${url}/readyz`).catch(() => null))?.status === 200;

/** A request for a comment of which only the head and half of the body have been sent. */
async function halfARequest(
  server: Cluster,
  threadId: string,
  body: string,
): Promise<{ connection: RawConnection; finish: () => Promise<void> }> {
  const json = JSON.stringify({ userId: 'ann', body });
  const head = [
    `POST /api/v1/threads/${threadId}/comments HTTP/1.1`,
    'Host: localhost',
    `Authorization: Bearer ${server.keys.secretKey}`,
    'Content-Type: application/json',
    `Content-Length: ${json.length}`,
  ].join('\r\n');
  const connection = await RawConnection.open(server.port);
  await connection.send(`${head}\r\n\r\n${json.slice(0, 10)}`);
  return { connection, finish: () => connection.send(json.slice(10)) };
}

const refusesConnections = ({ port }: Cluster): Promise<boolean> =>
  RawConnection.open(port).then(
    (connection) => {
      connection.destroy();
      return false;
    },
    () => true,
  );

/** The server with one worker that has taken over from a killed one. */
let successor: Cluster | undefined;

t.test('a cluster of two workers', async (t) => {
  const server = await cluster(t);

  await t.test('after a start all workers serve, and the primary has loaded no heavy modules', async (t) => {
    t.equal(server.pids('web').length, 2);
    t.equal(server.pids('background').length, 1);
    t.equal(await isReady(server), true);
    t.match(
      server.log().filter(({ msg }) => msg === 'ready'),
      [
        {
          level: 'info',
          worker: 'primary',
          url: `http://127.0.0.1:${server.port}`,
          webWorkers: 2,
          core: /^uws_|^node$/,
          node: process.versions.node,
          dataDir: join(server.dir, 'data'),
        },
      ],
    );
    t.equal(lockHolder(join(server.dir, 'data'))?.pid, server.primary.pid);
    const loaded = readFileSync(`/proc/${server.primary.pid}/maps`, 'utf8');
    t.notMatch(loaded, /lmdb|uws_/, 'neither the store nor the HTTP core');
    const text = server
      .log()
      .map((line) => JSON.stringify(line))
      .join('\n');
    t.notMatch(text, new RegExp(`${server.keys.secretKey}|${server.keys.jwtSecret}`), 'no secret in the log');
  });

  await t.test('a second start on the same folder is refused, and the first server keeps running', async (t) => {
    const second = await collab('start', '--dir', server.dir, '--port', '0');
    t.equal(second.code, 1);
    t.match(second.stderr, `The data folder ${join(server.dir, 'data')} is in use by process ${server.primary.pid}`);
    t.equal(await isReady(server), true);
  });

  await t.test('a port in use is refused, also if a second Collab server uses it', async (t) => {
    const other = await initFolder(quick);
    t.teardown(() => rmSync(other.dir, { recursive: true, force: true }));
    const second = await collab('start', '--dir', other.dir, '--port', String(server.port));
    t.equal(second.code, 1);
    t.match(second.stderr, `Port ${server.port} on 127.0.0.1 is in use`);
    t.notOk(existsSync(join(other.dir, 'data', 'collab.lock')));
  });

  await t.test('changes made by CLI commands reach open sockets', async (t) => {
    await startThread(server);
    const socket = await connect(server, 'ann');
    await collabJson(t, ['user', 'add', 'zoe', '--name', 'Zoe', '--env', 'default', '--dir', server.dir]);
    await socket.until(
      () => socket.frames.some(({ type, data }) => type === 'user.updated' && JSON.stringify(data).includes('Zoe')),
      'the event about Zoe',
    );
    await socket.close();
  });

  await t.test('a crashed worker is replaced, and its entries in shared memory are freed', async (t) => {
    const socket = await connect(server, 'ann');
    const user = async (): Promise<boolean> =>
      (await api<{ user: { online: boolean } }>(server, 'GET', '/users/ann')).body.user.online;
    t.equal(await user(), true);
    const before = server.pids('web');
    for (const pid of before) process.kill(pid, 'SIGKILL');
    await socket.closed;
    await until(() => server.pids('web').filter((pid) => !before.includes(pid)).length === 2);
    await until(() => isReady(server));
    await until(async () => !(await user()));
    const [background = 0] = server.pids('background');
    process.kill(background, 'SIGKILL');
    await until(() => server.pids('background').some((pid) => pid !== background));
    const replaced = (): number =>
      server.log().filter(({ msg }) => msg === 'worker ended unexpectedly and is replaced').length;
    // The log comes through a pipe, and may be behind.
    await until(() => replaced() >= 3);
    t.equal(replaced(), 3);
  });

  await t.test(
    'when the primary is killed its workers end, also those that cannot notice it, and the next start takes over',
    async (t) => {
      const threadId = await startThread(server);
      const socket = await connect(server, 'ann');
      const pids = [...server.pids('web'), ...server.pids('background')];
      // As with a main thread that is blocked, nothing in it can react.
      for (const pid of server.pids('background')) process.kill(pid, 'SIGSTOP');
      server.signal('SIGKILL');
      await until(() => !pids.some(isRunning));
      successor = await startCluster({ port: server.port, workers: 1, folder });
      await socket.closed;
      t.same(await bodies(successor, threadId), ['first']);
      const { body } = await api<{ user: { online: boolean } }>(successor, 'GET', '/users/ann');
      t.equal(body.user.online, false, 'nobody is connected to the new server');
    },
  );
});

t.test('SIGTERM finishes the request in progress, closes sockets with 1012 and exits with 0', async (t) => {
  const server = successor ?? (await cluster(t, { workers: 1 }));
  const threadId = await startThread(server);
  const socket = await connect(server, 'ann');
  const { connection, finish } = await halfARequest(server, threadId, 'in flight');
  server.signal('SIGTERM');
  t.equal((await socket.closed).code, 1012);
  await until(() => refusesConnections(server));
  // Longer than any other step of a stop waits for a request.
  await delay(1_000);
  await finish();
  const answer = await connection.answer();
  t.equal(answer.status, 201);
  t.equal(answer.headers['connection'], 'close');
  t.match(await server.ended, { code: 0, signal: null, stderr: '' });
  t.equal(lockHolder(join(server.dir, 'data')), null);

  const again = await cluster(t, { workers: 1, shutdown: { drainSeconds: 1, closeSpreadSeconds: 0 } });
  t.same(await bodies(again, threadId), ['first', 'in flight']);

  await t.test('a drain ends in time although a request never does', async (t) => {
    await halfARequest(again, threadId, 'never finished');
    again.signal('SIGINT');
    t.equal((await again.ended).code, 0);
    t.notOk(
      again.log().some(({ killed }) => killed !== undefined),
      'after drainSeconds and 5 s a worker would be killed',
    );
  });
});

t.test('a second SIGTERM ends a drain at once', async (t) => {
  const server = await cluster(t, { workers: 1, shutdown: { drainSeconds: 60, closeSpreadSeconds: 0 } });
  await halfARequest(server, await startThread(server), 'never finished');
  const pids = [...server.pids('web'), ...server.pids('background')];
  server.signal('SIGTERM');
  await server.logged(({ msg }) => String(msg).startsWith('stopping'));
  server.signal('SIGTERM');
  t.equal((await server.ended).code, 0);
  await until(() => !pids.some(isRunning));
});

t.test('a start that fails reports the reason and exits with 1', async (t) => {
  const broken = await initFolder(quick);
  t.teardown(() => rmSync(broken.dir, { recursive: true, force: true }));
  const store = join(broken.dir, 'data', 'store');
  rmSync(store, { recursive: true });
  writeFileSync(store, 'no folder');
  const { code, stderr } = await collab('start', '--dir', broken.dir, '--port', '0', '--workers', '1');
  t.equal(code, 1);
  t.match(stderr, /(EEXIST|ENOTDIR).*store/is);
  t.notOk(existsSync(join(broken.dir, 'data', 'collab.lock')));
});
