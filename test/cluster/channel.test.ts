import { fork } from 'node:child_process';
import t from 'tap';
import { type ProcessChannel, parentChannel, channelPair } from '../../src/cluster/channel.ts';
import { type Message, readMessage } from '../../src/cluster/messages.ts';
import { fixtureProgram } from '../helpers/fixture-program.ts';

const announcement = (position: number): Message => ({ type: 'announce', data: { streams: [['a', position]] } });

const received = (channel: ProcessChannel, count: number): Promise<Message[]> =>
  new Promise((resolve) => {
    const messages: Message[] = [];
    channel.onMessage((message) => {
      messages.push(message);
      if (messages.length === count) resolve(messages);
    });
  });

t.test('values that are not messages are ignored', (t) => {
  const strange = [
    null,
    7,
    'announce',
    {},
    { type: 'unheard-of', data: {} },
    { type: 'toString', data: {} },
    { type: 'announce' },
    { type: 'announce', data: { streams: ['a'] } },
    { type: 'announce', data: { streams: [[1, 2]] } },
    { type: 'drain', data: { reason: 'why not' } },
  ];
  for (const raw of strange) t.equal(readMessage(raw), null, JSON.stringify(raw));
  t.same(readMessage({ type: 'announce', data: { streams: [['a', 3]] } }), announcement(3));
  for (const streams of [null, [], [['a', null]]])
    t.ok(readMessage({ type: 'announce', data: { streams } }), JSON.stringify(streams));
  t.end();
});

t.test('a channel pair delivers copies, in order and asynchronously', async (t) => {
  const [one, other] = channelPair();
  const arrival = received(other, 3);
  const message = announcement(1);
  let left = 0;
  one.send(message, () => left++);
  one.send(announcement(2));
  one.send(announcement(3));
  t.equal(left, 0, 'nothing travels within the call');
  const messages = await arrival;
  t.same(messages, [announcement(1), announcement(2), announcement(3)]);
  t.not(messages[0], message, 'the other end has a copy');
  t.equal(left, 1, 'the sender is told');
});

t.test('messages that arrive before the first listener are kept', async (t) => {
  const [one, other] = channelPair();
  one.send(announcement(1));
  await new Promise(setImmediate);
  t.same(await received(other, 1), [announcement(1)]);
});

t.test('closing one end closes both, and later messages are dropped', async (t) => {
  const [one, other] = channelPair();
  const closed = Promise.all([
    new Promise<void>((done) => one.onClose(done)),
    new Promise<void>((done) => other.onClose(done)),
  ]);
  one.close();
  await closed;
  const seen: Message[] = [];
  other.onMessage((message) => seen.push(message));
  await new Promise<void>((sent) => one.send(announcement(1), sent));
  t.same(seen, []);
  let late = 0;
  one.onClose(() => late++);
  t.equal(late, 1, 'who asks after the close is told at once');
});

t.test('a forked process uses the same channel, and notices when its parent closes it', async (t) => {
  const { path, execArgv } = fixtureProgram('echo-worker');
  const child = fork(path, { execArgv: [...execArgv] });
  const channel = parentChannel(child);
  const echo = received(channel, 2);
  channel.send(announcement(41));
  channel.send(announcement(42));
  t.same(await echo, [announcement(41), announcement(42)]);
  const exit = new Promise((resolve) => child.once('exit', resolve));
  channel.close();
  t.equal(await exit, 7);
  await new Promise<void>((sent) => channel.send(announcement(1), sent));
});
