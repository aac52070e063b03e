import t from 'tap';
import { crc32, crc32ByTable } from '../../src/lib/crc32.ts';

t.test('both implementations give the checksum of zip', async (t) => {
  for (const sum of [crc32, crc32ByTable]) {
    t.equal(sum(Buffer.from('')), 0);
    t.equal(sum(Buffer.from('123456789')), 0xcbf43926);
    t.equal(sum(Buffer.from('grüße 🎉'.repeat(1_000))), crc32(Buffer.from('grüße 🎉'.repeat(1_000))));
  }
});
