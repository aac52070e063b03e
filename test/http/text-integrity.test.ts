import t from 'tap';
import { testTextIntegrity } from '../../src/net/text-integrity.ts';
import type { HttpServer } from '../../src/net/core.ts';
import { newServer, noNativeCore } from '../helpers/core.ts';
import { faultyCore, latin1Core } from '../helpers/faulty-core.ts';

t.test('the core of this platform sends bytes unchanged', async (t) => {
  t.match(await testTextIntegrity(newServer()), { strings: /^(?:intact|corrupted)$/, bytes: 'intact' });
});

t.test('a core that sends strings as Latin-1 is detected', { skip: noNativeCore }, async (t) => {
  t.strictSame(await testTextIntegrity(latin1Core(newServer('uws'))), { strings: 'corrupted', bytes: 'intact' });
});

t.test('a core that corrupts bytes is detected', { skip: noNativeCore }, async (t) => {
  const corrupt = (argument: unknown): unknown => (argument instanceof Uint8Array ? Buffer.from('?') : argument);
  t.equal((await testTextIntegrity(faultyCore(newServer('uws'), corrupt))).bytes, 'corrupted');
});

t.test('a core that does not respond counts as untested', async (t) => {
  const untested = { strings: 'untested', bytes: 'untested' };
  const unreachable: HttpServer = { ...newServer(), listen: () => Promise.reject(new Error('no loopback here')) };
  t.strictSame(await testTextIntegrity(unreachable), untested);
  const server = newServer();
  const closing: HttpServer = {
    ...server,
    listen: async (...where) => server.listen(...where).finally(() => server.close()),
  };
  t.strictSame(await testTextIntegrity(closing), untested);
});
