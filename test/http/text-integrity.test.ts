import t from 'tap';
import { testTextIntegrity } from '../../src/net/text-integrity.ts';
import { createServer, type HttpServer } from '../../src/net/listen.ts';
import { faultyCore, latin1Core } from '../helpers/faulty-core.ts';

t.test('the core of this platform sends bytes unchanged', async (t) => {
  t.match(await testTextIntegrity(createServer()), { strings: /^(?:intact|corrupted)$/, bytes: 'intact' });
});

t.test('a core that sends strings as Latin-1 is detected', async (t) => {
  t.strictSame(await testTextIntegrity(latin1Core(createServer())), { strings: 'corrupted', bytes: 'intact' });
});

t.test('a core that corrupts bytes is detected', async (t) => {
  const corrupt = (argument: unknown): unknown => (argument instanceof Uint8Array ? Buffer.from('?') : argument);
  t.equal((await testTextIntegrity(faultyCore(createServer(), corrupt))).bytes, 'corrupted');
});

t.test('a core that does not respond counts as untested', async (t) => {
  const untested = { strings: 'untested', bytes: 'untested' };
  const unreachable: HttpServer = { ...createServer(), listen: () => Promise.reject(new Error('no loopback here')) };
  t.strictSame(await testTextIntegrity(unreachable), untested);
  const server = createServer();
  const closing: HttpServer = { ...server, listen: async (...where) => server.listen(...where).finally(() => server.close()) };
  t.strictSame(await testTextIntegrity(closing), untested);
});
