import t from 'tap';
import { BoundedMap } from '../../src/lib/bounded-map.ts';

await t.test('a bounded map evicts the least recently used entry', async (t) => {
  const map = new BoundedMap<string, number>(2);
  map.set('a', 1);
  map.set('b', 2);
  map.get('a');
  map.set('c', 3);
  t.same([map.get('a'), map.get('b'), map.get('c')], [1, undefined, 3]);
});
