import t, { type Test } from 'tap';
import { Connection } from '../../src/adapters/redis/connection.ts';
import { openRedis, type OpenRedis, type RedisOptions } from '../../src/adapters/redis/open.ts';
import { isStoreError } from '../../src/model/errors.ts';
import type { Announcement } from '../../src/ports/bus.ts';
import { until } from '../helpers/cluster.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { REDIS, startRedis } from '../helpers/engines/redis.ts';
import { startTcpProxy } from '../helpers/engines/tcp-proxy.ts';

const skip = skipWithout(...REDIS);
const options = { skip };

/** The server of the tests that share one, each with a prefix of its own. */
const common = skip === false ? await startRedis(t) : undefined;
let prefixes = 0;
function ownPrefix(): { port: number; query: string; tag: string } {
  if (common === undefined) throw new Error('there is no redis-server');
  const prefix = `case${prefixes++}`;
  return { port: common.port, query: `?prefix=${prefix}`, tag: `{${prefix}}` };
}
const urlOf = (port: number, query = ''): string => `redis://127.0.0.1:${port}/0${query}`;

async function open(t: Test, url: string, more: Omit<RedisOptions, 'url'> = {}): Promise<OpenRedis> {
  const opened = await openRedis({ url, answerMs: 30_000, ...more });
  t.teardown(() => opened.close());
  return opened;
}

/** Sends commands to the server on `port`, as an operator does. */
async function admin(t: Test, port: number): Promise<(...command: readonly string[]) => Promise<unknown>> {
  const login = { username: undefined, password: undefined, database: 0, tls: false, answerMs: 30_000 } as const;
  const connection = await Connection.open({ host: '127.0.0.1', port }, login);
  t.teardown(() => connection.end(new Error('the test has ended')));
  return (...command) => connection.send(command);
}

/** Everything that a process hears on the topic `topic`, and what is announced to it. */
async function listen({ bus }: OpenRedis): Promise<{ texts: string[]; announcements: Announcement[] }> {
  const heard = { texts: [] as string[], announcements: [] as Announcement[] };
  bus.onAnnounce((announcement) => heard.announcements.push(announcement));
  await bus.subscribe('topic', (text) => heard.texts.push(text)).ready;
  return heard;
}

/** Publishes until `heard` has more, so at most once is enough. */
async function hearsAgain({ bus }: OpenRedis, texts: readonly string[]): Promise<void> {
  const before = texts.length;
  await until(() => {
    bus.publish({ topic: 'topic', text: 'again' });
    return texts.length > before;
  });
}

