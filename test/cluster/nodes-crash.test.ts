import t from 'tap';
import { CRASH_FACTOR } from '../helpers/crash-factor.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { NodeLoad } from '../helpers/engines/node-load.ts';
import { startNodes } from '../helpers/engines/nodes.ts';
import { POSTGRES, startPostgres } from '../helpers/engines/postgres.ts';
import { REDIS, startRedis } from '../helpers/engines/redis.ts';
import { startReceiver } from '../helpers/receiver.ts';
import { collab } from '../helpers/command.ts';

const skip = skipWithout(...POSTGRES, ...REDIS);

/** With more kills, also without Redis, three nodes, each in turn, and everything at once: a minute of processor time each. */
const WHOLE = CRASH_FACTOR > 1;

for (const shared of WHOLE ? (['Redis', 'PostgreSQL alone'] as const) : (['Redis'] as const)) {
  t.test(
    `when nodes and engines are killed under load, nothing answered is lost, and nothing is doubled: ${shared}`,
    { skip, timeout: 600_000 * CRASH_FACTOR },
    async (t) => {
      const postgres = await startPostgres(t, { durable: true });
      const redis = shared === 'Redis' ? await startRedis(t) : null;
      const receiver = await startReceiver(t);
      const nodes = await startNodes(
        t,
        { store: { url: postgres.url }, ...(redis === null ? {} : { shared: { url: redis.url } }) },
        { count: WHOLE ? 3 : 2, config: { plugins: [{ use: 'webhook', allowPrivate: true }] } },
      );
      const added = await collab([
        'webhook',
        'add',
        '--url',
        receiver.url,
        '--env',
        'default',
        '--dir',
        nodes.dirs[0] ?? '',
      ]);
      t.equal(added.code, 0, added.stderr);
      const load = await NodeLoad.start(t, nodes);
      await load.goesOn();

      for (let round = 0; round < CRASH_FACTOR; round++) {
        for (const number of WHOLE ? nodes.all.keys() : [1]) {
          await nodes.all[number]?.kill();
          await load.goesOn();
          await nodes.restart(number);
          await load.goesOn();
        }
        await postgres.kill();
        await postgres.restart();
        await load.goesOn();
        for (let n = 0; n < 3; n++) {
          postgres.sql(
            'select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()',
            'postgres',
          );
          await load.goesOn(10);
        }
        if (redis !== null) {
          await redis.kill();
          await load.goesOn();
          await redis.restart();
          await load.goesOn();
        }
        if (!WHOLE) continue;
        await Promise.all([...nodes.all.map((node) => node.kill()), postgres.kill(), redis?.kill()]);
        await Promise.all([postgres.restart(), redis?.restart()]);
        await Promise.all(nodes.all.map((_, number) => nodes.restart(number)));
        await load.goesOn();
      }
      await load.verify(t, receiver);
    },
  );
}
