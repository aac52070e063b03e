import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { type Cluster, initFolder, startCluster, until } from '../helpers/cluster.ts';
import { collabJson } from '../helpers/command.ts';
import { askOnce } from '../helpers/http-client.ts';
import { noSmallDisk, type SmallDisk, smallDisk } from '../helpers/small-disk.ts';
import { TestSocket } from '../helpers/socket.ts';
import { userToken } from '../helpers/user-token.ts';

const MB = 1024 * 1024;

interface Answer {
  readonly status: number;
  readonly code: string | null;
  readonly text: string;
  /** Identifies the worker that answered. */
  readonly worker: string;
}

/** Sends a request on a new connection, so that any worker may get it. */
async function ask({ url, keys }: Cluster, method: string, path: string, body?: object): Promise<Answer> {
  const { status, headers, text } = await askOnce(
    method,
    path.startsWith('//') ? url + path.slice(1) : `${url}/api/v1${path}`,
    {
      headers: { Authorization: `Bearer ${keys.secretKey}`, 'Content-Type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
      apart: true,
    },
  );
  const [worker = ''] = (headers.get('x-request-id') ?? '').split(/-(?=[^-]*$)/);
  return { status, code: headers.get('x-error-code'), text, worker };
}

/** Repeats a request until each of the two workers has answered. Returns both responses. */
async function askBoth(server: Cluster, method: string, path: string, body?: object): Promise<Answer[]> {
  const answers = new Map<string, Answer>();
  await until(async () => {
    const answer = await ask(server, method, path, body);
    answers.set(answer.worker, answer);
    return answers.size === 2;
  });
  return [...answers.values()];
}

async function started(
  t: Test,
  disk: SmallDisk,
  config: object,
): Promise<{ server: Cluster; thread: string; socket: TestSocket }> {
  const folder = await initFolder({
    dataDir: join(disk.path, 'data'),
    shutdown: { drainSeconds: 5, closeSpreadSeconds: 0 },
    ...config,
  });
  const server = await startCluster({ folder });
  t.teardown(async () => {
    await server.kill();
    rmSync(folder.dir, { recursive: true, force: true });
  });
  await ask(server, 'PUT', '/users/ann', { name: 'Ann' });
  const created = await ask(server, 'POST', '/rooms/lobby/threads', { userId: 'ann', body: 'first' });
  const token = await userToken(folder.keys, 'ann');
  const socket = new TestSocket(`${server.url.replace('http', 'ws')}/api/v1/ws`, {
    headers: { 'X-Service-Key': server.keys.publishableKey, 'X-Service-Token': token },
  });
  await socket.frame('welcome');
  return { server, thread: (JSON.parse(created.text) as { thread: { id: string } }).thread.id, socket };
}

/**
 * Fills the disk, and asserts that every write is either refused or stored, that everything can be read, and that
 * writes succeed again once there is space.
 *
 * @param room what may still be written: nothing below a floor; on a full disk what fits where other things have been
 */
async function refusesWritesAndReads(
  t: Test,
  { server, thread, socket }: Awaited<ReturnType<typeof started>>,
  disk: SmallDisk,
  fill: number | undefined,
  room: 'nothing' | 'what fits',
): Promise<void> {
  const comments = `/threads/${thread}/comments`;
  const pids = [...server.pids('web'), ...server.pids('background')];
  disk.fill(fill);
  const large = { userId: 'ann', body: 'too much '.repeat(1_000) };
  await until(async () => {
    const answers = await askBoth(server, 'POST', comments, large);
    for (const { status, code } of answers) if (status !== 201 && code !== 'storage_full') t.fail(`${status} ${code}`);
    return answers.every(({ status }) => status === 500);
  });

  const bodies = async (): Promise<string[]> =>
    (JSON.parse((await ask(server, 'GET', comments)).text) as { items: { body: string }[] }).items.map(
      ({ body }) => body,
    );
  const kept = await bodies();
  const answers = [
    ...(await askBoth(server, 'POST', '/rooms/other/threads', large)),
    ...(await askBoth(server, 'PUT', '/users/zoe', { name: 'Zoe' })),
    ...(await askBoth(server, 'PATCH', `/threads/${thread}`, { resolved: true })),
  ];
  for (const answer of answers) {
    if (room === 'what fits' && answer.status < 300) continue;
    t.match(answer, { status: 500, code: 'storage_full', text: /^\{"error":"[^"]*disk[^"]*"\}$/ });
  }
  const written = await socket.request('comment.create', { threadId: thread, body: 'over the full disk' });
  if (room === 'nothing' || written.type !== 'ok') t.match(written, { type: 'error', error: { code: 'storage_full' } });
  for (const path of [
    '/rooms',
    '/rooms/lobby/threads',
    `/threads/${thread}`,
    comments,
    '/users',
    '/events',
    '/turn-credentials',
    '//livez',
  ]) {
    for (const { status } of await askBoth(server, 'GET', path)) t.equal(status, 200, path);
  }
  const disks = room === 'nothing' ? /"disk":"full"/ : /"disk":"(full|low)"/;
  for (const answer of await askBoth(server, 'GET', '//readyz'))
    t.match(answer, { status: 503, text: disks }, 'no place to send writes to');
  t.same(
    await bodies(),
    written.type === 'ok' ? [...kept, 'over the full disk'] : kept,
    'what was refused was not written',
  );

  disk.empty();
  await until(async () =>
    (await askBoth(server, 'POST', comments, { userId: 'ann', body: 'room again' })).every(
      ({ status }) => status === 201,
    ),
  );
  await until(async () => (await askBoth(server, 'GET', '//readyz')).every(({ status }) => status === 200));
  t.match(await socket.request('comment.create', { threadId: thread, body: 'over the socket' }), { type: 'ok' });
  t.same([...server.pids('web'), ...server.pids('background')], pids, 'no worker has died of it');
  const { items } = JSON.parse((await ask(server, 'GET', '/events?limit=1000')).text) as { items: { seq: number }[] };
  t.same(
    items.map(({ seq }) => seq),
    Array.from(items, (_, i) => i + 1),
    'the log has no gap',
  );
  await socket.until(() => socket.seqs.at(-1) === items.length, 'the last event');
  await socket.close();
}

t.test(
  'below storage.minFreeMb writes are refused and reads continue; with space, writes succeed again',
  { skip: noSmallDisk },
  async (t) => {
    const disk = smallDisk(t, 48);
    const scene = await started(t, disk, { storage: { minFreeMb: 16 }, rateLimit: { exempt: ['127.0.0.1'] } });
    await refusesWritesAndReads(t, scene, disk, 36 * MB, 'nothing');
  },
);

t.test(
  'on a completely full disk writes are refused and reads continue, including rate-limited requests',
  { skip: noSmallDisk },
  async (t) => {
    const disk = smallDisk(t, 48);
    const scene = await started(t, disk, { storage: { minFreeMb: 0 }, rateLimit: { perMinute: 100_000 } });
    await refusesWritesAndReads(t, scene, disk, undefined, 'what fits');
  },
);

t.test('a server started below storage.minFreeMb serves reads, refuses writes and is not ready', async (t) => {
  const config = { shutdown: { closeSpreadSeconds: 0 }, rateLimit: { exempt: ['127.0.0.1'] } };
  const folder = await initFolder(config);
  t.teardown(() => rmSync(folder.dir, { recursive: true, force: true }));
  const where = ['--env', 'default', '--dir', folder.dir];
  await collabJson(t, ['user', 'add', 'ann', ...where]);
  await collabJson(t, ['thread', 'create', '--room', 'lobby', '--user', 'ann', '--body', 'first', ...where]);

  writeFileSync(join(folder.dir, 'config.json'), JSON.stringify({ ...config, storage: { minFreeMb: 1_048_576 } }));
  const full = await startCluster({ folder, workers: 1 });
  t.teardown(() => full.kill());
  t.match(await ask(full, 'POST', '/rooms/lobby/threads', { userId: 'ann', body: 'second' }), {
    status: 500,
    code: 'storage_full',
  });
  t.match(await ask(full, 'GET', '/rooms/lobby/threads'), { status: 200, text: /"commentCount":1/ });
  t.equal((await ask(full, 'GET', '//readyz')).status, 503);
});

t.test(
  'a server starts on a completely full disk, after a stop and after a kill, and serves reads',
  { skip: noSmallDisk },
  async (t) => {
    const disk = smallDisk(t, 40);
    const folder = await initFolder({ dataDir: join(disk.path, 'data') });
    t.teardown(() => rmSync(folder.dir, { recursive: true, force: true }));
    const first = await startCluster({ folder, workers: 1 });
    await ask(first, 'PUT', '/users/ann', { name: 'Ann' });
    await first.stop();
    for (const end of ['kill', 'stop'] as const) {
      disk.fill();
      const server = await startCluster({ folder, workers: 1 });
      t.match(await ask(server, 'GET', '/users/ann'), { status: 200, text: /Ann/ });
      t.match(await ask(server, 'PUT', '/users/bob', { name: 'Bob' }), { status: 500, code: 'storage_full' });
      if (end === 'stop')
        t.match(await collabJson(t, ['status', '--dir', folder.dir]), { running: true, address: server.url });
      await server[end]();
      const left = readdirSync(join(disk.path, 'data')).filter((name) => name.startsWith('collab.lock.'));
      t.strictSame(left, [], 'no file of an attempt to lock is left');
    }
    disk.empty();
    const last = await startCluster({ folder, workers: 1 });
    t.teardown(() => last.kill());
    t.match(await ask(last, 'PUT', '/users/bob', { name: 'Bob' }), { status: 200 });
  },
);
