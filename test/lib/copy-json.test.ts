import t from 'tap';
import { copyJson } from '../../src/lib/copy-json.ts';

const VALUES = [
  null,
  true,
  0,
  -1.5,
  '',
  'grüße',
  [],
  {},
  [1, [2, { three: [3] }]],
  { a: { b: [{ c: null }] }, d: undefined },
];

t.test('a copy equals its original and shares nothing with it', (t) => {
  for (const value of VALUES) t.strictSame(copyJson(value), value);
  const original = { comment: { mentions: ['ann'], metadata: { tags: [{ name: 'x' }] } } };
  const copied = copyJson(original);
  copied.comment.mentions.push('bob');
  copied.comment.metadata.tags[0] = { name: 'y' };
  t.strictSame(original, { comment: { mentions: ['ann'], metadata: { tags: [{ name: 'x' }] } } });
  t.end();
});

t.test('a field named __proto__ is copied as a field', (t) => {
  const original = JSON.parse('{"metadata":{"__proto__":{"isAdmin":true}}}') as { metadata: { isAdmin?: boolean } };
  const copied = copyJson(original);
  t.equal(JSON.stringify(copied), JSON.stringify(original));
  t.equal(copied.metadata.isAdmin, undefined);
  t.equal(Object.getPrototypeOf(copied.metadata), Object.prototype);
  t.end();
});
