import t from 'tap';
import { seal, unseal } from '../../src/lib/seal.ts';

const TEXT = '{"key":{"secretKey":"sk_dev_ü…"}}';

t.test('what is sealed is opened with the same secret and purpose', (t) => {
  for (const text of [TEXT, '', 'x'.repeat(100_000)]) t.equal(unseal(seal(text, 'secret', 'here'), 'secret', 'here'), text);
  t.equal(unseal(seal(TEXT, 's', 'p'.repeat(1024)), 's', 'p'.repeat(1024)), TEXT, 'a long purpose');
  t.end();
});

t.test('it shows nothing of the text, and is another one each time', (t) => {
  const sealed = seal(TEXT, 'secret', 'here');
  t.match(sealed, /^[A-Za-z0-9_-]+$/);
  t.notOk(Buffer.from(sealed, 'base64url').includes('sk_dev'));
  t.not(sealed, seal(TEXT, 'secret', 'here'));
  t.end();
});

t.test('nothing else opens it', (t) => {
  const sealed = seal(TEXT, 'secret', 'here');
  t.throws(() => unseal(sealed, 'Secret', 'here'), 'another secret');
  t.throws(() => unseal(sealed, 'secret', 'there'), 'another purpose');
  t.throws(() => unseal(sealed.slice(0, 20), 'secret', 'here'), 'a part');
  for (const at of [0, 20, 60]) {
    const bytes = Buffer.from(sealed, 'base64url');
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    t.throws(() => unseal(bytes.toString('base64url'), 'secret', 'here'), `byte ${at} changed`);
  }
  t.end();
});
