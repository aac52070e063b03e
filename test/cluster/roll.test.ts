import t from 'tap';
import { startCluster } from '../helpers/cluster.ts';
import { pauseBeside, startLoad } from '../helpers/load.ts';
import { ResumingClient } from '../helpers/resuming-client.ts';
import { TestSocket } from '../helpers/socket.ts';
import { userToken } from '../helpers/user-token.ts';

t.test(
  'SIGHUP replaces every web worker: no request is refused, and clients that reconnect miss nothing',
  async (t) => {
    const server = await startCluster({
      config: { shutdown: { drainSeconds: 10, closeSpreadSeconds: 0 }, rateLimit: { exempt: ['127.0.0.1'] } },
    });
    t.teardown(() => server.kill());
    const headers = { Authorization: `Bearer ${server.keys.secretKey}`, 'Content-Type': 'application/json' };
    const call = async (method: string, path: string, body: object): Promise<Record<string, { id: string }>> =>
      (await (
        await fetch(`${server.url}/api/v1${path}`, { method, headers, body: JSON.stringify(body) })
      ).json()) as Record<string, { id: string }>;
    await call('PUT', '/users/ann', { name: 'Ann' });
    const { thread } = await call('POST', '/rooms/lobby/threads', { userId: 'ann', body: 'first' });
    const token = await userToken(server.keys, 'ann');
    const socket = new TestSocket(`${server.url.replace('http', 'ws')}/api/v1/ws`, {
      headers: { 'X-Service-Key': server.keys.publishableKey, 'X-Service-Token': token },
    });
    await socket.frame('welcome');
    const clients = Array.from(
      { length: 4 },
      () =>
        new ResumingClient({
          url: () => `${server.url.replace('http', 'ws')}/api/v1/ws`,
          headers: { 'X-Service-Key': server.keys.publishableKey, 'X-Service-Token': token },
        }),
    );
    await Promise.all(clients.map((client) => client.start()));

    const before = server.pids('web');
    const comments = `${server.url}/api/v1/threads/${thread?.id}/comments`;
    const body = (n: number): string => JSON.stringify({ userId: 'ann', body: `comment ${n}` });
    const loads = [
      startLoad({ url: `${server.url}/livez`, expect: 200, keepAlive: true, pauseMs: pauseBeside(server, 50) }),
      startLoad({ url: `${server.url}/livez`, expect: 200, keepAlive: false, pauseMs: pauseBeside(server, 8) }),
      // Idle between requests for longer than it takes to replace a worker, but shorter than the core's idle timeout.
      startLoad({ url: `${server.url}/livez`, expect: 200, keepAlive: true, pauseMs: () => 4_000 }),
      startLoad({
        url: comments,
        method: 'POST',
        headers,
        body,
        expect: 201,
        keepAlive: true,
        pauseMs: pauseBeside(server, 30),
      }),
      startLoad({
        url: comments,
        method: 'POST',
        headers,
        body,
        expect: 201,
        keepAlive: false,
        pauseMs: pauseBeside(server, 30),
      }),
    ];
    server.signal('SIGHUP');
    await server.logged(({ msg }) => msg === 'all web workers replaced');
    const tallies = await Promise.all(loads.map((load) => load.stop()));
    t.same(
      tallies.flatMap(({ bad }) => bad),
      [],
    );
    for (const { good } of tallies) t.ok(good > 3, `${good} requests`);
    t.equal((await socket.closed).code, 1012);

    const after = server.pids('web');
    t.equal(after.length, 2);
    t.notOk(after.some((pid) => before.includes(pid)));
    const written = (tallies[3]?.good ?? 0) + (tallies[4]?.good ?? 0);
    const { items } = (await (await fetch(comments, { headers })).json()) as { items: unknown[] };
    t.equal(items.length, 1 + written, 'every comment that was answered is there');

    const { seq } = (await (await fetch(`${server.url}/api/v1/events?limit=1`, { headers })).json()) as { seq: number };
    await Promise.all(clients.map((client) => client.reach(seq)));
    await Promise.all(clients.map((client) => client.stop()));
    for (const client of clients) {
      t.ok(client.connects > 1, `connected ${client.connects} times`);
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
