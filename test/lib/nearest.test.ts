import t from 'tap';
import { nearest } from '../../src/lib/nearest.ts';

const names = ['host', 'port', 'rateLimit.perMinute', 'ws.heartbeatSeconds'];

t.test('a misspelt name finds the one that was meant', async (t) => {
  t.equal(nearest('prot', names), 'port', 'two letters swapped');
  t.equal(nearest('pord', names), 'port', 'one replaced');
  t.equal(nearest('pt', names), undefined, 'two of four missing');
  t.equal(nearest('ratelimit.per_minut', names), 'rateLimit.perMinute');
  t.equal(nearest('ws.heartBeatSecond', names), 'ws.heartbeatSeconds');
});

t.test('a name like none of them finds nothing', async (t) => {
  t.equal(nearest('colour', names), undefined);
  t.equal(nearest('', names), undefined);
  t.equal(nearest('port', []), undefined);
});
