import t from 'tap';
import { copyJson } from '../../src/lib/json-copy.ts';

t.test('a copy equals the value and shares nothing with it', async (t) => {
  const value = { text: 'ä', list: [1, null, { deep: [true] }], empty: {}, none: null };
  const copy = copyJson(value);
  t.strictSame(copy, value);
  (copy.list[2] as { deep: boolean[] }).deep.push(false);
  copy.list.pop();
  t.strictSame(value, { text: 'ä', list: [1, null, { deep: [true] }], empty: {}, none: null });
});

t.test('a property named __proto__ is copied as any other, and changes no prototype', async (t) => {
  const value = JSON.parse('{"__proto__":{"admin":true}}') as object;
  const copy = copyJson(value);
  t.equal(Object.getPrototypeOf(copy), Object.prototype);
  t.equal(JSON.stringify(copy), '{"__proto__":{"admin":true}}');
});
