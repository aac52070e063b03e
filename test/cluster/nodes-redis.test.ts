import t from 'tap';
import { until } from '../helpers/cluster.ts';
import { type Answer, askOnce } from '../helpers/http-client.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { startNodes } from '../helpers/engines/nodes.ts';
import { POSTGRES, startPostgres } from '../helpers/engines/postgres.ts';
import { REDIS, startRedis } from '../helpers/engines/redis.ts';
import { TestSocket } from '../helpers/socket.ts';
import { userToken } from '../helpers/user-token.ts';

interface Presence {
  readonly items: readonly { readonly userId: string }[];
  readonly partial?: true;
}

t.test(
  'without Redis, nodes deliver events, share limits out and show a part of the users, until it is back',
  { skip: skipWithout(...POSTGRES, ...REDIS) },
  async (t) => {
    const [postgres, redis] = [await startPostgres(t), await startRedis(t)];
    const engines = { store: { url: postgres.url }, shared: { url: redis.url } };
    const nodes = await startNodes(t, engines, { count: 2, config: { rateLimit: { perMinute: 1_000, exempt: [] } } });
    const { publishableKey, secretKey } = nodes.keys;
    const ask = (node: number, path: string, body?: object): Promise<Answer> =>
      askOnce(body === undefined ? 'GET' : 'POST', `${nodes.all[node]?.url}/api/v1${path}`, {
        headers: { Authorization: `Bearer ${secretKey}`, 'Content-Type': 'application/json' },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
    const enter = async (node: number, userId: string): Promise<TestSocket> => {
      const socket = new TestSocket(`${nodes.all[node]?.url.replace('http', 'ws')}/api/v1/ws`, {
        headers: { 'X-Service-Key': publishableKey, 'X-Service-Token': await userToken(nodes.keys, userId) },
      });
      t.teardown(() => socket.terminate());
      await socket.frame('welcome');
      t.equal((await socket.request('room.join', { roomId: 'lobby' })).type, 'ok');
      return socket;
    };
    const presence = async (node: number): Promise<Presence> => {
      const answer = await ask(node, '/rooms/lobby/presence');
      return answer.status === 200 ? (JSON.parse(answer.text) as Presence) : { items: [] };
    };
    const shows = async (node: number, users: string, partial?: true): Promise<boolean> => {
      const found = await presence(node);
      const names = found.items.map(({ userId }) => userId).sort();
      return names.join() === users && found.partial === partial;
    };
    const leftIn = async (node: number): Promise<number> =>
      Number(/r=(\d+)/.exec((await ask(node, '/rooms/lobby/presence')).headers.get('RateLimit') ?? '')?.[1]);
    const isBroadcast = async (from: TestSocket, to: TestSocket): Promise<void> => {
      await until(async () => {
        await from.request('room.broadcast', { roomId: 'lobby', data: {} });
        return to.frames.filter(({ type }) => type === 'room.broadcast').length > 0;
      });
      to.frames.length = 0;
    };

    const [ann, bob] = [await enter(0, 'ann'), await enter(1, 'bob')];
    await until(async () => (await shows(0, 'ann,bob')) && shows(1, 'ann,bob'));
    await isBroadcast(ann, bob);
    const left = await leftIn(0);
    t.equal(await leftIn(1), left - 1, 'one window for both');

    await redis.kill();
    await until(async () => (await shows(0, 'ann', true)) && shows(1, 'bob', true));
    // A node learns with its next renewal how many share a limit, so by now it may be one.
    const alone = await leftIn(0);
    t.equal(await leftIn(0), alone - 1, 'it goes on to count');
    t.equal((await ask(0, '/rooms/lobby/threads', { userId: 'ann', body: 'without Redis' })).status, 201);
    await bob.until(() => bob.frames.some(({ type }) => type === 'thread.created'), 'the event of the other node');
    await enter(1, 'carol');
    await until(() => shows(1, 'bob,carol', true));

    await redis.restart();
    await until(async () => (await shows(0, 'ann,bob,carol')) && shows(1, 'ann,bob,carol'));
    await isBroadcast(ann, bob);
    const again = await leftIn(0);
    t.equal(await leftIn(1), again - 1, 'one window again');
  },
);
