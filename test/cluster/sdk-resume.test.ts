import t from 'tap';
import WebSocket from 'ws';
import type { SocketConstructor } from '../../src/client/platform.ts';
import { CollabClient } from '../../src/client/rest/client.ts';
import { CollabSession } from '../../src/client/session/session.ts';
import { startCluster } from '../helpers/cluster.ts';
import { snapshotOf } from '../helpers/session.ts';

t.test('sessions survive kill -9 of workers while both users write', async (t) => {
  const cluster = await startCluster({ workers: 2, config: { rateLimit: { exempt: ['127.0.0.0/8'] } } });
  t.teardown(() => cluster.kill());
  const { secretKey, publishableKey } = cluster.keys;
  const collab = new CollabClient({ serverUrl: cluster.url, secretKey, maxRetries: 8 });
  const sessions = await Promise.all(
    ['ann', 'bob'].map(async (userId) => {
      const { token } = await collab.users.createToken(userId, { name: userId });
      const session = new CollabSession({
        serverUrl: cluster.url,
        publishableKey,
        token: () => token,
        WebSocket: WebSocket as unknown as SocketConstructor,
        backoff: { firstMs: 20, maxMs: 200 },
      });
      t.teardown(() => session.close());
      return session;
    }),
  );
  const rooms = sessions.map((session) => session.room('page'));
  await Promise.all(rooms.map((room) => room.ready()));
  for (const room of rooms) t.teardown(room.subscribe(() => {}));

  const written: Promise<unknown>[] = [];
  for (let n = 0; n < 20; n++) {
    for (const room of rooms) written.push(room.createThread({ body: `${n}` }));
    if (n % 7 === 3) {
      const [pid] = cluster.pids('web');
      if (pid !== undefined) process.kill(pid, 'SIGKILL');
    }
    await written[n];
  }
  t.equal((await Promise.all(written)).length, 40);
  const { threads } = await collab.rooms.get('page', { comments: true });
  t.equal(threads.length, 40, 'each once');
  for (const room of rooms) {
    const snapshot = await snapshotOf(
      room,
      (now) => now.threads.length === 40 && now.threads.every(({ pending }) => pending === null),
      20_000,
    );
    t.strictSame(
      snapshot.threads.map(({ id }) => id),
      threads.map(({ id }) => id),
    );
  }
});
