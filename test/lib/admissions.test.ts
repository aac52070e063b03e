import t from 'tap';
import { AdmissionControl } from '../../src/lib/admissions.ts';

t.test('requests and bytes are bounded by key and in all, and what leaves makes room', (t) => {
  const admissions = new AdmissionControl({ requests: 2, bytes: 100, bytesOfAll: 150 });
  const first = admissions.admit('a', 90);
  t.equal(admissions.admit('a', 11), null, 'too many bytes of one key');
  const second = admissions.admit('a', 10);
  t.equal(admissions.admit('a', 0), null, 'too many requests of one key');
  t.equal(admissions.admit('b', 51), null, 'too many bytes in all');
  const other = admissions.admit('b', 50);
  t.ok(first !== null && second !== null && other !== null);
  first?.();
  t.ok(admissions.admit('a', 0), 'there is room again');
  for (const leave of [second, other]) leave?.();
  t.ok(admissions.admit('c', 1_000), 'one that finds nothing inside may bring any number of bytes');
  t.end();
});
