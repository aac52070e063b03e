import { rmSync } from 'node:fs';
import t from 'tap';
import { initFolder, startCluster, until } from '../helpers/cluster.ts';
import { collab, collabJson } from '../helpers/command.ts';
import { pauseBeside } from '../helpers/load.ts';
import { SocketWriter } from '../helpers/socket-writer.ts';
import { userToken } from '../helpers/user-token.ts';

t.test(
  'a WebSocket write in progress during a rolling restart or a stop gets its reply before the socket is closed',
  async (t) => {
    const config = {
      shutdown: { drainSeconds: 10, closeSpreadSeconds: 1 },
      rateLimit: { exempt: ['127.0.0.1'] },
      ws: { messagesPerSecond: 10_000, messageBurst: 10_000 },
    };
    const folder = await initFolder(config);
    t.teardown(() => rmSync(folder.dir, { recursive: true, force: true }));
    await collabJson(t, [
      ...['env', 'update', 'default', '--quotas', 'userWritesPerMinute=off,userComments=off'],
      ...['--limits', 'commentsPerThread=100000', '--dir', folder.dir],
    ]);
    const server = await startCluster({ folder, workers: 1 });
    t.teardown(() => void (server.primary.exitCode === null && server.primary.kill('SIGKILL')));
    const headers = { Authorization: `Bearer ${server.keys.secretKey}`, 'Content-Type': 'application/json' };
    await fetch(`${server.url}/api/v1/users/ann`, { method: 'PUT', headers, body: '{"name":"Ann"}' });
    const made = await fetch(`${server.url}/api/v1/rooms/lobby/threads`, {
      method: 'POST',
      headers,
      body: '{"userId":"ann","body":"first"}',
    });
    const { thread } = (await made.json()) as { thread: { id: string } };
    const token = await userToken(server.keys, 'ann');
    const writers = Array.from(
      { length: 4 },
      (_, i) =>
        new SocketWriter({
          url: `${server.url.replace('http', 'ws')}/api/v1/ws`,
          headers: { 'X-Service-Key': server.keys.publishableKey, 'X-Service-Token': token },
          threadId: thread.id,
          name: `writer ${i}`,
          pauseMs: pauseBeside(server, 8),
        }),
    );
    await until(() => writers.every(({ answered }) => answered.length > 5));
    server.signal('SIGHUP');
    await server.logged(({ msg }) => msg === 'all web workers replaced');
    await until(() => writers.every(({ answered, codes }) => answered.length > 10 && codes.length > 0));
    server.signal('SIGTERM');
    t.equal((await server.ended).code, 0);
    await Promise.all(writers.map((writer) => writer.stop()));
    t.same(
      writers.flatMap(({ bad }) => bad),
      [],
    );
    t.ok(writers.every(({ codes }) => codes.includes(1012)));

    const { stdout } = await collab(['export', '-', '--dir', folder.dir]);
    const stored = new Set([...stdout.matchAll(/"body":"(writer [^"]*)"/g)].map(([, body = '']) => body));
    const unanswered = writers.flatMap((writer) => writer.unanswered);
    t.same(
      unanswered.filter((body) => stored.has(body)),
      [],
      `${unanswered.length} without an answer, none of them written`,
    );
    t.same(
      writers.flatMap(({ answered }) => answered).filter((body) => !stored.has(body)),
      [],
    );
  },
);
