import t from 'tap';
import { closestMatch } from '../../src/lib/closest-match.ts';

const names = ['host', 'port', 'rateLimit.perMinute', 'ws.heartbeatSeconds'];

t.test('a misspelt name matches the intended one', async (t) => {
  t.equal(closestMatch('prot', names), 'port', 'two letters swapped');
  t.equal(closestMatch('pord', names), 'port', 'one replaced');
  t.equal(closestMatch('pt', names), undefined, 'two of four missing');
  t.equal(closestMatch('ratelimit.per_minut', names), 'rateLimit.perMinute');
  t.equal(closestMatch('ws.heartBeatSecond', names), 'ws.heartbeatSeconds');
});

t.test('a name like none of the candidates matches nothing', async (t) => {
  t.equal(closestMatch('colour', names), undefined);
  t.equal(closestMatch('', names), undefined);
  t.equal(closestMatch('port', []), undefined);
});
