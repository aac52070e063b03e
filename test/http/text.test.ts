import t, { type Test } from 'tap';
import { startTestServer, type TestServer } from '../helpers/http.ts';
import { newServer, noNativeCore } from '../helpers/core.ts';
import { latin1Core } from '../helpers/faulty-core.ts';
import { epochOf } from '../../src/domain/events/streams.ts';

const TEXT = 'café grüße ÿ';

/** A server on a core that sends strings as Latin-1, with a user and a thread. */
async function started(t: Test): Promise<{ server: TestServer; path: string }> {
  const server = await startTestServer(t, { server: latin1Core(newServer('uws')) });
  await server.request('PUT', '/users/ann', { body: { name: TEXT } });
  const { json } = await server.request<{ thread: { id: string } }>('POST', '/rooms/r1/threads', {
    body: { userId: 'ann', body: TEXT },
  });
  return { server, path: `/threads/${json.thread.id}` };
}

t.test('answers are UTF-8 on a core that sends strings as Latin-1', { skip: noNativeCore }, async (t) => {
  const { server, path } = await started(t);
  t.match((await server.request('GET', path)).text, `"body":"${TEXT}"`);
  t.match((await server.request('GET', '/users')).text, `"name":"${TEXT}"`);
});

t.test('large responses and the lengths of HEAD are correct too', { skip: noNativeCore }, async (t) => {
  const { server } = await started(t);
  for (let i = 0; i < 25; i++)
    await server.request('POST', '/rooms/r1/threads', { body: { userId: 'ann', body: TEXT.repeat(700) } });
  const headers = { 'Accept-Encoding': 'identity' };
  const { text } = await server.request('GET', '/rooms/r1?include=comments', { headers });
  t.ok(text.length > 128 * 1024);
  t.notMatch(text, '\ufffd');
  t.equal(
    (await server.request('HEAD', '/rooms/r1?include=comments', { headers })).headers.get('content-length'),
    String(Buffer.byteLength(text)),
  );
});

t.test('event streams are UTF-8 too, both past and live events', { skip: noNativeCore }, async (t) => {
  const { server } = await started(t);
  const open = async () => {
    const connection = await server.connect();
    await connection.send(
      `GET /api/v1/events?since=0 HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nAuthorization: Bearer ${server.key}\r\nLast-Event-ID: ${epochOf(server.ctx.store, server.environment)}:0\r\n\r\n`,
    );
    return connection;
  };
  const connections = [await open(), await open()];
  for (const connection of connections)
    t.match(await connection.until((received) => received.includes('"body":')), `"body":"${TEXT}"`);
  await server.request('POST', '/rooms/r1/threads', { body: { userId: 'ann', body: `${TEXT} again` } });
  for (const connection of connections)
    t.match(await connection.until((received) => received.includes(' again"')), `"body":"${TEXT} again"`);
});
