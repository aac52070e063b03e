import t from 'tap';
import { ipcBus } from '../../src/adapters/ipc/bus.ts';
import { twinChannels } from '../../src/cluster/channel.ts';
import { AnnounceRelay, hintLine } from '../../src/cluster/relay.ts';
import type { Bus } from '../../src/ports/bus.ts';

/** A cluster of buses around one relay. */
function cluster(size: number): { buses: Bus[]; heard: (number[] | undefined)[]; leave: (index: number) => void } {
  const relay = new AnnounceRelay();
  const heard: (number[] | undefined)[] = Array.from({ length: size }, () => undefined);
  const ends = Array.from({ length: size }, () => {
    const [primary, worker] = twinChannels();
    relay.add(primary);
    return worker;
  });
  const buses = ends.map((end) => ipcBus(hintLine(end)));
  buses.forEach((bus, index) => bus.onAnnounce((position) => (heard[index] ??= []).push(position)));
  return { buses, heard, leave: (index) => ends[index]?.close() };
}

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
    send: (position, done) => {
      sent.push(position);
      left.push(done);
    },
    listen: () => () => {},
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
