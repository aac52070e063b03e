import t from 'tap';
import { chooseCore } from '../../src/net/core-check.ts';
import { createServer } from '../../src/net/listen.ts';
import { nativeCore } from '../../src/net/uws/native-core.ts';

// Nothing here may load the native core: what was loaded once stays.
const { platform } = process;
Object.defineProperty(process, 'platform', { value: 'sunos' });
t.teardown(() => Object.defineProperty(process, 'platform', { value: platform }));

t.test('without a native core for the platform, the error names it, and the other core runs', async (t) => {
  const why = /^uWebSockets\.js has no build that runs on sunos \S+, Node /;
  t.match(nativeCore().file, /^uws_sunos_/);
  t.throws(() => createServer('uws'), { message: why });
  t.match(await chooseCore('auto'), { kind: 'node', name: 'node', reason: why, old: false, check: { level: 'fail' } });
  t.match(await chooseCore('uws'), {
    kind: 'uws',
    check: { level: 'fail', finding: why, remedy: /^Set core to auto or node/ },
  });
  t.match(await chooseCore('node'), { kind: 'node', reason: 'the option core is node', check: null });
  const server = createServer('node');
  server.app.any('/*', (response) => response.end('served', true));
  t.teardown(() => server.close());
  const port = await server.listen('127.0.0.1', 0);
  t.equal(await (await fetch(`http://127.0.0.1:${port}/`)).text(), 'served');
});
