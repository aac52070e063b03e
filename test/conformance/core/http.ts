import type { Test } from 'tap';
import type { CoreKind } from '../../../src/net/core.ts';
import { until } from '../../helpers/cluster.ts';
import { LARGE, serveCore } from './server.ts';

const HOST = 'Host: a\r\n';
/** Four of these per second are faster than a body must be. */
const PIECE = 'x'.repeat(20_000);

/** What every core does over HTTP. */
export async function httpContract(t: Test, core: CoreKind): Promise<void> {
  await t.test('requests on one connection are answered in turn, their bodies as they came', async (t) => {
    const server = await serveCore(t, core);
    const connection = await server.open();
    for (const body of ['a', 'x'.repeat(100_000)]) {
      await connection.send(`POST /echo HTTP/1.1\r\n${HOST}Content-Length: ${body.length}\r\n\r\n${body}`);
      t.match(await connection.answer(), {
        status: 200,
        headers: { 'x-path': '/echo', 'content-length': String(body.length) },
        body,
      });
    }
    await connection.send(`GET /empty HTTP/1.1\r\n${HOST}\r\n`);
    t.equal((await connection.answer()).body, 'empty');
    await connection.send(
      `POST /chunks HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n`,
    );
    t.equal((await connection.answer()).body, 'abcde');
  });

  await t.test('a value of several lines is several headers, and an answer may have no body', async (t) => {
    const connection = await (await serveCore(t, core)).open();
    await connection.send(`GET /lines HTTP/1.1\r\n${HOST}\r\n`);
    const { status, headers, body } = await connection.answer();
    t.match(
      { status, headers, body },
      {
        status: 204,
        headers: { 'content-type': 'text/plain', 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' },
        body: '',
      },
    );
    await connection.send(`GET /empty HTTP/1.1\r\n${HOST}\r\n`);
    t.equal((await connection.answer()).body, 'empty', 'the connection goes on');
  });

  await t.test('a body of unknown length is sent in chunks', async (t) => {
    const connection = await (await serveCore(t, core)).open();
    await connection.send(`GET /stream HTTP/1.1\r\n${HOST}\r\n`);
    const text = await connection.until((received) => received.endsWith('0\r\n\r\n'));
    t.match(text, /transfer-encoding: chunked/i);
    t.match(text, /one,[^]*two/);
  });

  await t.test('a large body waits for a slow client, and arrives whole', async (t) => {
    const server = await serveCore(t, core);
    const connection = await server.open();
    connection.pause();
    await connection.send(`GET /large HTTP/1.1\r\n${HOST}\r\n`);
    await until(() => server.handled.length === 1);
    connection.resume();
    const { headers, body } = await connection.answer();
    t.equal(headers['content-length'], String(LARGE.length));
    t.ok(body === LARGE.toString(), 'every byte');
  });

  await t.test('a client that goes away aborts its response, once', async (t) => {
    const server = await serveCore(t, core);
    const connection = await server.open();
    await connection.send(`GET /never HTTP/1.1\r\n${HOST}\r\n`);
    await until(() => server.handled.length === 1);
    connection.destroy();
    await until(() => server.aborted.length > 0);
    const closed = await server.open();
    await closed.send(`GET /close HTTP/1.1\r\n${HOST}\r\n`);
    t.equal(await closed.ended, '');
    t.strictSame(server.aborted, ['/never', '/close']);
  });

  await t.test('a request before the end of the last response closes the connection and is not handled', async (t) => {
    const server = await serveCore(t, core);
    const connection = await server.open();
    await connection.send(`GET /never HTTP/1.1\r\n${HOST}\r\n`);
    await connection.send(`GET /second HTTP/1.1\r\n${HOST}\r\n`);
    t.equal(await connection.ended, '');
    t.strictSame(server.handled, ['GET /never']);
  });

  await t.test('a head over 16 KiB that arrives in parts is refused', async (t) => {
    const server = await serveCore(t, core);
    const connection = await server.open();
    const other = await server.open();
    await connection.send(`GET / HTTP/1.1\r\n${HOST}X-Long: ${'x'.repeat(17_000)}`);
    await other.send(`GET / HTTP/1.1\r\n${HOST}\r\n`);
    await other.answer();
    await connection.send('\r\n\r\n');
    t.match(await connection.ended, /^HTTP\/1\.1 431 /);
    t.strictSame(server.handled, ['GET /'], 'only the other request');
  });

  await t.test('an upgrade to anything but a WebSocket is served as it is without it', async (t) => {
    const server = await serveCore(t, core);
    for (const path of ['/other', '/ws']) {
      const connection = await server.open();
      await connection.send(
        `POST ${path} HTTP/1.1\r\n${HOST}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nhi`,
      );
      t.match(await connection.answer(), { status: 200, body: 'hi' });
    }
    t.strictSame(server.handled, ['POST /other', 'POST /ws']);
  });

  await t.test(
    'the rest of a body may come after the answer, longer than a connection may be silent',
    { timeout: 120_000 },
    async (t) => {
      const server = await serveCore(t, core);
      const early = await server.open();
      let left = 4_000_000;
      await early.send(`POST /early HTTP/1.1\r\n${HOST}Content-Length: ${left}\r\n\r\n`);
      t.equal((await early.answer()).body, 'early');
      const timer = setInterval(() => {
        left -= PIECE.length;
        void early.send(PIECE);
      }, 250);
      t.teardown(() => clearInterval(timer));
      const silent = await server.open();
      await silent.ended;
      clearInterval(timer);
      await early.send('x'.repeat(left));
      await early.send(`GET /empty HTTP/1.1\r\n${HOST}\r\n`);
      t.equal((await early.answer()).body, 'empty');
    },
  );

  await t.test('a connection that is silent, or whose head does not end, is closed', { timeout: 60_000 }, async (t) => {
    const server = await serveCore(t, core);
    const [silent, slow] = [await server.open(), await server.open()];
    await slow.send(`GET / HTTP/1.1\r\n${HOST}X-`);
    t.equal(await silent.ended, '');
    t.match(await slow.ended, /^$|^HTTP\/1\.1 408 /);
    t.strictSame(server.handled, []);
  });
}
