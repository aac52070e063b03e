import t from 'tap';
import { type Socket, type SocketData, SocketWriter } from '../../src/realtime/socket/socket-writer.ts';

/** A native socket whose client reads nothing until `read`. */
class UnreadSocket {
  closedWith = 0;
  #buffered = 0;

  readonly getUserData = (): SocketData => ({ outcome: null, session: null, refused: false, address: '', baseUrl: '' });
  readonly getBufferedAmount = (): number => this.#buffered;

  send(text: string): number {
    this.#buffered += text.length;
    return 0;
  }

  read(): void {
    this.#buffered = 0;
  }

  end(code: number): void {
    this.closedWith = code;
  }
}

t.test('a long reply may wait beyond the limit of the backlog, but what comes after it was read may not', async (t) => {
  const socket = new UnreadSocket();
  const writer = new SocketWriter(socket as unknown as Socket, { now: 0, maxBacklog: 1_000, meter: null });
  writer.sendReply('x'.repeat(100_000));
  writer.send('y'.repeat(900));
  t.ok(writer.isOpen, 'the reply alone is no reason to close the socket');
  socket.read();
  writer.send('y'.repeat(900));
  t.ok(writer.isOpen, 'within the limit');
  writer.send('y'.repeat(900));
  t.notOk(writer.isOpen, 'beyond the limit');
  t.equal(socket.closedWith, 1013);
});
