import fc from 'fast-check';
import t from 'tap';
import type { EncodedText } from '../../src/adapters/lmdb/engine/batch.ts';
import { mergeRange, MemtablePartition } from '../../src/adapters/lmdb/engine/memtable.ts';
import type { Entry, RangeOptions } from '../../src/ports/store.ts';

const key = fc.string({ unit: fc.constantFrom('a', 'b', '/', '~'), maxLength: 4 });
const options: fc.Arbitrary<RangeOptions> = fc.record(
  {
    prefix: fc.string({ unit: fc.constantFrom('a', 'b', '/'), maxLength: 2 }),
    after: key,
    reverse: fc.boolean(),
    limit: fc.integer({ min: 0, max: 6 }),
  },
  { requiredKeys: [] },
);
/** A write at a position, the reading of a range, or the drop of what a checkpoint wrote. */
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      key,
      value: fc.option(fc.string({ unit: fc.constantFrom('x', 'y'), maxLength: 3 }), { nil: undefined }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ options }) },
  { weight: 1, arbitrary: fc.record({ dropped: fc.nat(40) }) },
);

t.test(
  'a range of table and memtable equals that of one sorted list, whatever was written and dropped in between',
  async (t) => {
    fc.assert(
      fc.property(fc.array(key), fc.array(step, { maxLength: 60 }), (tableKeys, steps) => {
        const table = new Map(tableKeys.map((name) => [name, `table ${name}`]));
        const changed = new MemtablePartition();
        const written = new Map<string, { position: number; value: string | undefined }>();
        steps.forEach((step, position) => {
          if ('key' in step) {
            changed.set(step.key, encodedTextOf(step.value, position));
            written.set(step.key, { position, value: step.value });
          } else if ('dropped' in step) {
            changed.drop(step.dropped);
            for (const [name, { position }] of written) if (position <= step.dropped) written.delete(name);
          } else {
            const found = mergeRange(inRange(table, step.options), changed, step.options);
            const merged = new Map([...table, ...[...written].map(([name, { value }]) => [name, value] as const)]);
            const expected = inRange(merged, step.options).slice(0, step.options.limit);
            if (JSON.stringify(found) !== JSON.stringify(expected))
              throw new Error(
                `${JSON.stringify(step.options)}: ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`,
              );
          }
        });
      }),
      { numRuns: 2_000 },
    );
    t.pass('in 2 000 runs');
  },
);

function encodedTextOf(value: string | undefined, position: number): EncodedText {
  const bytes = Buffer.from(value ?? '');
  return { bytes, start: 0, end: value === undefined ? -1 : bytes.byteLength, position };
}

/** The entries in a range, in its direction; its limit is not applied. */
function inRange(
  values: ReadonlyMap<string, string | undefined>,
  { prefix = '', after, reverse = false }: RangeOptions,
): Entry[] {
  const found = [...values].flatMap(([name, value]) => (value === undefined ? [] : [{ key: name, value }]));
  found.sort((a, b) => (a.key < b.key ? -1 : 1));
  if (reverse) found.reverse();
  return found.filter(
    ({ key }) => key.startsWith(prefix) && (after === undefined || (reverse ? key < after : key > after)),
  );
}
