import { constants } from 'node:os';
import t from 'tap';
import { firstLine, messageOf } from '../../src/lib/thrown.ts';

t.test('the message of an error is its own, and of anything else its text', (t) => {
  t.equal(messageOf(new TypeError('no such\nfunction')), 'no such\nfunction');
  t.equal(messageOf('text'), 'text');
  t.equal(messageOf(undefined), 'undefined');
  t.end();
});

t.test('the first line is that of the message', (t) => {
  t.equal(firstLine(new Error('first\nsecond')), 'first');
  t.equal(firstLine('only'), 'only');
  t.end();
});

t.test('errors of the system that Node.js does not know are named', (t) => {
  const errno = -constants.errno.EDQUOT;
  for (const text of ['Unknown system error -122: Unknown system error -122', 'UNKNOWN: unknown error'])
    t.equal(
      messageOf(Object.assign(new Error(`${text}, write '/a'`), { code: 'UNKNOWN', errno })),
      "EDQUOT: disk quota exceeded, write '/a'",
    );
  t.end();
});
