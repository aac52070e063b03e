import t, { type Test } from 'tap';
import { openPostgresBus, type PostgresBus } from '../../src/adapters/postgres/bus/bus.ts';
import type { ListenerBounds } from '../../src/adapters/postgres/bus/listener.ts';
import { Assembler, payloadsOf } from '../../src/adapters/postgres/bus/payloads.ts';
import { Connection } from '../../src/adapters/postgres/connection.ts';
import { parseTarget } from '../../src/adapters/postgres/target.ts';
import type { Announcement } from '../../src/ports/bus.ts';
import { until } from '../helpers/cluster.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { POSTGRES, startPgbouncer, startPostgres } from '../helpers/engines/postgres.ts';
import { startTcpProxy } from '../helpers/engines/tcp-proxy.ts';

const skip = skipWithout(...POSTGRES, 'pgbouncer');

/** A bus with what it has heard. */
interface Member {
  readonly bus: PostgresBus;
  readonly announcements: Announcement[];
  readonly texts: string[];
  /** What was told of trouble; null for its end. */
  readonly troubles: (string | null)[];
}

async function join(t: Test, url: string, bounds: Partial<ListenerBounds> = { deafMs: 30_000 }): Promise<Member> {
  const [announcements, texts, troubles] = [[], [], []] as [Announcement[], string[], (string | null)[]];
  const bus = await openPostgresBus({ option: 'store.url', url, bounds, onTrouble: (said) => troubles.push(said) });
  t.teardown(() => bus.close());
  bus.onAnnounce((announcement) => announcements.push(announcement));
  bus.subscribe('room', (text) => texts.push(text));
  return { bus, announcements, texts, troubles };
}

/** Publishes until the other one has heard it: the first ones may be lost. */
async function publishUntilHeard(from: Member, to: Member, text: string): Promise<void> {
  await until(() => {
    from.bus.publish({ topic: 'room', text });
    return to.texts.includes(text);
  });
}

await t.test('a message is split between characters, and one whose beginning was missed is dropped', async (t) => {
  const text = `${'a'.repeat(7_899)}😀${'ü'.repeat(9_000)}'\\`;
  const payloads = payloadsOf({ sender: 'one', kind: 'publish', text });
  t.equal(payloads.length, 4);
  t.ok(payloads.every((payload) => Buffer.byteLength(payload) < 8_000));
  const assembler = new Assembler();
  const add = (some: readonly string[]): unknown => some.map((payload) => assembler.add(payload)).at(-1);
  t.strictSame(add(payloads), { sender: 'one', kind: 'publish', text });
  t.equal(add(payloads.slice(1)), null);
  add(payloads.slice(0, 2));
  assembler.clear();
  t.equal(add(payloads.slice(2)), null);
  t.strictSame(add(payloadsOf({ sender: 'two', kind: 'beacon', text: '' })), {
    sender: 'two',
    kind: 'beacon',
    text: '',
  });
  t.equal(assembler.add('what another program sends'), null);
});

