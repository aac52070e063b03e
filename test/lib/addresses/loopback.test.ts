import t from 'tap';
import { isLoopback } from '../../../src/lib/addresses/loopback.ts';

t.test('the addresses of the machine itself are loopback, and no others', (t) => {
  for (const host of ['127.0.0.1', '127.9.9.9', '::1', 'localhost']) t.equal(isLoopback(host), true, host);
  for (const host of ['0.0.0.0', '::', '10.0.0.1', '127.example.org', 'example.org'])
    t.equal(isLoopback(host), false, host);
  t.end();
});
