import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { Connection } from '../../src/adapters/redis/connection.ts';
import { type OpenRedis, openRedis, openRedisShared } from '../../src/adapters/redis/open.ts';
import { parseTarget } from '../../src/adapters/redis/target.ts';
import { EngineError } from '../../src/ports/engine-error.ts';
import { stablePort, until } from '../helpers/cluster.ts';
import { makeCertificate } from '../helpers/engines/certificates.ts';
import { findProgram, killInstance, skipWithout, startInstance } from '../helpers/engines/instance.ts';
import { REDIS, type Redis, startRedis } from '../helpers/engines/redis.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const options = { skip: skipWithout(...REDIS) };
/** In every URL of a refusal below; no message may have it. */
const PASSWORD = 'sesame-47';

async function open(t: Test, url: string): Promise<OpenRedis> {
  const opened = await openRedis({ url, answerMs: 30_000 });
  t.teardown(() => opened.close());
  return opened;
}

async function admin(t: Test, port: number): Promise<(...command: readonly string[]) => Promise<unknown>> {
  const login = { username: undefined, password: undefined, database: 0, tls: false, answerMs: 30_000 } as const;
  const connection = await Connection.open({ host: '127.0.0.1', port }, login);
  t.teardown(() => connection.end(new Error('the test has ended')));
  return (...command) => connection.send(command);
}

/** Opening `url` fails with one line for the operator, without the password. */
async function isRefused(t: Test, url: string, retry: boolean, message: RegExp): Promise<void> {
  const error: unknown = await openRedis({ url, answerMs: 30_000 }).then(
    async (opened) => opened.close(),
    (refusal: unknown) => refusal,
  );
  if (!(error instanceof EngineError)) return void t.fail(`no EngineError but ${String(error)}`, { url });
  t.match(error.message, message);
  t.match(error.message, /^shared\.url: /);
  t.strictSame([error.option, error.retry], ['shared.url', retry], error.message);
  t.notMatch(error.message, new RegExp(`${PASSWORD}|\n`));
}