if (skip !== false) await t.test('on PostgreSQL', { skip }, () => {});
else {
  const postgres = await startPostgres(t);
  const terminate = (): string =>
    postgres.sql("select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'collab bus'");

  await t.test('ended connections and a killed server are made up for by an announcement of any stream', async (t) => {
    const [one, two] = [await join(t, postgres.url), await join(t, postgres.url)];
    await publishUntilHeard(one, two, 'before');
    terminate();
    await until(() => two.announcements.includes(null) && one.announcements.includes(null));
    await publishUntilHeard(one, two, 'after');
    two.announcements.length = 0;
    await postgres.kill();
    // It cannot be sent, and must not be forgotten.
    one.bus.announce(new Map([['s', 1]]));
    await until(() => !two.bus.isHearing);
    const late = two.bus.subscribe('late', (text) => two.texts.push(text));
    let isReady = false;
    void late.ready.then(() => (isReady = true));
    await new Promise(setImmediate);
    t.equal(isReady, false, 'while nothing is heard');
    await postgres.restart();
    await late.ready;
    await until(() => two.announcements.length > 0);
    await publishUntilHeard(one, two, 'at last');
    await until(() => {
      // The first may be merged with the announcement of any stream, which makes up for what could not be sent.
      one.bus.announce(new Map([['s', 2]]));
      return two.announcements.some((announcement) => announcement?.get('s') === 2);
    });
    t.equal(two.troubles.at(-1), null);
    t.equal(two.troubles.filter((said) => said !== null).length, 2, 'each trouble is told once');
    t.match(
      two.troubles.find((said) => said !== null),
      /does not hear the others/,
    );
  });

  await t.test('behind a pooler in transaction mode it says once that it hears nothing, and is heard', async (t) => {
    const pgbouncer = await startPgbouncer(t, postgres);
    const [deaf, hearing] = [
      await join(t, pgbouncer.url, { deafMs: 300, retryDeafMs: 20 }),
      await join(t, postgres.url),
    ];
    await until(() => deaf.troubles.length > 0);
    let isReady = false;
    void deaf.bus.subscribe('other', () => {}).ready.then(() => (isReady = true));
    await publishUntilHeard(deaf, hearing, 'from behind');
    deaf.bus.announce(new Map([['s', 3]]));
    await until(() => hearing.announcements.some((announcement) => announcement?.get('s') === 3));
    t.equal(isReady, false);
    t.equal(deaf.troubles.length, 1);
    t.match(deaf.troubles[0] ?? '', /pooler in transaction mode: let the URL name PostgreSQL itself/);
  });

  await t.test('a connection over which nothing arrives any more is replaced', async (t) => {
    const proxy = await startTcpProxy(t, postgres.port);
    const [one, two] = [
      await join(t, postgres.url),
      await join(t, postgres.url.replace(String(postgres.port), String(proxy.port)), { beaconMs: 50, deafMs: 1_000 }),
    ];
    await publishUntilHeard(one, two, 'before');
    // One of them is that over which it hears; a new one is not paused.
    for (const { server } of proxy.links) server.pause();
    two.announcements.length = 0;
    await until(() => two.announcements.includes(null));
    await publishUntilHeard(one, two, 'after');
    t.match(
      two.troubles.find((said) => said !== null),
      /does not hear/,
    );
  });

  await t.test('what another version or another program sends on the channels ends no process', async (t) => {
    const [one, two] = [await join(t, postgres.url), await join(t, postgres.url)];
    await publishUntilHeard(one, two, 'before');
    for (const text of ['', 'no JSON', '{}', '7', '[7]', '[["s"]]', '[["s","x"]]']) {
      postgres.sql(`select pg_notify('collab_growth', 'other announce 0/1 ${text}')`);
      postgres.sql(`select pg_notify('collab_topics', 'other publish 0/1 ${text}')`);
    }
    postgres.sql(`select pg_notify('collab_topics', 'other publish 0/1 [7, ["room", 7], ["room", "read"]]')`);
    await until(() => two.texts.includes('read'));
    t.ok(two.announcements.length > 0, 'any stream may have grown');
    t.strictSame(
      two.announcements.filter((announcement) => announcement !== null),
      [],
    );
    await publishUntilHeard(one, two, 'after');
    t.strictSame([...new Set(two.texts)], ['before', 'read', 'after']);
  });

  await t.test('a listener of somebody else in a transaction keeps nothing back', async (t) => {
    const stuck = await Connection.open(parseTarget('store.url', postgres.url), 'stuck');
    t.teardown(() => stuck.close());
    await stuck.run('listen collab_growth; listen collab_topics');
    await stuck.run('begin; select 1');
    const [one, two] = [await join(t, postgres.url), await join(t, postgres.url)];
    await publishUntilHeard(one, two, 'x'.repeat(100_000));
    t.ok(two.bus.isHearing);
  });
}
