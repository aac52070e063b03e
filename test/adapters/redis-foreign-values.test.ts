import fc from 'fast-check';
import t from 'tap';
import { Connection } from '../../src/adapters/redis/connection.ts';
import { openRedisShared } from '../../src/adapters/redis/open.ts';
import { LEASE_MS } from '../../src/ports/shared.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { anyCharacter } from '../helpers/any-character.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { REDIS, startRedis } from '../helpers/engines/redis.ts';

const WINDOW_MS = 60_000;
const DAY_MS = 86_400_000;
const START = Date.parse('2026-01-02T03:04:05.678Z');

/** Texts in place of numbers, times, leases and records; some are nearly what the script writes. */
const text = fc.oneof(
  fc.constantFrom(
    ...['', 'x', 'nan', 'inf', '-inf', '1e300', '-1', '0x10', '9'.repeat(30), '9007199254740991', '0 0', '1 1 1 w x'],
    ...['1 9007199254740991', '9007199254740991 1', `9 ${'9'.repeat(30)}`, '0 0 5', '7 nan', 'x'.repeat(100_000)],
  ),
  fc.string({ unit: anyCharacter, maxLength: 20 }),
);
const field = fc.oneof(fc.constantFrom('k', 'w', 'n', 'ow', 'e1', 'e9'), text);
/** Commands that write a value of any type to a key. */
const value = fc.oneof(
  text.map((value) => (key: string) => ['SET', key, value]),
  fc.array(text, { minLength: 1, maxLength: 4 }).map((values) => (key: string) => ['RPUSH', key, ...values]),
  fc
    .array(fc.tuple(field, text), { minLength: 1, maxLength: 4 })
    .map((all) => (key: string) => ['HSET', key, ...all.flat()]),
  text.map((value) => (key: string) => ['SADD', key, value]),
  fc.constant((key: string) => ['ZADD', key, '1', 'x']),
  fc.constant((key: string) => ['XADD', key, '*', 'a', 'b']),
);
/** Where they are written: the time, the leases, what each kind of call uses, and keys that no call has. */
const written = fc.uniqueArray(
  fc.tuple(fc.constantFrom('t', 'l', 'h:k', 'b:k', 'c:k', 'r:k', 'h:', 'r:other', 'c:other', 'x:y', 'h'), value),
  { selector: ([key]) => key, minLength: 1, maxLength: 8 },
);

t.test(
  'whatever another program writes under our keys, each call is answered and nothing stays for ever',
  { skip: skipWithout(...REDIS), timeout: 120_000 },
  async (t) => {
    const redis = await startRedis(t);
    const login = { username: undefined, password: undefined, database: 0, tls: false, answerMs: 30_000 } as const;
    const admin = await Connection.open({ host: '127.0.0.1', port: redis.port }, login);
    t.teardown(() => admin.end(new Error('the test has ended')));
    const clock = new ManualClock(START);
    const named = new Set<string>();
    const onForeign = (keys: readonly string[]): void => keys.forEach((key) => named.add(key));
    const shared = await openRedisShared({ url: redis.url, clock, answerMs: 30_000, onForeign });
    t.teardown(() => shared.close());
    const check = (is: boolean, what: string): void => {
      if (!is) throw new Error(what);
    };
    const hits = (): Promise<boolean> => shared.hit('k', 3, WINDOW_MS).then(({ allowed }) => allowed);
    const budget = { amount: 1, limit: 3, windowMs: WINDOW_MS };
    const spends = (): Promise<boolean> => shared.spend('k', budget).then(({ allowed }) => allowed);
    await fc.assert(
      fc.asyncProperty(written, async (all) => {
        await admin.send(['FLUSHDB']);
        await shared.beginLease('w');
        await Promise.all([hits(), spends(), shared.count('k', 'w', 1)]);
        await shared.put({ key: 'k', name: 'n', owner: 'w', text: 'before' });
        const answers = await admin.exchange(
          all.flatMap(([key, write]) => [['DEL', `{collab}:${key}`], write(`{collab}:${key}`)]),
        );
        const refused = answers.find((answer) => answer instanceof Error);
        if (refused !== undefined) throw refused;
        if (!(await shared.renewLease('w'))) await shared.beginLease('w');
        await Promise.all([hits(), hits(), spends(), shared.get('k', 'n'), shared.list('k'), shared.total('k')]);
        await shared.sweep(WINDOW_MS);
        const counted = await shared.count('k', 'w', 1);
        check(counted >= 1 && counted <= 2, `counted ${counted}`);
        await shared.put({ key: 'k', name: 'n', owner: 'w', text: 'after' });
        const found = (await shared.list('k')).find(({ name }) => name === 'n');
        check(found?.owner === 'w' && found.text === 'after', `the record is ${JSON.stringify(found)}`);
        check((await shared.get('k', 'n'))?.text === 'after', 'one record is read');
        check(await shared.renewLease('w'), 'the lease goes on');
        clock.advance(3 * WINDOW_MS);
        check(await hits(), 'the window is open again');
        check(await spends(), 'the budget is there again');
        check((await shared.total('k')) === 0, 'an owner that is gone counts');
        check(!(await shared.list('k')).some(({ owner }) => owner === 'w'), 'an owner that is gone is shown');
        clock.advance(2 * DAY_MS - LEASE_MS);
        await shared.sweep(WINDOW_MS);
        check((await shared.list('k')).length === 0, 'something is shown for ever');
      }),
      { numRuns: 150 },
    );
    for (const key of ['t', 'l', 'h:k', 'b:k', 'c:k', 'r:k']) t.ok(named.has(`{collab}:${key}`), `${key} was named`);
    t.notOk(named.has('{collab}:x:y'), 'what no call uses is left alone');
  },
);
