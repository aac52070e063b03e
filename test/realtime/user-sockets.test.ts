import t from 'tap';
import { UserSockets } from '../../src/realtime/feed/user-sockets.ts';
import { type Socket, type SocketData, SocketWriter } from '../../src/realtime/socket/socket-writer.ts';

/** A native socket that keeps its packets. It is slow once it has sent `fast` frames: then every frame waits. */
class FakeSocket {
  readonly packets: string[][] = [];
  closedWith = 0;
  #packet: string[] | null = null;
  readonly #fast: number;

  constructor(fast = Number.POSITIVE_INFINITY) {
    this.#fast = fast;
  }

  readonly getUserData = (): SocketData => ({ outcome: null, session: null, refused: false, address: '', baseUrl: '' });
  readonly #sent = (): number => this.packets.flat().length + (this.#packet?.length ?? 0);
  readonly getBufferedAmount = (): number => Math.max(0, this.#sent() - this.#fast) * 100;

  send(text: string): number {
    if (this.#packet === null) this.packets.push([text]);
    else this.#packet.push(text);
    return this.#sent() > this.#fast ? 0 : 1;
  }

  cork(work: () => void): void {
    this.#packet = [];
    work();
    this.packets.push(this.#packet);
    this.#packet = null;
  }

  end(code: number): void {
    this.closedWith = code;
  }
}

/** A socket of `bob` that is among the user's sockets. */
function join(users: UserSockets, fake: FakeSocket, rooms: readonly string[] | null = null) {
  const writer = new SocketWriter(fake as unknown as Socket, { now: 0, maxBacklog: 250, meter: null });
  const socket = { writer, userId: 'bob', role: 'member' as const, rooms };
  users.add(socket);
  return socket;
}

const event = (n: number, roomId = 'docs'): string =>
  `{"type":"notification.created","seq":${n},"roomId":"${roomId}","userId":"bob","actor":{}}`;

t.test(
  'the events of one callback are one packet per socket, without those of rooms that the socket does not see',
  async (t) => {
    const users = new UserSockets();
    const [all, docs, none] = [new FakeSocket(), new FakeSocket(), new FakeSocket()];
    join(users, all);
    join(users, docs, ['docs']);
    join(users, none, ['other']);
    for (const [n, room] of [
      [1, 'docs'],
      [2, 'plans'],
      [3, 'docs'],
    ] as const)
      users.send('bob', event(n, room));
    users.send('ann', event(4));
    t.strictSame(all.packets, []);
    await Promise.resolve();
    t.strictSame(all.packets, [[event(1), event(2, 'plans'), event(3)]]);
    t.strictSame(docs.packets, [[event(1), event(3)]]);
    t.strictSame(none.packets, []);
    users.send('bob', event(5));
    users.flush();
    await Promise.resolve();
    t.strictSame(all.packets.slice(1), [[event(5)]], 'once');
  },
);

t.test('a socket receives what came while it was there, and nothing else', async (t) => {
  const users = new UserSockets();
  const [early, late] = [new FakeSocket(), new FakeSocket()];
  const first = join(users, early);
  users.send('bob', event(1));
  join(users, late);
  users.send('bob', event(2));
  users.delete(first);
  users.send('bob', event(3));
  await Promise.resolve();
  t.strictSame(early.packets.flat(), [event(1), event(2)]);
  t.strictSame(late.packets.flat(), [event(2), event(3)]);
});

t.test('a slow socket is closed, and its other frames are dropped; the other sockets receive theirs', async (t) => {
  const users = new UserSockets();
  const [slow, fast] = [new FakeSocket(1), new FakeSocket()];
  const socket = join(users, slow);
  slow.end = (code) => {
    slow.closedWith = code;
    users.delete(socket);
  };
  join(users, fast);
  for (let n = 1; n <= 6; n++) users.send('bob', event(n));
  await Promise.resolve();
  t.equal(slow.closedWith, 1013);
  t.equal(slow.packets.flat().length, 4, 'up to the frame that exceeds the limit');
  t.equal(fast.packets.flat().length, 6);
  users.send('bob', event(7));
  await Promise.resolve();
  t.equal(fast.packets.flat().length, 7);
});
