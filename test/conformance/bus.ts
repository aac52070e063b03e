import type { Test } from 'tap';
import {
  type Announcement,
  type Bus,
  laterPosition,
  MAX_ANNOUNCED,
  MAX_WAITING,
  type Subscription,
} from '../../src/ports/bus.ts';
import type { Growth } from '../../src/ports/store.ts';
import { until } from '../helpers/cluster.ts';

/** The bus of one process, with what it has received since it was opened. */
interface Member {
  readonly bus: Bus;
  readonly announcements: Announcement[];
  /** The highest announced position of each stream; null for its end. */
  readonly positions: Map<string, number | null>;
  /** `topic text` */
  readonly publications: string[];
}

type Members = readonly [Member, Member, Member];

const END = 'end ';

/** What every member has subscribed to. */
const TOPICS = ['end', 'from 0', 'from 1', 'from 2', 'long', 'lost', 'short', 'later', 'a'];

function listen({ bus, publications }: Member, topic: string): Subscription {
  return bus.subscribe(topic, (text) => publications.push(`${topic} ${text}`));
}

/**
 * Publishes an end mark from each member and waits until the others have it. As publications arrive in order,
 * everything that was published before has arrived then, or never will.
 */
async function drain(members: Members): Promise<void> {
  const before = members.map(({ publications }) => publications.filter((line) => line === END).length);
  for (const { bus } of members) bus.publish({ topic: 'end', text: '' });
  await until(() =>
    members.every(({ publications }, i) => publications.filter((line) => line === END).length === (before[i] ?? 0) + 2),
  );
}

/** An announcement of streams, by name. */
const growth = (positions: Readonly<Record<string, number | null>>): Growth => new Map(Object.entries(positions));
const textOf = (announcement: Announcement): string =>
  JSON.stringify(announcement === null ? null : Object.fromEntries(announcement));

const textsOf = ({ publications }: Member): string[] => publications.filter((line) => line !== END);

/**
 * Asserts every sentence of ports/bus.ts for an adapter.
 *
 * @param open opens the buses of three processes of a new cluster; they are closed by a teardown of the test
 */
