import t from 'tap';
import { type Cluster, isRunning, startCluster, until } from '../helpers/cluster.ts';
import { askOnce } from '../helpers/http-client.ts';
import { type Frame, TestSocket } from '../helpers/socket.ts';
import { userToken } from '../helpers/user-token.ts';

type Row = { readonly userId: string; readonly connections: number };

const GRACE_MS = 10_000;
/** Enough that one worker is practically certain not to have them all. */
const WATCHERS = 16;

let server: Cluster;

t.before(async () => {
  server = await startCluster({
    workers: 2,
    config: { shutdown: { drainSeconds: 5, closeSpreadSeconds: 0 }, rateLimit: { exempt: ['127.0.0.1'] } },
  });
});
t.teardown(() => server.kill());

/** Opens sockets of a user that join the room. The system decides which worker gets which socket. */
async function enter(server: Cluster, userId: string, count = 1): Promise<TestSocket[]> {
  const token = await userToken(server.keys, userId);
  const headers = { 'X-Service-Key': server.keys.publishableKey, 'X-Service-Token': token };
  const sockets = Array.from(
    { length: count },
    () => new TestSocket(`${server.url.replace('http', 'ws')}/api/v1/ws`, { headers }),
  );
  for (const socket of sockets) {
    await socket.frame('welcome');
    const { error } = await socket.request('room.join', { roomId: 'lobby' });
    if (error !== undefined) throw new Error(error.message);
  }
  return sockets;
}

async function present({ url, keys }: Cluster): Promise<string[]> {
  // A new connection each time, so that every worker is asked now and then.
  const headers = { Authorization: `Bearer ${keys.secretKey}` };
  const { text } = await askOnce('GET', `${url}/api/v1/rooms/lobby/presence`, { headers, apart: true });
  const { items } = JSON.parse(text) as { items: Row[] };
  return items.map(({ userId, connections }) => `${userId} ${connections}`).toSorted();
}

/** Resolves once the answer was the same ten times in a row, from whichever worker. */
async function settled(server: Cluster, ...expected: string[]): Promise<void> {
  let right = 0;
  await until(async () => {
    right = (await present(server)).join() === expected.join() ? right + 1 : 0;
    return right === 10;
  }, 30_000);
}

const heard = (socket: TestSocket, type: string): string[] =>
  socket.frames.filter((frame: Frame) => frame.type === type).map(({ data }) => String(data?.['userId']));

t.test('users of a killed worker leave after the grace period, unless they reconnect', async (t) => {
  const watchers = await enter(server, 'watcher', WATCHERS);
  const [ann] = await enter(server, 'ann');
  const [bob] = await enter(server, 'bob');
  if (ann === undefined || bob === undefined) throw new Error('two sockets were asked for');
  for (const watcher of watchers) await watcher.until(() => heard(watcher, 'presence.joined').includes('bob'), 'bob');
  await settled(server, 'ann 1', 'bob 1', `watcher ${WATCHERS}`);

  const cut = new Set<TestSocket>();
  for (const socket of [ann, ...watchers]) void socket.closed.then(() => cut.add(socket));
  const [victim = 0] = server.pids('web');
  const killedAt = performance.now();
  process.kill(victim, 'SIGKILL');
  await until(() => !isRunning(victim) && server.pids('web').length === 2);
  await until(async () => (await present(server).catch(() => [])).length > 0);
  const left = watchers.filter((watcher) => !cut.has(watcher));
  t.ok(left.length > 0 && left.length < WATCHERS, `both workers had sockets, ${left.length} are left`);

  // Bob reconnects at once, whichever worker he was on. Ann does not, though she may have been on the other worker.
  const [back] = await enter(server, 'bob');
  if (!cut.has(ann)) await ann.close();
  await until(async () => {
    const rows = await present(server);
    return !rows.some((row) => row.startsWith('ann ')) && rows.includes(`watcher ${left.length}`);
  }, 40_000);
  t.ok(performance.now() - killedAt >= GRACE_MS - 500, 'not before the grace was over');
  for (const watcher of left) {
    await watcher.until(() => heard(watcher, 'presence.left').includes('ann'), 'ann leaving');
    t.strictSame(heard(watcher, 'presence.left'), ['ann']);
    t.strictSame(
      heard(watcher, 'presence.joined').filter((userId) => userId !== 'watcher'),
      ['ann', 'bob'],
    );
  }
  await back?.close();
  await bob.terminate();
  for (const watcher of watchers) await watcher.terminate();
  await settled(server);
});

t.test('a rolling restart keeps every user that reconnects present', async (t) => {
  const before = server.pids('web');
  const ann = await enter(server, 'ann');
  const watchers = await enter(server, 'watcher', 4);
  const latest = new Map<string, TestSocket>();
  let rolling = true;
  const keepUp = async (userId: string, socket: TestSocket): Promise<void> => {
    for (let current = socket; (await current.closed).code === 1012 && rolling;) {
      const [next] = await enter(server, userId);
      if (next === undefined) return;
      latest.set(userId, next);
      current = next;
    }
  };
  for (const socket of ann) void keepUp('ann', socket);
  for (const socket of watchers) void keepUp('watcher', socket);
  server.signal('SIGHUP');
  await until(
    () => server.pids('web').every((pid) => !before.includes(pid)) && server.pids('web').length === 2,
    60_000,
  );
  await settled(server, 'ann 1', 'watcher 4');
  rolling = false;
  for (const socket of latest.values()) t.strictSame(heard(socket, 'presence.left'), [], 'nobody was seen leaving');
});
