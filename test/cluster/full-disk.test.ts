import { rmSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { type Cluster, collab, initFolder, startCluster, until } from '../helpers/cluster.ts';
import { noSmallDisk, type SmallDisk, smallDisk } from '../helpers/small-disk.ts';
import { TestSocket } from '../helpers/socket.ts';

const MB = 1024 * 1024;

interface Answer {
  readonly status: number;
  readonly code: string | null;
  readonly text: string;
  /** Names the worker that answered. */
  readonly worker: string;
}

/** Asks on a connection of its own, so that any worker may get it. */
async function ask({ url, keys }: Cluster, method: string, path: string, body?: object): Promise<Answer> {
  const answer = await fetch(path.startsWith('//') ? url + path.slice(1) : `${url}/api/v1${path}`, {
    method,
    headers: { Authorization: `Bearer ${keys.secretKey}`, 'Content-Type': 'application/json', Connection: 'close' },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const [worker = ''] = (answer.headers.get('x-request-id') ?? '').split(/-(?=[^-]*$)/);
  return { status: answer.status, code: answer.headers.get('x-error-code'), text: await answer.text(), worker };
}

/** Asks until each of the two workers has answered, and gives what they said. */
async function askBoth(server: Cluster, method: string, path: string, body?: object): Promise<Answer[]> {
  const answers = new Map<string, Answer>();
  await until(async () => {
    const answer = await ask(server, method, path, body);
    answers.set(answer.worker, answer);
    return answers.size === 2;
  });
  return [...answers.values()];
}

async function started(t: Test, disk: SmallDisk, config: object): Promise<{ server: Cluster; thread: string; socket: TestSocket }> {
  const folder = await initFolder({ dataDir: join(disk.path, 'data'), shutdown: { drainSeconds: 5, closeSpreadSeconds: 0 }, ...config });
  const server = await startCluster({ folder });
  t.teardown(async () => {
    if (server.primary.exitCode === null) server.primary.kill('SIGKILL');
    await server.ended;
    rmSync(folder.dir, { recursive: true, force: true });
  });
  await ask(server, 'PUT', '/users/ann', { name: 'Ann' });
  const created = await ask(server, 'POST', '/rooms/lobby/threads', { userId: 'ann', body: 'first' });
  const { stdout } = await collab('token', 'create', '--env', 'default', '--user', 'ann', '--dir', folder.dir, '--json');
  const { token } = JSON.parse(stdout) as { token: string };
  const socket = new TestSocket(`${server.url.replace('http', 'ws')}/api/v1/ws`, { headers: { 'X-Service-Key': server.keys.publishableKey, 'X-Service-Token': token } });
  await socket.frame('welcome');
  return { server, thread: (JSON.parse(created.text) as { thread: { id: string } }).thread.id, socket };
}

async function refusesWritesAndReads(t: Test, { server, thread, socket }: Awaited<ReturnType<typeof started>>, disk: SmallDisk, fill: number | undefined): Promise<void> {
  const comments = `/threads/${thread}/comments`;
  const pids = [...server.pids('web'), ...server.pids('background')];
  const before = (await ask(server, 'GET', comments)).text;
  disk.fill(fill);
  await until(async () => (await askBoth(server, 'POST', comments, { userId: 'ann', body: 'too much' })).every(({ status }) => status === 500));

  const kept = (await ask(server, 'GET', comments)).text;
  for (const refused of [
    ...(await askBoth(server, 'POST', comments, { userId: 'ann', body: 'too much' })),
    ...(await askBoth(server, 'POST', '/rooms/other/threads', { userId: 'ann', body: 'too much' })),
    ...(await askBoth(server, 'PUT', '/users/zoe', { name: 'Zoe' })),
  ]) {
    t.match(refused, { status: 500, code: 'storage_full', text: /^\{"error":"[^"]*disk[^"]*"\}$/ });
  }
  for (const path of ['/rooms', '/rooms/lobby/threads', `/threads/${thread}`, comments, '/users', '/events', '/turn-credentials', '//livez']) {
    for (const { status } of await askBoth(server, 'GET', path)) t.equal(status, 200, path);
  }
  t.equal((await ask(server, 'GET', comments)).text, kept, 'nothing was written');
  t.match(await socket.request('comment.create', { threadId: thread, body: 'too much' }), { type: 'error', error: { code: 'storage_full' } });
  t.ok(kept.startsWith(before.slice(0, -2)), 'what was there is there');

  disk.empty();
  await until(async () => (await askBoth(server, 'POST', comments, { userId: 'ann', body: 'room again' })).every(({ status }) => status === 201));
  t.match(await socket.request('comment.create', { threadId: thread, body: 'over the socket' }), { type: 'ok' });
  t.same([...server.pids('web'), ...server.pids('background')], pids, 'no worker has died of it');
  const { items } = JSON.parse((await ask(server, 'GET', '/events')).text) as { items: { seq: number }[] };
  t.same(items.map(({ seq }) => seq), Array.from(items, (_, i) => i + 1), 'the log has no gap');
  await socket.until(() => socket.seqs.at(-1) === items.length, 'the last event');
  await socket.close();
  t.equal((await server.stop()).code, 0);
}

t.test('below storage.minFreeMb writes are refused and reads go on; with space they come back', { skip: noSmallDisk, timeout: 60_000 }, async (t) => {
  const disk = smallDisk(t, 48);
  const scene = await started(t, disk, { storage: { minFreeMb: 16 }, rateLimit: { exempt: ['127.0.0.1'] } });
  await refusesWritesAndReads(t, scene, disk, 36 * MB);
});

t.test('a disk that is full to the last byte refuses writes and keeps reads, also where requests are counted', { skip: noSmallDisk, timeout: 60_000 }, async (t) => {
  const disk = smallDisk(t, 48);
  const scene = await started(t, disk, { storage: { minFreeMb: 0 }, rateLimit: { perMinute: 100_000 } });
  await refusesWritesAndReads(t, scene, disk, undefined);
});
