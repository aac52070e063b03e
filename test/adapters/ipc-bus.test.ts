import t from 'tap';
import { ipcBus } from '../../src/adapters/ipc/bus.ts';
import { channelPair } from '../../src/cluster/channel.ts';
import { Relay } from '../../src/cluster/relay.ts';
import { type Bus, MAX_WAITING } from '../../src/ports/bus.ts';
import type { BusMessage } from '../../src/ports/bus-messages.ts';
import { busConformance } from '../conformance/bus.ts';

/** Opens a bus that `relay` connects with the others. */
function join(relay: Relay): Bus {
  const [primary, worker] = channelPair();
  const bus = ipcBus(worker);
  relay.add(primary);
  return bus;
}

/** A bus over a channel on which each message is being sent until `finishNext` is called. */
function slowBus(): { bus: Bus; sent: BusMessage[]; finishNext: () => void } {
  const sent: BusMessage[] = [];
  const pending: (() => void)[] = [];
  const bus = ipcBus({
    send: (message, done) => {
      sent.push(message);
      pending.push(done);
    },
    onMessage: () => () => {},
  });
  return { bus, sent, finishNext: () => pending.shift()?.() };
}

async function iterations(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise(setImmediate);
}

await t.test('the bus over process channels and the relay keeps the contract', (t) =>
  busConformance(t, async () => {
    const relay = new Relay();
    return [join(relay), join(relay), join(relay)];
  }),
);

await t.test('while an announcement is being sent, later ones become one', async (t) => {
  const { bus, sent, finishNext } = slowBus();
  bus.announce(new Map([['a', 1]]));
  await iterations(2);
  for (let position = 2; position <= 50; position++) {
    bus.announce(new Map([[position % 2 === 0 ? 'a' : 'b', position]]));
    await iterations(1);
  }
  const announce = (streams: readonly (readonly [string, number])[]): BusMessage => ({
    type: 'announce',
    data: { streams },
  });
  t.strictSame(sent, [announce([['a', 1]])], 'a slow channel has one at a time');
  finishNext();
  await iterations(2);
  t.strictSame(sent, [
    announce([['a', 1]]),
    announce([
      ['a', 50],
      ['b', 49],
    ]),
  ]);
  finishNext();
  for (let i = 0; i < 10_000; i++) bus.announce(new Map([[`s${i}`, 1]]));
  await iterations(2);
  t.strictSame(sent.at(-1), { type: 'announce', data: { streams: null } }, 'of many streams only that some have grown');
  finishNext();
  await iterations(2);
  t.equal(sent.length, 3, 'once');
});

await t.test('while a batch of publications is being sent, later ones wait up to the bound', async (t) => {
  const { bus, sent, finishNext } = slowBus();
  const topics = (): string[][] =>
    sent.map((message) => (message.type === 'publish' ? message.data.publications.map(({ topic }) => topic) : []));
  bus.publish({ topic: 'first', text: '' });
  await iterations(2);
  bus.publish({ topic: 'waits', text: 'x'.repeat(MAX_WAITING - 10) });
  bus.publish({ topic: 'too much', text: 'x'.repeat(100) });
  bus.publish({ topic: 'fits', text: '' });
  await iterations(2);
  finishNext();
  await iterations(2);
  t.strictSame(topics(), [['first'], ['waits', 'fits']]);
  finishNext();
  bus.publish({ topic: 'again', text: 'x' });
  await iterations(2);
  t.strictSame(topics().at(-1), ['again']);
});