export async function busConformance(t: Test, open: (t: Test) => Promise<readonly [Bus, Bus, Bus]>): Promise<void> {
  const withMembers = (name: string, run: (t: Test, members: Members) => Promise<void>): Promise<unknown> =>
    t.test(name, async (t) => {
      const [one, two, three] = (await open(t)).map((bus): Member => {
        const member: Member = { bus, announcements: [], positions: new Map(), publications: [] };
        bus.onAnnounce((announcement) => {
          member.announcements.push(announcement);
          for (const [stream, seq] of announcement ?? [])
            member.positions.set(stream, laterPosition(member.positions.get(stream) ?? 0, seq));
        });
        return member;
      });
      if (one === undefined || two === undefined || three === undefined) throw new Error('three buses were expected');
      const members: Members = [one, two, three];
      await Promise.all(members.flatMap((member) => TOPICS.map((topic) => listen(member, topic).ready)));
      await run(t, members);
    });

  await withMembers('an announcement reaches every other process', async (t, members) => {
    const [one, two, three] = members;
    one.bus.announce(growth({ a: 5 }));
    await until(() => [two, three].every(({ positions }) => positions.get('a') === 5));
    two.bus.announce(growth({ a: 7, b: 1 }));
    await until(() => [one, three].every(({ positions }) => positions.get('a') === 7));
    await drain(members);
    t.strictSame(
      members.map(({ positions }) => Object.fromEntries(positions)),
      [{ a: 7, b: 1 }, { a: 5 }, { a: 7, b: 1 }],
      'and not its sender',
    );
  });

  await withMembers(
    'announcements of one event loop iteration are sent as one, with the highest position of each stream',
    async (t, members) => {
      const [one, two, three] = members;
      for (const [stream, position] of [
        ['a', 3],
        ['b', 1],
        ['a', 9],
        ['a', 7],
        ['b', 2],
      ] as const)
        one.bus.announce(growth({ [stream]: position }));
      await drain(members);
      for (const { announcements } of [two, three])
        t.strictSame([...new Set(announcements.map(textOf))], ['{"a":9,"b":2}'], 'repeated at most');
      one.bus.announce(growth({ a: 10 }));
      await drain(members);
      for (const { announcements } of [two, three])
        t.equal(textOf(announcements.at(-1) ?? null), '{"a":10}', 'only what is new');
    },
  );

  await withMembers('the end of a stream stands for every position of it', async (t, members) => {
    const [one, two, three] = members;
    for (const seq of [3, null, 4]) one.bus.announce(growth({ a: seq }));
    await drain(members);
    for (const { positions } of [two, three]) t.equal(positions.get('a'), null);
  });

  await withMembers('more than MAX_ANNOUNCED streams are announced as any stream', async (t, members) => {
    const [one, two, three] = members;
    for (let i = 0; i < MAX_ANNOUNCED; i++) one.bus.announce(growth({ [`s${i}`]: i }));
    await until(() => [two, three].every(({ positions }) => positions.size === MAX_ANNOUNCED));
    for (let i = 0; i <= MAX_ANNOUNCED; i++) one.bus.announce(growth({ [`t${i}`]: i }));
    await until(() => [two, three].every(({ announcements }) => announcements.includes(null)));
    one.bus.announce(growth({ later: 1 }));
    await until(() => [two, three].every(({ positions }) => positions.get('later') === 1));
    t.strictSame(
      [two, three].map(({ positions }) => positions.size),
      [MAX_ANNOUNCED + 1, MAX_ANNOUNCED + 1],
    );
  });

  await withMembers('an announcement of any stream is passed on, one of no stream is not', async (t, members) => {
    const [one, two, three] = members;
    one.bus.announce(new Map());
    await drain(members);
    for (const { announcements } of members) t.strictSame(announcements, []);
    one.bus.announce(growth({ a: 1 }));
    one.bus.announce(null);
    await until(() => [two, three].every(({ announcements }) => announcements.includes(null)));
    await drain(members);
    t.strictSame(one.announcements, []);
  });

  await withMembers(
    'a publication reaches every other process once, in the order of its sender',
    async (t, members) => {
      const expected: string[][] = [[], [], []];
      for (let round = 0; round < 30; round++) {
        for (const [i, { bus }] of members.entries()) {
          for (const part of ['first', 'second']) {
            bus.publish({ topic: `from ${i}`, text: `${round} ${part} ü😀` });
            for (const [receiver, texts] of expected.entries())
              if (receiver !== i) texts.push(`from ${i} ${round} ${part} ü😀`);
          }
        }
        if (round % 3 === 0) await new Promise(setImmediate);
      }
      await drain(members);
      for (const [receiver, member] of members.entries()) {
        for (const sender of members.keys()) {
          const from = (lines: readonly string[] | undefined): string[] =>
            (lines ?? []).filter((line) => line.startsWith(`from ${sender} `));
          t.strictSame(from(textsOf(member)), from(expected[receiver]), `from ${sender} to ${receiver}`);
        }
      }
    },
  );

  await withMembers('a publication reaches the processes that have subscribed to its topic', async (t, members) => {
    const [one, two, three] = members;
    const [before, prefix] = [listen(two, 'room/1'), listen(three, 'room')];
    await Promise.all([before.ready, prefix.ready]);
    // In the same iteration in which it is ready.
    one.bus.publish({ topic: 'room/1', text: 'first' });
    two.bus.publish({ topic: 'room/1', text: 'own' });
    one.bus.publish({ topic: 'room/2', text: 'of another' });
    await drain(members);
    t.strictSame(members.map(textsOf), [[], ['room/1 first'], []]);

    before.stop();
    const again = listen(three, 'room/1');
    await again.ready;
    one.bus.publish({ topic: 'room/1', text: 'second' });
    await drain(members);
    t.strictSame(members.map(textsOf), [[], ['room/1 first'], ['room/1 second']]);

    again.stop();
    await Promise.all([listen(three, 'room/1').ready, listen(two, 'room/1').ready]);
    one.bus.publish({ topic: 'room/1', text: 'third' });
    await drain(members);
    t.strictSame(
      members.map((member) => textsOf(member).slice(1)),
      [[], ['room/1 third'], ['room/1 third']],
    );
  });

  await withMembers(
    'a subscription that is stopped is ready, and ends no other one of its topic',
    async (t, members) => {
      const [one, two] = members;
      const [stopped, other] = [listen(two, 'room'), listen(two, 'room')];
      stopped.stop();
      await Promise.all([stopped.ready, other.ready]);
      one.bus.publish({ topic: 'room', text: 'x' });
      await drain(members);
      t.strictSame(textsOf(two), ['room x']);
      const early = listen(two, 'early');
      early.stop();
      await early.ready;
      one.bus.publish({ topic: 'early', text: 'x' });
      await drain(members);
      t.strictSame(textsOf(two), ['room x']);
    },
  );

  await withMembers(
    'what would make more than MAX_WAITING characters wait is lost, and nothing else',
    async (t, members) => {
      const [one, two, three] = members;
      one.bus.publish({ topic: 'long', text: 'x'.repeat(MAX_WAITING - 100) });
      one.bus.publish({ topic: 'lost', text: 'x'.repeat(100) });
      one.bus.publish({ topic: 'short', text: 'fits' });
      one.bus.publish({ topic: 'lost', text: 'x'.repeat(MAX_WAITING) });
      await until(() => [two, three].every(({ publications }) => publications.length === 2));
      one.bus.publish({ topic: 'later', text: 'arrives' });
      await drain(members);
      for (const member of [two, three])
        t.strictSame(
          textsOf(member).map((line) => line.split(' ', 1).join()),
          ['long', 'short', 'later'],
        );
    },
  );

  await withMembers('a listener is called until it unsubscribes, beside other listeners', async (t, members) => {
    const [one, two] = members;
    const received: string[] = [];
    const stops = [two.bus.onAnnounce((announcement) => received.push(textOf(announcement)))];
    const subscription = two.bus.subscribe('a', (text) => received.push(text));
    await subscription.ready;
    one.bus.announce(growth({ a: 1 }));
    await until(() => two.announcements.length > 0);
    one.bus.publish({ topic: 'a', text: 'while subscribed' });
    await until(() => textsOf(two).length === 1);
    t.strictSame([...new Set(received)], ['{"a":1}', 'while subscribed']);
    for (const stop of [...stops, subscription.stop, subscription.stop]) stop();
    const count = received.length;
    one.bus.announce(growth({ a: 2 }));
    one.bus.publish({ topic: 'a', text: 'afterwards' });
    await until(() => two.positions.get('a') === 2 && textsOf(two).length === 2);
    t.equal(received.length, count);
  });
}
