import t from 'tap';
import { checkCore } from '../../src/net/core-check.ts';
import { createServer } from '../../src/net/listen.ts';
import { noNativeCore } from '../helpers/core.ts';
import { faultyCore, latin1Core } from '../helpers/faulty-core.ts';

t.test('a core that corrupts only strings is reported in a note', { skip: noNativeCore }, async (t) => {
  t.match(await checkCore(() => latin1Core(createServer('uws'))), {
    level: 'ok',
    finding: /; it corrupts text passed as strings, so the server passes bytes$/,
  });
});

t.test('a core that corrupts bytes fails', { skip: noNativeCore }, async (t) => {
  const corrupt = (argument: unknown): unknown => (argument instanceof Uint8Array ? Buffer.from('?') : argument);
  t.match(await checkCore(() => faultyCore(createServer('uws'), corrupt)), {
    level: 'fail',
    finding: /corrupts text/,
    remedy: /another version of Node/,
  });
});

t.test('a core that cannot be tested is a warning', { skip: noNativeCore }, async (t) => {
  const listen = () => Promise.reject(new Error('no loopback here'));
  t.match(await checkCore(() => ({ ...createServer('uws'), listen })), {
    level: 'warn',
    finding: /could not be tested/,
    remedy: /loopback/,
  });
});
