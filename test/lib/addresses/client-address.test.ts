import t from 'tap';
import { addressBlock, clientAddress, normaliseAddress } from '../../../src/lib/addresses/client-address.ts';
import { Networks } from '../../../src/lib/addresses/networks.ts';

t.test('every spelling of an address is normalised to one form', (t) => {
  const cases: [text: string, form: string | null][] = [
    ['127.0.0.1', '127.0.0.1'],
    ['::ffff:10.1.2.3', '10.1.2.3'],
    ['::FFFF:0a01:0203', '10.1.2.3'],
    ['0000:0000:0000:0000:0000:ffff:7f00:0001', '127.0.0.1'],
    ['::1', '0:0:0:0:0:0:0:1'],
    ['::', '0:0:0:0:0:0:0:0'],
    ['2001:DB8::00a:1', '2001:db8:0:0:0:0:a:1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2:3:4:5:6'],
    ['fe80::1%eth0', 'fe80:0:0:0:0:0:0:1'],
    ['64:ff9b::1.2.3.4', '64:ff9b:0:0:0:0:102:304'],
    ['::1.2.3.4', '0:0:0:0:0:0:102:304'],
    ['', null],
    ['unknown', null],
    ['1.2.3', null],
    ['1.2.3.4.5', null],
    ['010.1.2.3', null],
    ['1.2.3.4%eth0', null],
    ['0x7f.0.0.1', null],
    ['2130706433', null],
    ['::g', null],
  ];
  for (const [text, form] of cases) t.equal(normaliseAddress(text), form, text);
  t.end();
});

t.test('limits apply to one IPv4 address and to a /64 of IPv6', (t) => {
  t.equal(addressBlock('10.1.2.3'), '10.1.2.3');
  t.equal(addressBlock('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64');
  t.end();
});

t.test('X-Forwarded-For counts only from trusted proxies, from right to left', (t) => {
  const trusted = new Networks(['127.0.0.0/8', '10.0.0.0/8', 'fd00::/8']);
  const cases: [peer: string, header: string, client: string][] = [
    ['9.9.9.9', '1.1.1.1', '9.9.9.9'],
    ['127.0.0.1', '', '127.0.0.1'],
    ['127.0.0.1', '1.1.1.1', '1.1.1.1'],
    ['::ffff:127.0.0.1', '1.1.1.1', '1.1.1.1'],
    ['127.0.0.1', '6.6.6.6, 1.1.1.1', '1.1.1.1'],
    ['127.0.0.1', '6.6.6.6, 1.1.1.1, 10.0.0.7', '1.1.1.1'],
    ['127.0.0.1', '6.6.6.6,1.1.1.1,10.0.0.7,fd00::5', '1.1.1.1'],
    ['127.0.0.1', '10.0.0.8, 10.0.0.7', '10.0.0.8'],
    ['127.0.0.1', '1.1.1.1:55555', '1.1.1.1'],
    ['127.0.0.1', '[2001:db8::1]:443', '2001:db8:0:0:0:0:0:1'],
    ['127.0.0.1', '2001:db8::1', '2001:db8:0:0:0:0:0:1'],
    ['127.0.0.1', '1.1.1.1, unknown', '127.0.0.1'],
    ['127.0.0.1', '1.1.1.1, _hidden, 10.0.0.7', '10.0.0.7'],
    ['127.0.0.1', ', ,', '127.0.0.1'],
    ['127.0.0.1', '[', '127.0.0.1'],
  ];
  for (const [peer, header, client] of cases)
    t.equal(clientAddress(peer, header, trusted), client, `${peer} says ${header}`);
  t.end();
});
