import t from 'tap';
import { type BusChannel, ipcBus } from '../../src/adapters/ipc/bus.ts';
import { channelPair } from '../../src/cluster/channel.ts';
import { busLine, Relay } from '../../src/cluster/relay.ts';
import { type Bus, MAX_WAITING } from '../../src/ports/bus.ts';

/** A cluster of buses around one relay. */
function cluster(size: number): { buses: Bus[]; heard: (number[] | undefined)[]; leave: (index: number) => void } {
  const relay = new Relay();
  const heard: (number[] | undefined)[] = Array.from({ length: size }, () => undefined);
  const ends = Array.from({ length: size }, () => {
    const [primary, worker] = channelPair();
    relay.add(primary);
    return worker;
  });
  const buses = ends.map((end) => ipcBus(busLine(end)));
  buses.forEach((bus, index) => bus.onAnnounce((position) => (heard[index] ??= []).push(position)));
  return { buses, heard, leave: (index) => ends[index]?.close() };
}

/** A line that nothing leaves and nothing comes through. */
const deaf: BusChannel = { onPeerCount: () => () => {}, sendHint: () => {}, onHint: () => () => {}, sendPublications: () => {}, onPublications: () => () => {} };

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise(setImmediate);
}

t.test('a hint reaches all workers but the one who gave it', async (t) => {
  const { buses, heard } = cluster(3);
  buses[1]?.announce(5);
  await turns(8);
  t.same(heard, [[5], undefined, [5]]);
});

t.test('hints of one turn travel as one, the highest', async (t) => {
  const { buses, heard } = cluster(2);
  for (const position of [3, 9, 7]) buses[0]?.announce(position);
  await turns(8);
  t.same(heard[1], [9]);
});

t.test('a hint for what others know already is not sent again', async (t) => {
  const { buses, heard } = cluster(2);
  buses[0]?.announce(9);
  await turns(8);
  buses[0]?.announce(9);
  buses[0]?.announce(4);
  await turns(8);
  t.same(heard[1], [9]);
});

t.test('while a hint is under way, those that follow become one', async (t) => {
  const sent: number[] = [];
  const left: (() => void)[] = [];
  const bus = ipcBus({
    ...deaf,
    sendHint: (position, done) => {
      sent.push(position);
      left.push(done);
    },
  });
  bus.announce(1);
  await turns(2);
  for (let position = 2; position <= 50; position++) {
    bus.announce(position);
    await turns(1);
  }
  t.same(sent, [1], 'a line that is not drained holds one');
  left.shift()?.();
  await turns(2);
  t.same(sent, [1, 50]);
});

t.test('a worker that has left is not in the way of others', async (t) => {
  const { buses, heard, leave } = cluster(3);
  leave(2);
  await turns(3);
  buses[0]?.announce(1);
  await turns(8);
  t.same(heard[1], [1]);
  t.equal(heard[2], undefined);
});

t.test('a worker that is alone sends nothing; what it has announced is heard by the next one that joins', async (t) => {
  const relay = new Relay();
  const [primary, end] = channelPair();
  const sent: string[] = [];
  primary.onMessage(({ type }) => sent.push(type));
  const bus = ipcBus(busLine(end));
  relay.add(primary);
  await turns(3);
  bus.announce(7);
  bus.publish({ topic: 'room', text: 'x' });
  await turns(8);
  t.same(sent, []);

  const [otherPrimary, other] = channelPair();
  const heard: number[] = [];
  ipcBus(busLine(other)).onAnnounce((position) => heard.push(position));
  relay.add(otherPrimary);
  await turns(12);
  t.same(sent, ['announce']);
  t.same(heard, [7]);
  other.close();
  await turns(3);
  bus.announce(8);
  await turns(8);
  t.same(sent, ['announce'], 'alone again');
});

t.test('what is published reaches all workers but its own, in order, a turn of it at once', async (t) => {
  const { buses } = cluster(3);
  const got: string[][] = [[], [], []];
  buses.forEach((bus, index) => bus.onPublish(({ topic, text }) => got[index]?.push(`${topic} ${text}`)));
  buses[1]?.publish({ topic: 'a', text: '1' });
  buses[1]?.publish({ topic: 'b', text: '2' });
  await turns(1);
  buses[1]?.publish({ topic: 'a', text: '3' });
  await turns(12);
  t.same(got, [['a 1', 'b 2', 'a 3'], [], ['a 1', 'b 2', 'a 3']]);
});

t.test('a line that is not drained holds so much of what is published, then loses', async (t) => {
  const sent: string[][] = [];
  const left: (() => void)[] = [];
  const bus = ipcBus({
    ...deaf,
    sendPublications: (publications, done) => {
      sent.push(publications.map(({ topic }) => topic));
      left.push(done);
    },
  });
  bus.publish({ topic: 'first', text: '' });
  await turns(2);
  bus.publish({ topic: 'waits', text: 'x'.repeat(MAX_WAITING - 10) });
  bus.publish({ topic: 'too much', text: 'x'.repeat(100) });
  bus.publish({ topic: 'fits', text: '' });
  await turns(2);
  left.shift()?.();
  await turns(2);
  t.same(sent, [['first'], ['waits', 'fits']]);
  left.shift()?.();
  bus.publish({ topic: 'again', text: 'x' });
  await turns(2);
  t.same(sent.at(-1), ['again']);
});
