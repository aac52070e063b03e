import t from 'tap';
import { createWorld, startWorker } from '../helpers/realtime.ts';

const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

await t.test('a message that nests too deeply ends the socket and names the bound', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const token = await world.token({ userId: 'ann' });
  const deep: readonly (readonly [type: string, data: string])[] = [
    ['room.join', `{"roomId":"r","state":{"x":${nested(6_000)}}}`],
    ['presence.update', `{"roomId":"r","state":{"x":${nested(6_000)}}}`],
    ['cursor', `{"roomId":"r","x":1,"y":1,"more":${nested(6_000)}}`],
    ['room.broadcast', `{"roomId":"r","data":${nested(6_000)}}`],
    ['p2p.signal', `{"roomId":"r","to":"cn_x","data":${nested(6_000)}}`],
    ['comment.create', `{"threadId":"t","body":"x","metadata":${nested(6_000)}}`],
    ['room.broadcast', `{"roomId":"r","data":${nested(63)}}`],
  ];
  for (const [type, data] of deep) {
    const socket = await worker.join(token);
    await socket.request('room.join', { roomId: 'r' });
    socket.sendRaw(`{"type":"${type}","id":9,"data":${data}}`);
    t.strictSame(await socket.closed, { code: 4400, reason: 'bad_message' }, type);
    t.match(socket.frames.at(-1)?.error, { code: 'invalid_json', message: 'A message must not nest arrays and objects more than 64 levels deep' }, type);
  }
  const guest = worker.open();
  await guest.opened;
  guest.sendRaw(`{"type":"connect","data":{"since":${nested(6_000)}}}`);
  t.strictSame(await guest.closed, { code: 4400, reason: 'bad_message' }, 'before it is known who it is, too');

  const socket = await worker.join(token);
  await socket.request('room.join', { roomId: 'r' });
  socket.sendRaw(`{"type":"room.broadcast","id":9,"data":{"roomId":"r","data":${nested(62)}}}`);
  t.equal((await socket.until(() => socket.frames.find(({ id }) => id === 9))).type, 'ok', '64 levels are taken');
});
