import { existsSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { collab as current, startCollab } from '../helpers/cli.ts';
import { COLLAB, until } from '../helpers/cluster.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { NodeLoad } from '../helpers/engines/node-load.ts';
import { type Nodes, startNodes } from '../helpers/engines/nodes.ts';
import { POSTGRES, startPostgres } from '../helpers/engines/postgres.ts';
import { REDIS, startRedis } from '../helpers/engines/redis.ts';
import { startReceiver } from '../helpers/receiver.ts';
import { TestSocket } from '../helpers/socket.ts';
import { userToken } from '../helpers/user-token.ts';

/** The folder of a checkout of an older version, built with `npm run build`. */
const folder = process.env['OLD_COLLAB'];
const old = join(folder ?? '', 'dist', 'bin', 'collab.js');
const isThere = folder !== undefined && existsSync(old);
const skip = isThere ? skipWithout(...POSTGRES, ...REDIS) : 'OLD_COLLAB names no build of an older version';

/** Users of both nodes are in one room: each sees the others and what they send, and leaves when its socket ends. */
async function meet(t: Test, nodes: Nodes): Promise<void> {
  const join = async (number: number, userId: string): Promise<TestSocket> => {
    const headers = {
      'X-Service-Key': nodes.keys.publishableKey,
      'X-Service-Token': await userToken(nodes.keys, userId),
    };
    const socket = new TestSocket(`${nodes.all[number]?.url.replace('http', 'ws')}/api/v1/ws`, { headers });
    await socket.frame('welcome');
    t.equal((await socket.request('room.join', { roomId: 'meeting' })).type, 'ok');
    return socket;
  };
  const [ann, bob] = [await join(0, 'ann'), await join(1, 'bob')] as const;
  const present = async (number: number): Promise<string> => {
    const answer = await fetch(`${nodes.all[number]?.url}/api/v1/rooms/meeting/presence`, {
      headers: { Authorization: `Bearer ${nodes.keys.secretKey}` },
    });
    const { items, partial } = (await answer.json()) as { items: { userId: string }[]; partial?: boolean };
    return `${items
      .map(({ userId }) => userId)
      .sort()
      .join()}${partial === true ? ' partial' : ''}`;
  };
  for (const number of [0, 1]) await until(async () => (await present(number)) === 'ann,bob');
  for (const [from, to] of [
    [ann, bob],
    [bob, ann],
  ] as const) {
    const text = `hello ${Math.random()}`;
    t.equal((await from.request('room.broadcast', { roomId: 'meeting', data: { text } })).type, 'ok');
    await to.until(() => to.frames.find((frame) => JSON.stringify(frame).includes(text)), text);
  }
  await ann.terminate();
  await until(async () => (await present(1)) === 'bob');
  await bob.terminate();
  for (const number of [0, 1]) await until(async () => (await present(number)) === '');
}

/** The commands of both versions, each in the folder of each node. */
async function askBoth(t: Test, nodes: Nodes, seq: number): Promise<void> {
  for (const program of [old, COLLAB]) {
    for (const dir of nodes.dirs) {
      const status = await current(['status', '--dir', dir, '--json'], { program });
      t.equal(status.code, 0, status.stderr);
      t.equal((status.stdout.match(/"version":/g) ?? []).length >= 2, true, status.stdout);
      const doctor = await current(['doctor', '--dir', dir], { program });
      t.equal(doctor.code, 0, doctor.stdout + doctor.stderr);
      const tail = startCollab(t, ['tail', '--dir', dir, '--env', 'default', '--since', String(seq), '--json'], {
        program,
      });
      await tail.line((line) => line.includes('"type":'));
      await tail.end();
    }
  }
}

for (const shared of ['PostgreSQL alone', 'Redis'] as const)
  t.test(
    `nodes are replaced by newer ones and by older ones again under load: ${shared}`,
    { skip, timeout: 600_000 },
    async (t) => {
      const [postgres, receiver] = [await startPostgres(t), await startReceiver(t)];
      const redis = shared === 'Redis' ? { shared: { url: (await startRedis(t)).url } } : {};
      const config = { plugins: [{ use: 'webhook', allowPrivate: true }] };
      const nodes = await startNodes(t, { store: { url: postgres.url }, ...redis }, { count: 2, config });
      const [dir = ''] = nodes.dirs;
      const added = await current(['webhook', 'add', '--url', receiver.url, '--env', 'default', '--dir', dir]);
      t.equal(added.code, 0, added.stderr);
      const load = await NodeLoad.start(t, nodes);
      await load.goesOn();
      const replace = async (number: number, program: string): Promise<void> => {
        load.avoided.add(number);
        const { code } = (await nodes.all[number]?.stop()) ?? {};
        t.equal(code, 0, `node ${number} ends`);
        await nodes.restart(number, program);
        load.avoided.delete(number);
        await load.goesOn();
      };
      // To the older version, whose nodes are then replaced by newer ones, and back.
      await replace(0, old);
      await meet(t, nodes);
      await askBoth(t, nodes, 1);
      await replace(1, old);
      await replace(0, COLLAB);
      await meet(t, nodes);
      await askBoth(t, nodes, 1);
      await replace(1, COLLAB);
      await load.verify(t, receiver);
      const errors = nodes.all.flatMap((node) => node.log().filter(({ level }) => level === 'error'));
      t.same(errors, []);
    },
  );
