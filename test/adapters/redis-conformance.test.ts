import t from 'tap';
import { Connection } from '../../src/adapters/redis/connection.ts';
import { openRedis, openRedisShared } from '../../src/adapters/redis/open.ts';
import type { Bus } from '../../src/ports/bus.ts';
import { busConformance } from '../conformance/bus.ts';
import { sharedConformance } from '../conformance/shared.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { REDIS, startRedis } from '../helpers/engines/redis.ts';

const skip = skipWithout(...REDIS);
/** However busy the machine is. */
const answerMs = 30_000;

if (skip !== false) t.plan(0, skip);
else {
  const redis = await startRedis(t);
  let opened = 0;
  /** A URL that no other case has. */
  const ownUrl = (): string => `${redis.url}?prefix=case${opened++}`;

  await sharedConformance(t, async () => {
    const [url, clock] = [ownUrl(), new ManualClock(0)];
    const [shared, peer] = await Promise.all([
      openRedisShared({ url, clock, answerMs }),
      openRedisShared({ url, clock, answerMs }),
    ]);
    t.teardown(() => Promise.all([shared.close(), peer.close()]));
    return { shared, peer, clock };
  });

  await busConformance(t, async (t): Promise<readonly [Bus, Bus, Bus]> => {
    const url = ownUrl();
    const [one, two, three] = await Promise.all([
      openRedis({ url, answerMs }),
      openRedis({ url, answerMs }),
      openRedis({ url, answerMs }),
    ]);
    t.teardown(() => Promise.all([one.close(), two.close(), three.close()]));
    return [one.bus, two.bus, three.bus];
  });
  await t.test('whatever is stored expires, also when nobody sweeps it', async (t) => {
    const login = { username: undefined, password: undefined, database: 0, tls: false, answerMs } as const;
    const connection = await Connection.open({ host: '127.0.0.1', port: redis.port }, login);
    t.teardown(() => connection.end(new Error('the test has ended')));
    const keys = (await connection.send(['KEYS', '*'])) as string[];
    t.ok(keys.length > 20, 'the cases above have left something');
    const expiries = await connection.exchange(keys.map((key) => ['PTTL', key]));
    const lasting = keys.filter((_, i) => !(Number(expiries[i]) > 0 && Number(expiries[i]) < 2 * 86_400_000));
    t.strictSame(lasting, []);
  });
}
