import t from 'tap';
import type { Comment } from '../../src/model/comment.ts';
import { collab as collabApart, until } from '../helpers/cluster.ts';
import { collab } from '../helpers/command.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { nodeFolder, startNodes } from '../helpers/engines/nodes.ts';
import { type Postgres, POSTGRES, startPostgres } from '../helpers/engines/postgres.ts';
import { ResumingClient } from '../helpers/resuming-client.ts';
import { TestSocket } from '../helpers/socket.ts';
import { userToken } from '../helpers/user-token.ts';

const skip = skipWithout(...POSTGRES);
/** Commands that only look at engines, in this process. */
const inside = true;
let postgres: Postgres;

t.before(async () => {
  if (skip === false) postgres = await startPostgres(t);
});

t.test('three nodes on one PostgreSQL are one service', { skip }, async (t) => {
  const nodes = await startNodes(t, { store: { url: postgres.url } });
  const { secretKey, publishableKey } = nodes.keys;
  const urls = nodes.all.map(({ url }) => url);
  const ask = async <T>(node: number, method: string, path: string, body?: object): Promise<T> => {
    const answer = await fetch(`${urls[node]}/api/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${secretKey}`, 'Content-Type': 'application/json' },
      body: body === undefined ? null : JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as T;
  };
  const headersOf = async (userId: string): Promise<Record<string, string>> => ({
    'X-Service-Key': publishableKey,
    'X-Service-Token': await userToken(nodes.keys, userId),
  });
  await ask(0, 'PUT', '/users/ann', { name: 'Ann' });
  await ask(1, 'PUT', '/users/bob', { name: 'Bob' });

  await t.test('what one node writes, each reads at once', async (t) => {
    const { thread } = await ask<{ thread: { id: string } }>(0, 'POST', '/rooms/lobby/threads', {
      userId: 'ann',
      body: 'Hello',
    });
    for (let n = 0; n < 30; n++) {
      const body = `comment ${n}`;
      const { comment } = await ask<{ comment: Comment }>(n % 3, 'POST', `/threads/${thread.id}/comments`, {
        userId: 'ann',
        body,
      });
      const found = await ask<{ items: Comment[] }>((n + 1) % 3, 'GET', `/threads/${thread.id}/comments?limit=50`);
      t.equal(found.items.find(({ id }) => id === comment.id)?.body, body);
    }
  });

  await t.test('sockets of each node receive the events of all, in one order without gaps', async (t) => {
    const clients: ResumingClient[] = [];
    for (const url of urls) {
      const headers = await headersOf('ann');
      clients.push(new ResumingClient({ url: () => `${url.replace('http', 'ws')}/api/v1/ws`, headers }));
    }
    await Promise.all(clients.map((client) => client.start()));
    t.teardown(() => Promise.all(clients.map((client) => client.stop())));
    await Promise.all(
      Array.from({ length: 60 }, (_, n) =>
        ask(n % 3, 'POST', `/rooms/room-${n % 4}/threads`, { userId: 'bob', body: `thread ${n}` }),
      ),
    );
    const { seq } = await ask<{ seq: number }>(0, 'GET', '/events?limit=1');
    await Promise.all(clients.map((client) => client.reach(seq)));
    await Promise.all(clients.map((client) => client.stop()));
    for (const { seqs } of clients) {
      t.ok(seqs.length >= 60, `${seqs.length} events`);
      t.same(
        seqs,
        Array.from(seqs, (_, at) => (seqs[0] ?? 0) + at),
        'each once, in order',
      );
    }
  });

  await t.test('users of all nodes see each other in a room, and what they send there', async (t) => {
    const sockets: TestSocket[] = [];
    for (const [at, userId] of ['ann', 'bob'].entries()) {
      const url = `${urls[at + 1]?.replace('http', 'ws')}/api/v1/ws`;
      const socket = new TestSocket(url, { headers: await headersOf(userId) });
      t.teardown(() => socket.terminate());
      await socket.frame('welcome');
      sockets.push(socket);
    }
    const [ann, bob] = sockets;
    if (ann === undefined || bob === undefined) throw new Error('unreachable');
    for (const socket of [ann, bob]) await socket.request('room.join', { roomId: 'together' });
    await until(async () => {
      const { items } = await ask<{ items: { userId: string }[] }>(0, 'GET', '/rooms/together/presence');
      return items.length === 2;
    });
  });

  await t.test('status names the nodes, and doctor checks the engines', async (t) => {
    const status = await collab(['status', '--dir', nodes.dirs[2] ?? '', '--json'], { inside });
    const found = JSON.parse(status.stdout) as { nodes: { workers: string[] }[]; ready: boolean };
    t.equal(status.code, 0);
    t.equal(found.nodes.length, 3);
    const doctor = await collab(['doctor', '--dir', nodes.dirs[0] ?? '', '--json'], { inside });
    const { checks } = JSON.parse(doctor.stdout) as { checks: { name: string; level: string }[] };
    t.equal(checks.find(({ name }) => name === 'store')?.level, 'ok');
    t.equal(checks.find(({ name }) => name === 'nodes')?.level, 'ok');
  });

  await t.test('commands that work on files of a store refuse, and say what to do', async (t) => {
    for (const words of [['compact'], ['backup', '/nowhere/x'], ['restore', '/nowhere/x']]) {
      const { code, stderr } = await collab([...words, '--dir', nodes.dirs[0] ?? '']);
      t.not(code, 0);
      t.match(stderr, words[0] === 'restore' ? /./ : /store\.url names a PostgreSQL/);
    }
  });
});

t.test('nodes that start at once on an empty database make one first environment', { skip }, async (t) => {
  const url = postgres.createDatabase('empty');
  const dirs = Array.from({ length: 4 }, () => nodeFolder(t, { store: { url } }));
  const results = await Promise.all(dirs.map((dir) => collabApart('init', '--dir', dir, '--json')));
  t.same(
    results.map(({ code }) => code),
    [0, 0, 0, 0],
    results.map(({ stderr }) => stderr).join(),
  );
  t.equal(results.filter(({ stdout }) => stdout.includes('"secretKey"')).length, 1);
});

t.test('a store that cannot be used is one line with what was tried', { skip }, async (t) => {
  const wrong = {
    host: `postgres://postgres:secretword@127.0.0.1:1/collab`,
    database: postgres.url.replace(/collab$/, 'nothing'),
    scheme: 'mysql://root:secretword@127.0.0.1/x',
  };
  for (const [name, url] of Object.entries(wrong)) {
    const dir = nodeFolder(t, { store: { url } });
    for (const command of ['start', 'status']) {
      const { code, stdout, stderr } = await collab([command, '--dir', dir], { inside });
      t.equal(code, 2, `${name}: ${command}`);
      t.match(stderr, /store\.url/);
      t.notMatch(stdout + stderr, /secretword|    at /);
    }
  }
});
