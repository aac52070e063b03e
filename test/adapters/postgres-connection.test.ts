import t, { type Test } from 'tap';
import { openPool } from '../../src/adapters/postgres/pool.ts';
import { parseTarget } from '../../src/adapters/postgres/target.ts';
import { EngineError } from '../../src/ports/engine-error.ts';
import { makeCertificate, useCertificate } from '../helpers/engines/certificates.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { type Postgres, POSTGRES, startPostgres } from '../helpers/engines/postgres.ts';

const SECRET = 'Zq7-secret';
const skip = skipWithout(...POSTGRES, 'openssl');

/** The refusal of a URL, whose line must not show the password. */
async function refusal(url: string): Promise<EngineError> {
  const error: unknown = await openPool({ option: 'store.url', url, connections: 2, name: 'test' }).then(
    (pool) => pool.close(),
    (error: unknown) => error,
  );
  if (!(error instanceof EngineError)) throw new Error(`${url} was opened`, { cause: error });
  if (error.message.includes(SECRET) || error.message.includes('\n')) throw new Error(`it says ${error.message}`);
  return error;
}

t.test('a URL that cannot be meant is refused with what to write instead', async (t) => {
  const cases: readonly [url: string, says: RegExp][] = [
    [`://u:${SECRET}@h/d`, /cannot be parsed/],
    [`mysql://u:${SECRET}@h/d`, /begins with mysql:/],
    [`postgres://u:${SECRET}%@h/d`, /%25/],
    [`postgres://u:${SECRET}@h`, /no database/],
    [`postgres://:${SECRET}@h/d`, /no user/],
    [`postgres://u:${SECRET}@/d`, /no host|cannot be parsed/],
    [`postgres://u:${SECRET}@h/d?sslmode=prefer`, /sslmode is one of disable, .*, not prefer/],
    [`postgres://u:${SECRET}@h/d?options=x`, /parameter options, which is not supported/],
    [
      `postgres://u:${SECRET}@h/d?sslmode=verify-full&sslrootcert=/nowhere/ca.pem`,
      /sslrootcert cannot be read: ENOENT/,
    ],
  ];
  for (const [url, says] of cases) {
    const error = await refusal(url);
    t.match(error, { retry: false, option: 'store.url' }, url);
    t.match(error.message, says);
  }
  t.match(parseTarget('store.url', 'postgres://u%40x:p%2F@[::1]:6432/d%20b'), {
    host: '::1',
    port: 6432,
    user: 'u@x',
    password: 'p/',
    database: 'd b',
    tls: false,
    label: '[::1]:6432/d b as u@x',
  });
  t.equal(parseTarget('store.url', 'postgres://u@socket/d?host=/run/postgresql').host, '/run/postgresql');
});

async function refusesServers(t: Test, postgres: Postgres): Promise<void> {
  const [own, other] = [makeCertificate(t, 'localhost'), makeCertificate(t, 'localhost')];
  useCertificate(postgres, own);
  const server = postgres.url.replace('postgres@', '');
  const at = (login: string, rest = ''): string => `${server.replace('//', `//${login}@`)}${rest}`;
  t.match(await refusal(at('postgres', '?sslmode=require')), { retry: false, message: /offers no TLS/ });
  postgres.sql(`alter system set ssl = on; `);
  postgres.sql(`select pg_reload_conf()`);
  postgres.sql(`create role limited login password '${SECRET}'`);
  const rules = [
    'local all all trust',
    'host all postgres 127.0.0.1/32 trust',
    'host all limited 127.0.0.1/32 scram-sha-256',
  ];
  postgres.sql(
    `copy (select unnest(array['${rules.join("','")}'])) to '${postgres.dir}/pg_hba.conf'; select pg_reload_conf()`,
  );

  const named = (url: string): string => url.replace('127.0.0.1', 'localhost');
  const cases: readonly [url: string, retry: boolean, says: RegExp][] = [
    [at(`limited:wrong-${SECRET}`), false, /refuses the password of the user limited/],
    [at('limited'), false, /demands a password of limited/],
    [at(`nobody:${SECRET}`), false, /refuses the login .*pg_hba/],
    [at('postgres').replace('/collab', '/absent'), false, /has no database absent: create it/],
    [
      at('postgres').replace(`:${postgres.port}/`, ':1/'),
      true,
      /127\.0\.0\.1:1\/collab as postgres cannot be reached .*ECONNREFUSED/,
    ],
    [
      named(at('postgres', `?sslmode=verify-full&sslrootcert=${other.cert}`)),
      false,
      /certificate that does not verify/,
    ],
    [at('postgres', `?sslmode=verify-full&sslrootcert=${own.cert}`), false, /certificate that does not verify/],
  ];
  for (const [url, retry, says] of cases) {
    const error = await refusal(url);
    t.match(error.message, says);
    t.equal(error.retry, retry, error.message);
    t.notMatch(error.message, SECRET);
  }
  for (const rest of [`?sslmode=verify-ca&sslrootcert=${own.cert}`, '?sslmode=require']) {
    const pool = await openPool({
      option: 'store.url',
      url: at(`limited:${SECRET}`, rest),
      connections: 1,
      name: 'test',
    });
    t.strictSame(await pool.run('select ssl from pg_stat_ssl where pid = pg_backend_pid(); select null'), [
      [['t']],
      [[null]],
    ]);
    pool.close();
  }
}

async function replacesConnections(t: Test, postgres: Postgres): Promise<void> {
  const pool = await openPool({ option: 'store.url', url: postgres.url, connections: 2, name: 'test' });
  t.teardown(() => pool.close());
  await pool.run('create table kept(n int)');
  await t.rejects(
    pool.use(async (connection) => {
      await connection.run('begin; insert into kept values (1)');
      throw new Error('given up');
    }),
    /given up/,
  );
  await t.rejects(pool.run('begin; insert into kept values (2); select 1/0'), { code: '22012' });
  t.strictSame(await pool.run('select count(*) from kept'), [[['0']]]);
  const waiting = [1, 2, 3, 4].map((n) => pool.run(`insert into kept values (${n}); select pg_sleep(0.01)`));
  await Promise.all(waiting);
  postgres.sql(`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'test'`);
  // A connection that ended while it was idle may be found only when it is used.
  const count = (): Promise<unknown> => pool.run('select count(*) from kept');
  t.strictSame(await count().catch(count).catch(count), [[['4']]]);
  await t.rejects(pool.run('select pg_sleep(60)', 50), { name: 'ConnectionLost', message: /no answer for 0.05 s/ });
  await t.rejects(pool.run('select pg_terminate_backend(pg_backend_pid())'), { code: '57P01' });
  t.strictSame(await count().catch(count), [[['4']]]);
}

t.test('a server', { skip }, async (t) => {
  const postgres = await startPostgres(t);
  await t.test('connections that end are replaced, and what was begun on one is rolled back', (t) =>
    replacesConnections(t, postgres),
  );
  await t.test('a server that cannot be used is named in one line', (t) => refusesServers(t, postgres));
});
