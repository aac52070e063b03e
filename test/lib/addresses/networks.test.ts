import t from 'tap';
import { Networks } from '../../../src/lib/addresses/networks.ts';

t.test('an address matches networks of its family', (t) => {
  const networks = new Networks(['10.0.0.0/8', '192.168.1.7', '2001:db8::/32', '::1']);
  for (const inside of ['10.255.0.1', '192.168.1.7', '2001:db8:0:0:0:0:0:9', '0:0:0:0:0:0:0:1']) t.equal(networks.has(inside), true, inside);
  for (const outside of ['11.0.0.1', '192.168.1.8', '2001:db9:0:0:0:0:0:9', '0:0:0:0:0:0:0:2', '', 'x']) t.equal(networks.has(outside), false, outside);
  t.equal(new Networks(['0.0.0.0/0']).has('8.8.8.8'), true);
  t.equal(new Networks([]).has('8.8.8.8'), false);
  t.end();
});

t.test('text that is no network is refused and quoted', (t) => {
  for (const bad of ['', 'x', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/-1', '10.0.0.0/1.5', '::/129', '10.0.0/8']) {
    t.throws(() => new Networks([bad]), { message: new RegExp(`^${bad.replaceAll('.', '\\.')}`) }, bad);
  }
  t.end();
});
