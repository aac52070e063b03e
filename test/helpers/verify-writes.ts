import type { Test } from 'tap';
import type { Store } from '../../src/ports/store.ts';

/**
 * Asserts that a store has every confirmed write of test/fixtures/store-writer.ts, with its event once and in order as
 * far as events are kept, and nothing partly.
 */
export async function verifyWrites(t: Test, store: Store, confirmed: readonly string[]): Promise<void> {
  const found = new Set<string>();
  for (let i = 0; i < 7; i++) for (const { key } of await store.range(`p/${i}`)) found.add(key);
  t.same(
    confirmed.filter((id) => !found.has(id)),
    [],
    `all ${confirmed.length} confirmed writes are there`,
  );
  const partitions = await store.partitions('w/');
  t.same(
    partitions,
    [...found]
      .filter((id) => id.startsWith('wide'))
      .map((id) => `w/${id}`)
      .sort(),
    'every partition of one record is listed',
  );
  const inStream = new Map<string, number>();
  const oldest = await store.oldestSeq('env');
  let expected = oldest;
  let gaps = 0;
  for (let since = oldest - 1; ;) {
    const events = await store.events('env', since, 1000);
    for (const { seq, text } of events) {
      if (seq !== expected++) gaps++;
      const { id } = JSON.parse(text) as { id: string };
      inStream.set(id, (inStream.get(id) ?? 0) + 1);
    }
    if (events.length === 0) break;
    since = events.at(-1)?.seq ?? since;
  }
  t.equal(gaps, 0, 'positions have no gap');
  t.equal(await store.lastSeq('env'), found.size, 'every record has its event');
  t.equal(expected, found.size + 1, 'and can be read');
  t.equal([...inStream.values()].filter((count) => count !== 1).length, 0, 'no event is duplicated');
  t.same(
    [...inStream.keys()].filter((id) => !found.has(id)),
    [],
    'every event has its record',
  );
  const totals = (await store.range('totals')).reduce((sum, { value }) => sum + Number(value), 0);
  t.equal(totals, found.size, 'counters agree with the records');
}
