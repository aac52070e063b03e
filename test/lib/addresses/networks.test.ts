import t from 'tap';
import { Networks } from '../../../src/lib/addresses/networks.ts';

t.test('an address matches networks of its family', (t) => {
  const networks = new Networks(['10.0.0.0/8', '192.168.1.7', '2001:db8::/32', '::1']);
  for (const inside of ['10.255.0.1', '192.168.1.7', '2001:db8:0:0:0:0:0:9', '0:0:0:0:0:0:0:1'])
    t.equal(networks.has(inside), true, inside);
  for (const outside of ['11.0.0.1', '192.168.1.8', '2001:db9:0:0:0:0:0:9', '0:0:0:0:0:0:0:2', '', 'x'])
    t.equal(networks.has(outside), false, outside);
  t.equal(new Networks(['0.0.0.0/0']).has('8.8.8.8'), true);
  t.equal(new Networks(['::ffff:10.0.0.0/104']).has('10.1.2.3'), true, 'IPv4 mapped into IPv6');
  t.equal(
    new Networks(['::10.0.0.0/104']).has('10.1.2.3'),
    false,
    'a deprecated IPv4-compatible IPv6 network is not one of IPv4',
  );
  t.equal(new Networks(['fe80::%eth0/10']).has('fe80:0:0:0:0:0:0:1'), true, 'a zone is ignored');
  t.equal(new Networks([]).has('8.8.8.8'), false);
  t.end();
});

t.test('text that is no network is refused and quoted', (t) => {
  for (const bad of [
    '',
    'x',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/-1',
    '10.0.0.0/1.5',
    '::/129',
    '10.0.0/8',
    '10/8',
    '010.0.0.0/8',
    '0x0a.0.0.0/8',
    '10.0.0.0/1e1',
    '10.0.0.0/8 ',
  ]) {
    t.throws(() => new Networks([bad]), { message: new RegExp(`^${bad.replaceAll('.', '\\.')}`) }, bad);
  }
  t.end();
});
