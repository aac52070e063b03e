import t from 'tap';
import { isPublicAddress, isPublicHost } from '../../../src/lib/addresses/public-address.ts';
import { publicFetch } from '../../../src/lib/addresses/public-fetch.ts';

await t.test('addresses of private networks are not public', async (t) => {
  for (const address of ['8.8.8.8', '172.32.0.1', '2606:4700::1111', '::ffff:8.8.8.8']) t.ok(isPublicAddress(address), address);
  const inner = ['127.0.0.1', '10.1.1.1', '172.16.0.1', '192.168.1.1', '169.254.169.254', '100.64.0.1', '0.0.0.0', '224.0.0.1', '255.255.255.255'];
  for (const address of [...inner, '::', '::1', 'fe80::1', 'fd00::1', 'ff02::1', '::ffff:10.0.0.1', '64:ff9b::a00:1', 'x']) t.notOk(isPublicAddress(address), address);
  const reserved = ['192.0.2.1', '198.51.100.1', '203.0.113.1', '192.88.99.1', '2001:db8::1', '2001::1', '2002:a00:1::', '64:ff9b:1::1', 'fec0::1', '100::1', '::127.0.0.1', '4000::1'];
  for (const address of reserved) t.notOk(isPublicAddress(address), address);
  for (const host of ['localhost', 'a.localhost', 'LOCALHOST.', '127.0.0.1', '[::1]', '[::ffff:10.0.0.1]']) t.notOk(isPublicHost(host), host);
  t.ok(isPublicHost('id.example'));
  for (const address of ['http://id.example/', 'https://127.0.0.1/', 'https://localhost/']) await t.rejects(publicFetch(address, {}), /public internet/);
});
