import t from 'tap';
import { encryptText, decryptText } from '../../src/lib/encrypted-text.ts';

const TEXT = '{"key":{"secretKey":"sk_dev_ü…"}}';

t.test('what is sealed is opened with the same secret and purpose', (t) => {
  for (const text of [TEXT, '', 'x'.repeat(100_000)]) t.equal(decryptText(encryptText(text, 'secret', 'here'), 'secret', 'here'), text);
  t.equal(decryptText(encryptText(TEXT, 's', 'p'.repeat(1024)), 's', 'p'.repeat(1024)), TEXT, 'a long purpose');
  t.end();
});

t.test('it shows nothing of the text, and is another one each time', (t) => {
  const sealed = encryptText(TEXT, 'secret', 'here');
  t.match(sealed, /^[A-Za-z0-9_-]+$/);
  t.notOk(Buffer.from(sealed, 'base64url').includes('sk_dev'));
  t.not(sealed, encryptText(TEXT, 'secret', 'here'));
  t.end();
});

t.test('nothing else opens it', (t) => {
  const sealed = encryptText(TEXT, 'secret', 'here');
  t.throws(() => decryptText(sealed, 'Secret', 'here'), 'another secret');
  t.throws(() => decryptText(sealed, 'secret', 'there'), 'another purpose');
  t.throws(() => decryptText(sealed.slice(0, 20), 'secret', 'here'), 'a part');
  for (const at of [0, 20, 60]) {
    const bytes = Buffer.from(sealed, 'base64url');
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    t.throws(() => decryptText(bytes.toString('base64url'), 'secret', 'here'), `byte ${at} changed`);
  }
  t.end();
});
