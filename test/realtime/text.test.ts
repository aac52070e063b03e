import t from 'tap';
import { newServer, noNativeCore } from '../helpers/core.ts';
import { latin1Core } from '../helpers/faulty-core.ts';
import { createWorld, startWorker } from '../helpers/realtime.ts';
import { Backend } from '../helpers/writing.ts';
import { epochOf } from '../../src/domain/events/streams.ts';

const TEXT = 'café grüße ÿ';

await t.test(
  'frames are UTF-8 on a uWebSockets.js build that sends strings as Latin-1',
  { skip: noNativeCore },
  async (t) => {
    const world = await createWorld(t);
    const backend = await Backend.of(world);
    const worker = await startWorker(t, world, {}, 'w1', latin1Core(newServer('uws')));
    const ann = await worker.join(await world.token({ userId: 'ann', name: TEXT }));
    const bob = await worker.join(await world.token({ userId: 'bob' }));

    const { error } = await ann.request(TEXT);
    t.equal(error?.message, `Unknown message type ${TEXT}`, 'a reply');

    await backend.thread('lobby', TEXT);
    for (const socket of [ann, bob])
      t.match((await socket.frame('thread.created')).data, { comment: { body: TEXT } }, 'an event');

    await ann.request('room.join', { roomId: 'lobby', state: { status: TEXT } });
    await bob.request('room.join', { roomId: 'lobby' });
    t.match((await bob.frame('presence.snapshot')).data, { items: [{ name: TEXT }] }, 'a snapshot');
    ann.send({ type: 'room.broadcast', data: { roomId: 'lobby', data: { text: TEXT } } });
    t.match((await bob.frame('room.broadcast')).data, { text: TEXT }, 'a broadcast');

    const again = await worker.join(
      await world.token({ userId: 'bob' }),
      `?epoch=${epochOf(world.ctx.store, world.environment)}&since=0`,
    );
    t.match((await again.frame('thread.created')).data, { comment: { body: TEXT } }, 'a replay');
  },
);
