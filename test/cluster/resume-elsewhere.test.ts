import t from 'tap';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { createThread } from '../../src/domain/comments/threads.ts';
import { putUser } from '../../src/domain/users/users.ts';
import type { BackendActor } from '../../src/domain/access/actor.ts';
import { isRecoverable } from '../../src/realtime/feed/replay.ts';
import { startTestServer } from '../helpers/http.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { epochOf, streamOf } from '../../src/domain/events/streams.ts';

// A client has an event from one worker and reconnects to another one that has not learned of it yet, by announcement
// or poll.

const ROUNDS = 40;

t.test('a position that another worker returned is accepted at once, over SSE and the WebSocket', async (t) => {
  const path = tempFolder(t);
  const [writing, serving] = [
    await openLmdbStore({ path, minFreeBytes: 0 }),
    await openLmdbStore({ path, minFreeBytes: 0 }),
  ];
  const server = await startTestServer(t, { store: serving });
  t.teardown(async () => {
    await writing.close();
    await serving.close();
  });
  const { environment } = server;
  const ctx = { ...server.ctx, store: writing };
  const backend: BackendActor = {
    kind: 'backend',
    environment,
    keyId: 'key_test',
    scope: 'full',
    rooms: null,
    via: 'rest',
  };
  await putUser(ctx, backend, 'ann', {});
  const unknown: string[] = [];
  for (let round = 1; round <= ROUNDS; round++) {
    await createThread(ctx, backend, 'lobby', { userId: 'ann', body: `No ${round}` }, null);
    const seq = await writing.lastSeq(streamOf(environment));
    if (round % 2 === 0 && !(await isRecoverable(serving, environment, { epoch: epochOf(serving, environment), seq })))
      unknown.push(`socket at ${seq}`);
    const stream = await server.connect();
    await stream.send(
      `GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nAuthorization: Bearer ${server.key}\r\nLast-Event-ID: ${epochOf(serving, environment)}:${seq}\r\n\r\n`,
    );
    const text = await stream.until(
      (received) => received.includes('event: welcome') && received.includes('"recovered"'),
    );
    if (!text.includes(`"seq":${seq},"recovered":true`))
      unknown.push(`stream at ${seq}: ${text.slice(text.indexOf('data: '))}`);
    stream.destroy();
  }
  t.strictSame(unknown, []);
});
