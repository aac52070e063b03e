import { rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import t from 'tap';
import { type Cluster, initFolder, isRunning, stablePort, startCluster, until } from '../helpers/cluster.ts';
import { CRASH_FACTOR } from '../helpers/crash-factor.ts';
import { ResumingClient } from '../helpers/resuming-client.ts';
import { userToken } from '../helpers/user-token.ts';

const LIVES = 2 * CRASH_FACTOR;
const WORKER_KILLS_A_LIFE = 2;
const THREADS = 8;
const WRITERS = 6;

/** Sends JSON. Returns the status and body of the response, or null if there was none. */
function send(
  url: string,
  key: string,
  agent: Agent,
  body: object,
  method = 'POST',
): Promise<{ status: number; body: string } | null> {
  return new Promise((resolve) => {
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
    const sent = request(url, { method, agent, headers }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      answer.once('end', () => resolve({ status: answer.statusCode ?? 0, body: text }));
      answer.once('error', () => resolve(null));
    });
    sent.once('error', () => resolve(null));
    sent.end(JSON.stringify(body));
  });
}

t.test(
  'when workers and primaries are killed under load, every answered write is stored, and no event is lost or duplicated',
  { timeout: CRASH_FACTOR * 300_000 },
  async (t) => {
    const folder = await initFolder({
      shutdown: { drainSeconds: 5, closeSpreadSeconds: 0 },
      rateLimit: { exempt: ['127.0.0.1'] },
    });
    const { secretKey, publishableKey } = folder.keys;
    let server: Cluster = await startCluster({ folder, port: await stablePort() });
    const { port } = server;
    const base = `${server.url}/api/v1`;
    t.teardown(async () => {
      server.primary.kill('SIGKILL');
      await server.ended;
      rmSync(folder.dir, { recursive: true, force: true });
    });

    const agent = new Agent({ keepAlive: true });
    await send(`${base}/users/ann`, secretKey, agent, { name: 'Ann' }, 'PUT');
    const threads: string[] = [];
    for (let i = 0; i < THREADS; i++) {
      const answer = await send(`${base}/rooms/lobby/threads`, secretKey, agent, { userId: 'ann', body: 'first' });
      threads.push((JSON.parse(answer?.body ?? '') as { thread: { id: string } }).thread.id);
    }
    const token = await userToken(folder.keys, 'ann');
    const clients = Array.from(
      { length: 4 },
      () =>
        new ResumingClient({
          url: () => `${base.replace('http', 'ws')}/ws`,
          headers: { 'X-Service-Key': publishableKey, 'X-Service-Token': token },
        }),
    );
    await Promise.all(clients.map((client) => client.start()));

    let writing = true;
    // Or a failure would keep this process, and with it the run, waiting.
    t.teardown(async () => {
      writing = false;
      agent.destroy();
      await Promise.all(clients.map((client) => client.stop()));
    });
    const answered: { thread: string; id: string; body: string }[] = [];
    const strange: string[] = [];
    const writers = Array.from({ length: WRITERS }, async (_, writer) => {
      for (let n = 0; writing; n++) {
        const thread = threads[(n + writer) % THREADS] ?? '';
        const body = `writer ${writer}, comment ${n}`;
        const answer = await send(`${base}/threads/${thread}/comments`, secretKey, agent, { userId: 'ann', body });
        if (answer?.status === 201)
          answered.push({ thread, id: (JSON.parse(answer.body) as { comment: { id: string } }).comment.id, body });
        else if (answer !== null) strange.push(`${answer.status} ${answer.body}`);
        await new Promise((resolve) => setTimeout(resolve, answer === null ? 20 : 10));
      }
    });

    for (let life = 1; life <= LIVES; life++) {
      for (let kill = 0; kill < WORKER_KILLS_A_LIFE; kill++) {
        const before = server.pids('web');
        const victim = before[kill % before.length] ?? 0;
        const answers = answered.length;
        process.kill(victim, 'SIGKILL');
        await until(() => {
          const pids = server.pids('web');
          return pids.length === before.length && !pids.includes(victim);
        });
        // So that writes are under way, however busy the machine is.
        await until(() => answered.length > answers + 40);
      }
      const pids = [...server.pids('web'), ...server.pids('background')];
      server.signal('SIGKILL');
      await server.ended;
      server = await startCluster({ folder, port });
      t.notOk(pids.some(isRunning), `life ${life}: nothing of the killed server runs`);
    }
    writing = false;
    await Promise.all(writers);
    agent.destroy();

    t.same(strange, [], 'a request is answered with 201 or cut off');
    t.ok(answered.length > 80 * LIVES, `${answered.length} answered`);
    const get = async (path: string): Promise<unknown> =>
      (await fetch(base + path, { headers: { Authorization: `Bearer ${secretKey}` } })).json();
    const found = new Map<string, string>();
    for (const thread of threads) {
      const { items } = (await get(`/threads/${thread}/comments`)) as { items: { id: string; body: string }[] };
      for (const { id, body } of items) found.set(id, body);
    }
    t.same(
      answered.filter(({ id, body }) => found.get(id) !== body),
      [],
      'every comment that was answered is there',
    );

    const { seq } = (await get('/events?limit=1')) as { seq: number };
    await Promise.all(clients.map((client) => client.reach(seq)));
    await Promise.all(clients.map((client) => client.stop()));
    for (const client of clients) {
      t.ok(client.connects > LIVES, `connected ${client.connects} times`);
      t.equal(client.notRecovered, 0, 'every resume went on where it had ended');
      const [first = 0] = client.seqs;
      t.same(
        client.seqs,
        Array.from({ length: seq - first + 1 }, (_, i) => first + i),
        'no event lost, none doubled, all in order',
      );
    }
  },
);
