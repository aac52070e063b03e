import t from 'tap';
import { AdmissionControl } from '../../src/lib/concurrency/admission-control.ts';

t.test('requests and bytes are bounded per key and in total, and freed when a request ends', (t) => {
  const admissions = new AdmissionControl({ requests: 2, bytes: 100, bytesOfAll: 150 });
  const first = admissions.admit('a', 90);
  t.equal(admissions.admit('a', 11), null, 'too many bytes of one key');
  const second = admissions.admit('a', 10);
  t.equal(admissions.admit('a', 0), null, 'too many requests of one key');
  t.equal(admissions.admit('b', 51), null, 'too many bytes in all');
  const other = admissions.admit('b', 50);
  t.ok(first !== null && second !== null && other !== null);
  first?.();
  t.ok(admissions.admit('a', 0), 'admitted again');
  for (const leave of [second, other]) leave?.();
  t.ok(admissions.admit('c', 1_000), 'with nothing in progress any number of bytes is admitted');
  t.end();
});
