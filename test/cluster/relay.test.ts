import t from 'tap';
import { ipcBus } from '../../src/adapters/ipc/bus.ts';
import { channelPair } from '../../src/cluster/channel.ts';
import { Relay } from '../../src/cluster/relay.ts';
import type { Announcement, Bus } from '../../src/ports/bus.ts';

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
  buses.forEach((bus, index) =>
    bus.onAnnounce((announcement) => (heard[index] ??= []).push(announcement?.get('a') ?? 0)),
  );
  return { buses, heard, leave: (index) => ends[index]?.close() };
}

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise(setImmediate);
}

t.test('an announcement reaches all workers except its sender', async (t) => {
  const { buses, heard } = cluster(3);
  buses[1]?.announce(new Map([['a', 5]]));
  await turns(8);
  t.same(heard, [[5], undefined, [5]]);
});

t.test('announcements of one event loop iteration are sent as one, the highest of each stream', async (t) => {
  const { buses, heard } = cluster(2);
  for (const position of [3, 9, 7]) buses[0]?.announce(new Map([['a', position]]));
  await turns(8);
  t.same(heard[1], [9]);
});

t.test('announcements of several workers are merged', async (t) => {
  const { buses, heard } = cluster(3);
  buses[0]?.announce(new Map([['a', 9]]));
  buses[1]?.announce(new Map([['a', 4]]));
  await turns(8);
  t.same(heard, [[4], [9], [9]]);
});

t.test('a worker that has left does not affect the others', async (t) => {
  const { buses, heard, leave } = cluster(3);
  leave(2);
  await turns(3);
  buses[0]?.announce(new Map([['a', 1]]));
  await turns(8);
  t.same(heard[1], [1]);
  t.equal(heard[2], undefined);
});

t.test(
  'a worker that is alone sends nothing; the next worker that joins is told that it announced something',
  async (t) => {
    const relay = new Relay();
    const [primary, end] = channelPair();
    const sent: string[] = [];
    primary.onMessage(({ type }) => sent.push(type));
    const bus = ipcBus(end);
    relay.add(primary);
    await turns(8);
    sent.length = 0;
    bus.announce(new Map([['a', 7]]));
    bus.publish({ topic: 'room', text: 'x' });
    await turns(8);
    t.same(sent, []);

    const [otherPrimary, other] = channelPair();
    const heard: Announcement[] = [];
    ipcBus(other).onAnnounce((announcement) => heard.push(announcement));
    relay.add(otherPrimary);
    await turns(12);
    t.same(sent, ['announce']);
    t.same(heard, [null], 'which may be any stream');
    other.close();
    await turns(3);
    bus.announce(new Map([['a', 8]]));
    await turns(8);
    t.same(sent, ['announce'], 'alone again');
  },
);

t.test('publications reach all workers except their sender, in order, batched per event loop iteration', async (t) => {
  const { buses } = cluster(3);
  const got: string[][] = [[], [], []];
  const subscriptions = buses.flatMap((bus, index) =>
    ['a', 'b'].map((topic) => bus.subscribe(topic, (text) => got[index]?.push(`${topic} ${text}`))),
  );
  await Promise.all(subscriptions.map(({ ready }) => ready));
  buses[1]?.publish({ topic: 'a', text: '1' });
  buses[1]?.publish({ topic: 'b', text: '2' });
  await turns(1);
  buses[1]?.publish({ topic: 'a', text: '3' });
  await turns(12);
  t.same(got, [['a 1', 'b 2', 'a 3'], [], ['a 1', 'b 2', 'a 3']]);
});

t.test('a worker is sent only what it listens to, and the others send nothing that nobody listens to', async (t) => {
  const relay = new Relay();
  const join = (subscribes: boolean) => {
    const [primary, end] = channelPair();
    const sent: string[] = [];
    const received: string[] = [];
    primary.onMessage(({ type }) => sent.push(type));
    end.onMessage(({ type }) => received.push(type));
    const bus = ipcBus(end, { subscribes });
    relay.add(primary);
    const forget = (): void => void (sent.length = received.length = 0);
    return { bus, sent, received, forget };
  };
  const [one, two, background] = [join(true), join(true), join(false)];
  t.throws(() => background.bus.subscribe('room', () => {}), { message: /to subscribe to no topic/ });
  const { ready, stop } = two.bus.subscribe('room', () => {});
  await ready;
  await turns(8);
  for (const { forget } of [one, two, background]) forget();

  one.bus.announce(new Map([['a', 1]]));
  one.bus.publish({ topic: 'room', text: 'x' });
  one.bus.publish({ topic: 'other room', text: 'x' });
  await turns(8);
  t.same(one.sent, ['publish']);
  t.same(two.received, ['publish']);
  two.forget();
  one.bus.publish({ topic: 'other room', text: 'y' });
  await turns(8);
  t.same(two.received, [], 'nothing of other topics');
  t.same(background.received, []);

  for (const room of ['1', '2', '3']) two.bus.subscribe(room, () => {});
  stop();
  await turns(8);
  t.same(two.sent, ['topics'], 'what is subscribed to in one iteration is one message');
  one.bus.publish({ topic: 'room', text: 'y' });
  await turns(8);
  t.same(two.received, ['subscribed'], 'nothing after the end of the subscription');
  one.forget();
  two.bus.publish({ topic: 'room', text: 'y' });
  await turns(8);
  t.same(one.received, [], 'nor to one that has subscribed to nothing');

  const heard: Announcement[] = [];
  two.bus.onAnnounce((announcement) => heard.push(announcement));
  await turns(12);
  t.same(heard, [null], 'what was announced before anybody listened may be of any stream');
  one.bus.announce(new Map([['a', 2]]));
  await turns(8);
  t.same(heard, [null, new Map([['a', 2]])]);
  t.same(one.received, ['peers'], 'a worker is told only what has changed');
});

t.test('where no other worker subscribes to topics, nothing is published', async (t) => {
  const relay = new Relay();
  const sent: string[] = [];
  const [web, background] = [channelPair(), channelPair()];
  web[0].onMessage(({ type }) => sent.push(type));
  const bus = ipcBus(web[1]);
  ipcBus(background[1], { subscribes: false });
  for (const [primary] of [web, background]) relay.add(primary);
  await turns(8);
  sent.length = 0;
  bus.publish({ topic: 'room', text: 'x' });
  await turns(8);
  t.same(sent, []);
});