await t.test('a URL is parsed, or refused with what is wrong with it', async (t) => {
  t.match(parseTarget('redis://host'), {
    endpoints: [{ host: 'host', port: 6379 }],
    database: 0,
    tls: false,
    tag: '{collab}',
    label: 'host:6379/0',
  });
  t.match(parseTarget('valkeys://us%40er:p%2Fw@[::1]:1,b:2/3?prefix=team-a'), {
    endpoints: [
      { host: '::1', port: 1 },
      { host: 'b', port: 2 },
    ],
    username: 'us@er',
    password: 'p/w',
    tls: {},
    tag: '{team-a/3}',
    label: '[::1]:1,b:2/3',
  });
  t.match(parseTarget('redis://:p@s1,s2:2/?sentinel=m&sentinelPassword=q'), {
    endpoints: [{ port: 26_379 }, { port: 2 }],
    username: undefined,
    sentinel: 'm',
    sentinelPassword: 'q',
    label: 's1:26379,s2:2/m/0',
  });
  for (const [url, message] of [
    [`https://x:${PASSWORD}@host`, /cannot be parsed: write it as redis:\/\//],
    [`redis://x:${PASSWORD}/@host`, /cannot be parsed: .*%XX/],
    [`redis://x:${PASSWORD}%@host`, /% that begins no escape/],
    [`redis://x:${PASSWORD}@`, /no host/],
    [`redis://x:${PASSWORD}@host:70000`, /wrong port/],
    [`redis://x:${PASSWORD}@host/one`, /not the number of a database/],
    [`redis://x:1/${PASSWORD}@host`, /cannot be parsed/],
    [`redis://x:1?${PASSWORD}@host`, /cannot be parsed/],
    [`redis://x:${PASSWORD}@host?prefix=a*`, /prefix is 1 to 64/],
    [`redis://x:${PASSWORD}@host?db=1`, /parameter db, which is not supported/],
    [`rediss://x:${PASSWORD}@host?ca=/nowhere`, /file that ca names cannot be read: ENOENT/],
  ] as const)
    await isRefused(t, url, false, message);
});

await t.test('who cannot be reached is asked again later', async (t) => {
  await isRefused(
    t,
    `redis://x:${PASSWORD}@127.0.0.1:1`,
    true,
    /Redis at 127\.0\.0\.1:1\/0 cannot be reached.*REFUSED/,
  );
  const silent = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
  t.teardown(() => silent.close());
  await once(silent, 'listening');
  const address = silent.address();
  const port = typeof address === 'object' ? address?.port : 0;
  await isRefused(t, `redis://x:${PASSWORD}@127.0.0.1:${port}`, true, /write rediss:\/\/ if it expects TLS/);
});

await t.test('who is refused is told what to do', options, async (t) => {
  const redis = await startRedis(t, '--databases', '2');
  const command = await admin(t, redis.port);
  const url = (login: string, rest = ''): string => `redis://${login}127.0.0.1:${redis.port}${rest}`;
  await isRefused(t, url('', '/7'), false, /has no database 7/);
  await isRefused(
    t,
    `rediss://x:${PASSWORD}@127.0.0.1:${redis.port}`,
    true,
    /cannot be reached .*write redis:\/\/ if it has no TLS/,
  );

  const rights = '+eval +evalsha +time +@read +@write +@pubsub +select';
  for (const [user, rules] of [
    ['full', `~{collab/1}:* &{collab/1}:* ${rights}`],
    ['scripts', '~* &* +@all -@scripting'],
    ['keys', '~other:* &* +@all'],
    ['channels', '~* +@all resetchannels'],
    ['lists', '~* &* +@all -rpush'],
  ] as const)
    await command('ACL', 'SETUSER', user, 'on', `>${PASSWORD}`, ...rules.split(' '));
  const { shared, bus } = await open(t, url(`full:${PASSWORD}@`, '/1'));
  t.equal((await shared.hit('k', 1, 1_000)).allowed, true);
  await shared.sweep(0);
  await bus.subscribe('topic', () => {}).ready;
  await isRefused(t, url(`full:wrong-${PASSWORD}@`), false, /refuses the user or the password/);
  await isRefused(t, url(`scripts:${PASSWORD}@`), false, /does not let the user do this \(NOPERM.*evalsha/);
  await isRefused(
    t,
    url(`keys:${PASSWORD}@`),
    false,
    /NOPERM.*: run ACL SETUSER with ~\{collab\}:\* &\{collab\}:\* \+eval/,
  );
  await isRefused(t, url(`channels:${PASSWORD}@`), false, /NOPERM.*channel/);
  await isRefused(t, url(`lists:${PASSWORD}@`), false, /does not let the user do this.*script/);
  await command('CONFIG', 'SET', 'requirepass', PASSWORD);
  await isRefused(t, url(''), false, /demands a password/);
});

await t.test('two installations on one server share nothing', options, async (t) => {
  const redis = await startRedis(t);
  const urls = ['/0', '/1', '/0?prefix=b'].map((rest) => `redis://127.0.0.1:${redis.port}${rest}`);
  const heard: string[] = [];
  for (const [i, url] of urls.entries()) {
    const [one, two] = [await open(t, url), await open(t, url)];
    t.equal((await one.shared.hit('k', 1, 60_000)).allowed, true);
    t.equal((await two.shared.hit('k', 1, 60_000)).allowed, false);
    await one.bus.subscribe('topic', (text) => heard.push(`${text} to ${i}`)).ready;
    two.bus.publish({ topic: 'topic', text: `from ${i}` });
    // What was published before has arrived when this has, if it was to arrive.
    await until(() => heard.includes(`from ${i} to ${i}`));
  }
  t.strictSame(heard, ['from 0 to 0', 'from 1 to 1', 'from 2 to 2']);
});

await t.test('a replica is refused', options, async (t) => {
  const redis = await startRedis(t, '--replicaof', '127.0.0.1 1');
  await isRefused(
    t,
    redis.url,
    false,
    /(?:redis|valkey) at 127\.0\.0\.1:\d+ is a read-only replica: let the URL name the master/,
  );
  const master = await startRedis(t);
  await open(t, `redis://127.0.0.1:${redis.port},127.0.0.1:${master.port}`);
});

await t.test('a certificate must verify', { skip: options.skip || skipWithout('openssl') }, async (t) => {
  const { cert, key } = makeCertificate(t, 'localhost');
  const port = await stablePort();
  const tls = ['--tls-port', String(port), '--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', cert];
  await startRedis(t, ...tls, '--tls-auth-clients', 'no');
  await isRefused(t, `rediss://localhost:${port}`, false, /certificate that does not verify .*let ca in the URL name/);
  await isRefused(t, `rediss://127.0.0.1:${port}?ca=${cert}`, false, /certificate that does not verify .*altnames/);
  const { shared } = await open(t, `rediss://localhost:${port}?ca=${cert}`);
  t.equal((await shared.hit('k', 1, 1_000)).allowed, true);
});

/** Two nodes of a cluster; the second one has the slots. */
async function startCluster(t: Test) {
  // By default the nodes meet on their own port plus 10 000, which another connection may have.
  const [busOne, busTwo] = [String(await stablePort()), String(await stablePort())];
  const start = async (bus: string): Promise<Redis> =>
    startRedis(t, '--cluster-enabled', 'yes', '--cluster-node-timeout', '60000', '--cluster-port', bus);
  const nodes = [await start(busOne), await start(busTwo)] as const;
  const [one, two] = [await admin(t, nodes[0].port), await admin(t, nodes[1].port)];
  await two('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
  await one('CLUSTER', 'MEET', '127.0.0.1', String(nodes[1].port), busTwo);
  for (const node of [one, two])
    await until(async () => String(await node('CLUSTER', 'INFO')).includes('cluster_state:ok'));
  return { nodes, one, two };
}

await t.test('a cluster is followed to the node that has the keys, also when they move', options, async (t) => {
  const { nodes, one, two } = await startCluster(t);
  const url = `redis://127.0.0.1:${nodes[0].port}`;
  const [first, second] = [await open(t, url), await open(t, url)];
  const texts: string[] = [];
  await second.bus.subscribe('topic', (text) => texts.push(text)).ready;
  first.bus.publish({ topic: 'topic', text: 'sharded' });
  await until(() => texts.length === 1);
  await first.shared.beginLease('w');
  t.equal(await second.shared.count('c', 'w', 1), 1);
  await isRefused(t, `${url}/1`, false, /is a cluster, which has no database but 0|no database 1/);

  const slot = String(await one('CLUSTER', 'KEYSLOT', '{collab}:t'));
  const id = String(await one('CLUSTER', 'MYID'));
  await two('FLUSHALL');
  for (const node of [one, two]) await node('CLUSTER', 'SETSLOT', slot, 'NODE', id);
  await until(() =>
    first.shared.hit('k', 1, 60_000).then(
      ({ allowed }) => allowed,
      () => false,
    ),
  );
  t.equal(Number(await one('DBSIZE')) > 0, true);
  await until(() => {
    first.bus.publish({ topic: 'topic', text: 'again' });
    return texts.length > 1;
  });
});

await t.test('sentinels say where the master is', options, async (t) => {
  const redis = await startRedis(t);
  const [folder, port] = [tempFolder(t), await stablePort()];
  const file = join(folder, 'sentinel.conf');
  writeFileSync(file, `port ${port}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 ${redis.port} 1\n`);
  const sentinel = startInstance(findProgram('redis-server') ?? '', [file, '--sentinel'], { cwd: folder });
  t.teardown(() => killInstance(sentinel));
  const url = `redis://127.0.0.1:1,127.0.0.1:${port}`;
  await until(() =>
    openRedisShared({ url: `${url}?sentinel=main`, answerMs: 30_000 }).then(
      async (shared) => {
        t.equal((await shared.hit('k', 1, 1_000)).allowed, true);
        await shared.close();
        return true;
      },
      () => false,
    ),
  );
  const opened = await openRedis({ url: `${url}?sentinel=main`, answerMs: 30_000, beaconMs: 500 });
  t.teardown(() => opened.close());
  const heard: string[] = [];
  await opened.bus.subscribe('topic', (text) => heard.push(text)).ready;
  const [next, command] = [await startRedis(t), await admin(t, port)];
  await command('SENTINEL', 'REMOVE', 'main');
  await command('SENTINEL', 'MONITOR', 'main', '127.0.0.1', String(next.port), '1');
  const peer = await open(t, next.url);
  await until(() => {
    peer.bus.publish({ topic: 'topic', text: 'x' });
    return heard.length > 0;
  });
  await isRefused(t, `${url}?sentinel=other`, false, /knows no master other/);
  await isRefused(t, `redis://127.0.0.1:${port}`, false, /is a sentinel: add \?sentinel=/);
});
