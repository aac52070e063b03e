import t from 'tap';
import { encryptText, decryptText } from '../../src/lib/encrypted-text.ts';

const TEXT = '{"key":{"secretKey":"sk_dev_ü…"}}';

t.test('the same secret and purpose decrypt the text', (t) => {
  for (const text of [TEXT, '', 'x'.repeat(100_000)])
    t.equal(decryptText(encryptText(text, 'secret', 'here'), 'secret', 'here'), text);
  t.equal(decryptText(encryptText(TEXT, 's', 'p'.repeat(1024)), 's', 'p'.repeat(1024)), TEXT, 'a long purpose');
  t.end();
});

t.test('the result reveals nothing of the text and differs each time', (t) => {
  const encrypted = encryptText(TEXT, 'secret', 'here');
  t.match(encrypted, /^[A-Za-z0-9_-]+$/);
  t.notOk(Buffer.from(encrypted, 'base64url').includes('sk_dev'));
  t.not(encrypted, encryptText(TEXT, 'secret', 'here'));
  t.end();
});

t.test('another secret or purpose, or a changed text, is refused', (t) => {
  const encrypted = encryptText(TEXT, 'secret', 'here');
  t.throws(() => decryptText(encrypted, 'Secret', 'here'), 'another secret');
  t.throws(() => decryptText(encrypted, 'secret', 'there'), 'another purpose');
  t.throws(() => decryptText(encrypted.slice(0, 20), 'secret', 'here'), 'a part');
  for (const at of [0, 20, 60]) {
    const bytes = Buffer.from(encrypted, 'base64url');
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    t.throws(() => decryptText(bytes.toString('base64url'), 'secret', 'here'), `byte ${at} changed`);
  }
  t.end();
});
