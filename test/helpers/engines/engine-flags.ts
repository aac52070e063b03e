import { type Postgres, POSTGRES, startPostgres } from './postgres.ts';
import { skipWithout } from './instance.ts';
import { type Redis, REDIS, startRedis } from './redis.ts';

/** The engines that the tests of the public API run on: `folder` unless TEST_STORE names others. */
const store = process.env['TEST_STORE'] ?? 'folder';

/** What a test has, for what ends with the process: it may run several files. What was begun last ends first. */
const whole = { teardown: (end: () => unknown): void => void process.prependOnceListener('exit', end) };

let postgres: Promise<Postgres> | undefined;
let redis: Promise<Redis> | undefined;
let databases = 0;

/**
 * Options of the configuration, by path, for one service of a test: none, or with `TEST_STORE=postgres` those of a new
 * database in a PostgreSQL of this process, and with `TEST_STORE=redis` of a Redis too. Both end with the process.
 */
export async function engineFlags(): Promise<Readonly<Record<string, string>>> {
  if (store === 'folder') return {};
  if (store !== 'postgres' && store !== 'redis')
    throw new Error(`TEST_STORE must be folder, postgres or redis, not ${store}`);
  const missing = skipWithout(...POSTGRES, ...(store === 'redis' ? REDIS : []));
  if (missing !== false) throw new Error(missing);
  postgres ??= startPostgres(whole);
  const url = (await postgres).createDatabase(`service${++databases}`);
  if (store === 'postgres') return { 'store.url': url };
  redis ??= startRedis(whole);
  return { 'store.url': url, 'shared.url': `${(await redis).url}?prefix=service${databases}` };
}
