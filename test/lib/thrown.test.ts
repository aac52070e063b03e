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
