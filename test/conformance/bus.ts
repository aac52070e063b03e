import type { Test } from 'tap';
import { type Bus, MAX_WAITING } from '../../src/ports/bus.ts';
import { until } from '../helpers/cluster.ts';

/** The bus of one process, with what it has received since it was opened. */
interface Member {
  readonly bus: Bus;
  readonly positions: number[];
  /** `topic text` */
  readonly publications: string[];
}

type Members = readonly [Member, Member, Member];

const END = 'end ';

/**
 * Publishes an end mark from each member and waits until the others have it. As publications arrive in order, everything
 * that was published before has arrived then, or never will.
 */
async function drain(members: Members): Promise<void> {
  const before = members.map(({ publications }) => publications.filter((line) => line === END).length);
  for (const { bus } of members) bus.publish({ topic: 'end', text: '' });
  await until(() => members.every(({ publications }, i) => publications.filter((line) => line === END).length === (before[i] ?? 0) + 2));
}

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
        const member: Member = { bus, positions: [], publications: [] };
        bus.onAnnounce((position) => member.positions.push(position));
        bus.onPublish(({ topic, text }) => member.publications.push(`${topic} ${text}`));
        return member;
      });
      if (one === undefined || two === undefined || three === undefined) throw new Error('three buses were expected');
      await run(t, [one, two, three]);
    });

  await withMembers('an announcement reaches every other process', async (t, members) => {
    const [one, two, three] = members;
    one.bus.announce(5);
    await until(() => [two, three].every(({ positions }) => positions.includes(5)));
    two.bus.announce(7);
    await until(() => [one, three].every(({ positions }) => positions.includes(7)));
    await drain(members);
    // Announcements may be repeated.
    t.strictSame(members.map(({ positions }) => [...new Set(positions)]), [[7], [5], [5, 7]], 'and not its sender');
  });

  await withMembers('announcements of one event loop iteration are sent as the highest, lower ones later not at all', async (t, members) => {
    const [one, two, three] = members;
    for (const position of [3, 9, 7]) one.bus.announce(position);
    await until(() => [two, three].every(({ positions }) => positions.includes(9)));
    one.bus.announce(9);
    one.bus.announce(4);
    await drain(members);
    one.bus.announce(10);
    await until(() => [two, three].every(({ positions }) => positions.includes(10)));
    t.strictSame([two, three].map(({ positions }) => [...new Set(positions)]), [[9, 10], [9, 10]]);
  });

  await withMembers('a publication reaches every other process once, in the order of its sender', async (t, members) => {
    const expected: string[][] = [[], [], []];
    for (let round = 0; round < 30; round++) {
      for (const [i, { bus }] of members.entries()) {
        for (const part of ['first', 'second']) {
          bus.publish({ topic: `from ${i}`, text: `${round} ${part} ü😀` });
          for (const [receiver, texts] of expected.entries()) if (receiver !== i) texts.push(`from ${i} ${round} ${part} ü😀`);
        }
      }
      if (round % 3 === 0) await new Promise(setImmediate);
    }
    await drain(members);
    for (const [receiver, member] of members.entries()) {
      for (const sender of members.keys()) {
        const from = (lines: readonly string[] | undefined): string[] => (lines ?? []).filter((line) => line.startsWith(`from ${sender} `));
        t.strictSame(from(textsOf(member)), from(expected[receiver]), `from ${sender} to ${receiver}`);
      }
    }
  });

  await withMembers('what would make more than MAX_WAITING characters wait is lost, and nothing else', async (t, members) => {
    const [one, two, three] = members;
    one.bus.publish({ topic: 'long', text: 'x'.repeat(MAX_WAITING - 100) });
    one.bus.publish({ topic: 'lost', text: 'x'.repeat(100) });
    one.bus.publish({ topic: 'short', text: 'fits' });
    one.bus.publish({ topic: 'lost', text: 'x'.repeat(MAX_WAITING) });
    await until(() => [two, three].every(({ publications }) => publications.length === 2));
    one.bus.publish({ topic: 'later', text: 'arrives' });
    await drain(members);
    for (const member of [two, three]) t.strictSame(textsOf(member).map((line) => line.split(' ', 1).join()), ['long', 'short', 'later']);
  });

  await withMembers('a listener is called until it unsubscribes, beside other listeners', async (t, members) => {
    const [one, two] = members;
    const received: (string | number)[] = [];
    const stops = [two.bus.onAnnounce((position) => received.push(position)), two.bus.onPublish(({ text }) => received.push(text))];
    one.bus.announce(1);
    await until(() => two.positions.length > 0);
    one.bus.publish({ topic: 'a', text: 'while subscribed' });
    await until(() => textsOf(two).length === 1);
    t.strictSame([...new Set(received)], [1, 'while subscribed']);
    for (const stop of stops) stop();
    const count = received.length;
    one.bus.announce(2);
    one.bus.publish({ topic: 'a', text: 'afterwards' });
    await until(() => two.positions.includes(2) && textsOf(two).length === 2);
    t.equal(received.length, count);
  });
}