/** Hits one key until `stop`, and counts the outcomes. Rejections must be store errors. */
function hammer({ shared }: OpenRedis, t: Test, limit: number, windowMs = 600_000) {
  const counts = { allowed: 0, refused: 0, rejected: 0 };
  let isStopped = false;
  const one = async (): Promise<void> => {
    try {
      const { allowed } = await shared.hit('hammered', limit, windowMs);
      counts[allowed ? 'allowed' : 'refused']++;
    } catch (error) {
      if (!isStoreError(error)) t.fail(`not a store error: ${String(error)}`);
      counts.rejected++;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  };
  const done = (async () => {
    while (!isStopped) {
      await Promise.all(Array.from({ length: 5 }, one));
      await new Promise(setImmediate);
    }
  })();
  const stop = (): Promise<void> => {
    isStopped = true;
    return done;
  };
  return { counts, stop };
}

await t.test('a server that is killed and starts again is used again, without what it had', options, async (t) => {
  const redis = await startRedis(t);
  const changes: (string | null)[] = [];
  const one = await open(t, redis.url, { onChange: (error) => changes.push(error?.message ?? null) });
  const two = await open(t, redis.url);
  const heard = await listen(two);
  await one.shared.beginLease('w1');
  t.equal(await one.shared.count('c', 'w1', 1), 1);
  const load = [hammer(one, t, 1_000_000), hammer(two, t, 1_000_000)];
  await until(() => load.every(({ counts }) => counts.allowed > 0));
  await redis.kill();
  await until(() => load.every(({ counts }) => counts.rejected > 50));
  await t.rejects(one.shared.total('c'), { code: 'storage_unavailable' });
  one.bus.announce(new Map([['lost', 1]]));
  await redis.restart();
  await until(() => changes.at(-1) === null);
  await Promise.all(load.map(({ stop }) => stop()));
  t.equal(await one.shared.renewLease('w1'), false, 'the owner finds out');
  await until(() => heard.announcements.includes(null));
  await hearsAgain(one, heard.texts);
  t.equal(changes.length, 2, 'once gone, once back');
  t.match(changes[0], /^shared\.url: Redis at 127\.0\.0\.1:\d+\/0 cannot be reached \(.*ECONNRE(?:FUSED|SET)/);
});

await t.test('connections that are killed are replaced, and nothing is counted twice', options, async (t) => {
  const { port, query } = ownPrefix();
  const command = await admin(t, port);
  const [one, two] = [await open(t, urlOf(port, query)), await open(t, urlOf(port, query))];
  const heard = await listen(two);
  const load = [hammer(one, t, 500), hammer(two, t, 500)];
  for (let round = 0; round < 20; round++) {
    for (const type of ['normal', 'pubsub']) await command('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await until(() => load.every(({ counts }) => counts.refused > 0));
  await Promise.all(load.map(({ stop }) => stop()));
  const allowed = load.reduce((sum, { counts }) => sum + counts.allowed, 0);
  const rejected = load.reduce((sum, { counts }) => sum + counts.rejected, 0);
  t.ok(allowed <= 500 && allowed + rejected >= 500, `${allowed} allowed, ${rejected} rejected`);
  await hearsAgain(one, heard.texts);
  t.ok(heard.announcements.includes(null), 'what was announced meanwhile may be lost');
});

await t.test('a server that does not answer ends calls, and is used again when it does', options, async (t) => {
  const redis = await startRedis(t);
  const one = await open(t, redis.url, { answerMs: 2_000 });
  t.teardown(() => redis.signal('SIGCONT'));
  redis.signal('SIGSTOP');
  const calls = ['a', 'b', 'c'].map((key) => one.shared.hit(key, 1, 1_000));
  const outcomes = await Promise.allSettled(calls);
  t.strictSame(
    outcomes.map((outcome) => outcome.status === 'rejected' && isStoreError(outcome.reason)),
    [true, true, true],
  );
  redis.signal('SIGCONT');
  await until(() =>
    one.shared.hit('d', 1, 1_000).then(
      () => true,
      () => false,
    ),
  );
});

await t.test('the order of calls is kept when the server has forgotten the script', options, async (t) => {
  const { port, query } = ownPrefix();
  const command = await admin(t, port);
  const one = await open(t, urlOf(port, query));
  for (let round = 0; round < 20; round++) {
    const record = (text: number) => ({ key: 'k', name: 'n', owner: '', text: String(text) });
    const calls: Promise<unknown>[] = [command('SCRIPT', 'FLUSH', 'SYNC')];
    for (let text = 0; text < 10; text++) {
      calls.push(one.shared.put(record(text)));
      if (text % 3 === 0) await new Promise(setImmediate);
    }
    await Promise.all(calls);
    t.match(await one.shared.list('k'), [record(9)]);
  }
});

await t.test('connections that are cut at any byte allow no more than the limit', options, async (t) => {
  const { port, query } = ownPrefix();
  const proxy = await startTcpProxy(t, port);
  const one = await open(t, urlOf(proxy.port, query));
  const two = await open(t, urlOf(port, query));
  const heard = await listen(two);
  let seed = 11;
  const cutAfter = (): number => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) % 3_000;
  proxy.cutAfter = cutAfter;
  proxy.cut();
  const load = [hammer(one, t, 600), hammer(two, t, 600)];
  let published = 0;
  await until(() => {
    one.bus.publish({ topic: 'topic', text: String(published++) });
    return load.every(({ counts }) => counts.refused > 0) && published > 60;
  });
  await Promise.all(load.map(({ stop }) => stop()));
  const allowed = load.reduce((sum, { counts }) => sum + counts.allowed, 0);
  t.ok(allowed <= 600, `${allowed} allowed`);
  t.ok((load[0]?.counts.rejected ?? 0) > 0, 'connections were cut');
  const numbers = heard.texts.map(Number);
  t.strictSame(
    numbers,
    [...new Set(numbers)].sort((a, b) => a - b),
    'at most once, in order',
  );
  proxy.cutAfter = undefined;
  proxy.cut();
  await hearsAgain(one, heard.texts);
});

await t.test('a server that has become a replica is no server, until it is the master again', options, async (t) => {
  const redis = await startRedis(t);
  const command = await admin(t, redis.port);
  const one = await open(t, redis.url);
  await command('REPLICAOF', '127.0.0.1', '1');
  await t.rejects(one.shared.hit('k', 1, 1_000), { code: 'storage_unavailable' });
  await command('REPLICAOF', 'NO', 'ONE');
  await until(() =>
    one.shared.hit('k', 1, 1_000).then(
      ({ allowed }) => allowed,
      () => false,
    ),
  );
});

await t.test('time never goes back, and goes on, when the clock of the server does', options, async (t) => {
  const { port, query, tag } = ownPrefix();
  const command = await admin(t, port);
  const { shared } = await open(t, urlOf(port, query));
  await shared.beginLease('w');
  await shared.put({ key: 'k', name: 'before', owner: 'w', text: '' });
  // As if the server had been an hour ahead.
  const [seconds, micros] = (await command('TIME')) as [string, string];
  await command('SET', `${tag}:t`, `${(Number(seconds) + 3_600) * 1_000_000 + Number(micros)} 0`);
  await command('HSET', `${tag}:l`, 'ow', `1 ${(Number(seconds) + 3_600 + 20) * 1_000_000}`);
  // In one call of the server, so that no time passes between them.
  const [hit, again] = await Promise.all([shared.hit('k', 1, 200), shared.hit('k', 1, 200)]);
  t.match(hit, { allowed: true, resetMs: 200 });
  t.equal(again.allowed, false);
  await until(async () => (await shared.hit('k', 1, 200)).allowed);
  t.equal(await shared.renewLease('w'), true);
  await shared.put({ key: 'k', name: 'after', owner: 'w', text: '' });
  const [record] = await shared.list('k');
  t.ok((record?.putAt ?? 0) >= (Number(seconds) + 3_600) * 1_000);
});

await t.test('a window slides exactly by the time of the server, whoever hits it', options, async (t) => {
  const { port, query } = ownPrefix();
  const views = await Promise.all(Array.from({ length: 4 }, () => open(t, urlOf(port, query))));
  const startedAt = performance.now();
  const load = views.map((view) => hammer(view, t, 50, 200));
  await until(() => load.reduce((sum, { counts }) => sum + counts.allowed, 0) > 150);
  await Promise.all(load.map(({ stop }) => stop()));
  const windows = Math.floor((performance.now() - startedAt) / 200) + 1;
  const allowed = load.reduce((sum, { counts }) => sum + counts.allowed, 0);
  t.ok(allowed <= 50 * windows, `${allowed} allowed in ${windows} windows`);
});

await t.test('a subscriber that is too slow is closed, and hears again', options, async (t) => {
  const redis = await startRedis(t, '--client-output-buffer-limit', 'pubsub 64kb 64kb 1');
  const proxy = await startTcpProxy(t, redis.port);
  const slow = await open(t, urlOf(proxy.port));
  const other = await open(t, redis.url);
  const heard = await listen(slow);
  const command = await admin(t, redis.port);
  const [, subscriber] = proxy.links;
  subscriber?.server.pause();
  const text = 'x'.repeat(1_000_000);
  await until(async () => {
    other.bus.publish({ topic: 'topic', text });
    const subscribers = String(await command('CLIENT', 'LIST', 'TYPE', 'pubsub'));
    return subscribers.trim().split('\n').length === 1;
  });
  t.strictSame(heard.announcements, []);
  subscriber?.server.resume();
  await until(() => heard.announcements.includes(null));
  await hearsAgain(other, heard.texts);
});

await t.test('a subscriber that stays at another server than the commands is replaced', options, async (t) => {
  const [old, next] = [await startRedis(t), await startRedis(t)];
  const proxy = await startTcpProxy(t, old.port);
  const one = await open(t, urlOf(proxy.port), { beaconMs: 500 });
  const other = await open(t, next.url);
  const heard = await listen(one);
  const [commands] = proxy.links;
  proxy.target = next.port;
  proxy.cut(commands);
  await until(() => heard.announcements.includes(null));
  await hearsAgain(other, heard.texts);
});

await t.test('a subscriber that is connected and silent is replaced', options, async (t) => {
  const { port, query } = ownPrefix();
  const proxy = await startTcpProxy(t, port);
  const one = await open(t, urlOf(proxy.port, query), { beaconMs: 500 });
  const other = await open(t, urlOf(port, query));
  const heard = await listen(one);
  const [, subscriber] = proxy.links;
  subscriber?.server.removeAllListeners('data');
  subscriber?.server.on('data', () => {});
  await until(() => heard.announcements.includes(null));
  await hearsAgain(other, heard.texts);
});

await t.test('a server that is full refuses what it has no space for, and reads go on', options, async (t) => {
  const redis = await startRedis(t);
  const command = await admin(t, redis.port);
  const { shared, bus } = await open(t, redis.url);
  await shared.put({ key: 'k', name: 'n', owner: '', text: 'x' });
  await command('CONFIG', 'SET', 'maxmemory', '1');
  await t.rejects(shared.hit('h', 1, 60_000), { code: 'storage_unavailable' });
  await t.rejects(shared.put({ key: 'k', name: 'm', owner: '', text: 'y' }), { code: 'storage_unavailable' });
  t.match(await shared.list('k'), [{ name: 'n', text: 'x' }]);
  await command('CONFIG', 'SET', 'maxmemory', '0');
  t.equal((await shared.hit('h', 1, 60_000)).allowed, true, 'nothing was counted');
  // Of another program, on a channel of ours.
  const texts: string[] = [];
  const announcements: Announcement[] = [];
  bus.onAnnounce((announcement) => announcements.push(announcement));
  await bus.subscribe('topic', (text) => texts.push(text)).ready;
  for (const message of ['', 'no JSON', 'x [', 'x 7', 'x [7,"ours"]'])
    await command('PUBLISH', '{collab}:p:topic', message);
  await until(() => texts.length > 0);
  t.strictSame([texts, announcements], [['ours'], []], 'the connection is the same');
  const foreign = ['x no JSON', 'x {}', 'x 7', 'x [7]', 'x [["s"]]', 'x [["s","x"]]'];
  for (const message of foreign) await command('PUBLISH', '{collab}:a', message);
  await until(() => announcements.length === foreign.length);
  t.ok(
    announcements.every((announcement) => announcement === null),
    'any stream may have grown',
  );
});
