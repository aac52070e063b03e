import t from 'tap';
import { ipcBus } from '../../src/adapters/ipc/bus.ts';
import { channelPair } from '../../src/cluster/channel.ts';
import { Relay } from '../../src/cluster/relay.ts';
import type { Bus } from '../../src/ports/bus.ts';

/** A cluster of buses around one relay. */
function cluster(size: number): { buses: Bus[]; heard: (number[] | undefined)[]; leave: (index: number) => void } {
  const relay = new Relay();
  const heard: (number[] | undefined)[] = Array.from({ length: size }, () => undefined);
  const ends = Array.from({ length: size }, () => {
    const [primary, worker] = channelPair();
    relay.add(primary);
    return worker;
  });
  const buses = ends.map((end) => ipcBus(end));
  buses.forEach((bus, index) => bus.onAnnounce((position) => (heard[index] ??= []).push(position)));
  return { buses, heard, leave: (index) => ends[index]?.close() };
}

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise(setImmediate);
}

t.test('a hint reaches all workers except its sender', async (t) => {
  const { buses, heard } = cluster(3);
  buses[1]?.announce(5);
  await turns(8);
  t.same(heard, [[5], undefined, [5]]);
});

t.test('hints of one event loop iteration are sent as one, the highest', async (t) => {
  const { buses, heard } = cluster(2);
  for (const position of [3, 9, 7]) buses[0]?.announce(position);
  await turns(8);
  t.same(heard[1], [9]);
});

t.test('a hint that the others have received already is not sent again', async (t) => {
  const { buses, heard } = cluster(2);
  buses[0]?.announce(9);
  await turns(8);
  buses[0]?.announce(9);
  buses[0]?.announce(4);
  await turns(8);
  t.same(heard[1], [9]);
});

t.test('a worker that has left does not affect the others', async (t) => {
  const { buses, heard, leave } = cluster(3);
  leave(2);
  await turns(3);
  buses[0]?.announce(1);
  await turns(8);
  t.same(heard[1], [1]);
  t.equal(heard[2], undefined);
});

t.test('a worker that is alone sends nothing; the next worker that joins receives what it announced', async (t) => {
  const relay = new Relay();
  const [primary, end] = channelPair();
  const sent: string[] = [];
  primary.onMessage(({ type }) => sent.push(type));
  const bus = ipcBus(end);
  relay.add(primary);
  await turns(3);
  bus.announce(7);
  bus.publish({ topic: 'room', text: 'x' });
  await turns(8);
  t.same(sent, []);

  const [otherPrimary, other] = channelPair();
  const heard: number[] = [];
  ipcBus(other).onAnnounce((position) => heard.push(position));
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

t.test('publications reach all workers except their sender, in order, batched per event loop iteration', async (t) => {
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
