import { setImmediate as nextIteration } from 'node:timers/promises';
import type { Test } from 'tap';
import * as Y from 'yjs';
import type { Crdt } from '../../src/ports/crdt.ts';
import { baseText, documentWith, insertsAtOneOrigin, structPerClient } from '../fixtures/yjs.ts';

/** Limits of operations that are not those of the adapter. */
export interface CrdtLimits {
  /** By the size of the operation in bytes. */
  readonly timeMs: (bytes: number) => number;
  readonly heapMb?: number | undefined;
}

const updateOf = (text: string): Uint8Array => Y.encodeStateAsUpdate(documentWith(text));

/** The text of a document; that of an empty one for a fault. */
export function textOf(update: Uint8Array | string): string {
  const document = new Y.Doc();
  if (typeof update !== 'string') Y.applyUpdate(document, update);
  return document.getText('text').toJSON();
}

/** An update that is small, and takes longer to work with than any limit of a test. */
export function slowUpdate(): Uint8Array {
  return Y.mergeUpdates([baseText(16_000), insertsAtOneOrigin(16_000)]);
}

/** Asserts every sentence of ports/crdt.ts for an adapter. What `open` returns is closed by a teardown of the test. */
export async function crdtConformance(t: Test, open: (t: Test, limits?: CrdtLimits) => Crdt): Promise<void> {
  await t.test('an update is merged into a document or into none', async (t) => {
    const crdt = open(t);
    const { result: merged, ms } = await crdt.merge(updateOf('one'), updateOf('two'));
    t.ok(['onetwo', 'twoone'].includes(textOf(merged)), textOf(merged));
    t.ok(ms > 0);
    t.equal(textOf((await crdt.merge(null, updateOf('one'))).result), 'one');
  });

  await t.test(
    'an update of encoding 2, a message of a sync protocol and bytes after an update are refused, not dropped',
    async (t) => {
      const crdt = open(t);
      const update = updateOf('one');
      const others = {
        'an update and more': Buffer.concat([update, Buffer.from('rubbish')]),
        'an empty update and more': Buffer.from([0, 0, 1]),
        'an update of encoding 2': Buffer.from(Y.encodeStateAsUpdateV2(documentWith('one'))),
        'an empty update of encoding 2': Buffer.from(Y.encodeStateAsUpdateV2(new Y.Doc())),
        'a sync message': Buffer.concat([Buffer.from([0, 0, update.length]), update]),
      };
      for (const [name, bytes] of Object.entries(others)) {
        t.equal((await crdt.merge(null, Buffer.from(bytes))).result, 'update', `${name}, into no document`);
        t.equal((await crdt.merge(updateOf('two'), Buffer.from(bytes))).result, 'update', `${name}, into a document`);
      }
    },
  );

  await t.test('diff returns what a document has and the state vector lacks', async (t) => {
    const crdt = open(t);
    const document = documentWith('x'.repeat(1_000), 1);
    const vector = Y.encodeStateVector(document);
    document.getText('text').insert(1_000, ' and more');
    const whole = Y.encodeStateAsUpdate(document);
    t.equal(textOf((await crdt.diff(whole, Buffer.from([0]))).result), textOf(whole));
    const { result } = await crdt.diff(whole, vector);
    t.ok(result.length < 100, `${result.length} bytes`);
    const behind = documentWith('x'.repeat(1_000), 1);
    Y.applyUpdate(behind, result as Uint8Array);
    t.equal(behind.getText('text').toJSON(), textOf(whole));
  });

  await t.test('compact returns the same document without deleted content', async (t) => {
    const crdt = open(t);
    // Merged as updates, a document keeps what it deletes later.
    const document = documentWith('', 1);
    const updates: Uint8Array[] = [];
    document.on('update', (update: Uint8Array) => updates.push(update));
    document.getText('text').insert(0, `${'gone '.repeat(1_000)}kept`);
    document.getText('text').delete(0, 5_000);
    const merged = Y.mergeUpdates(updates);
    const { result } = await crdt.compact(merged);
    t.equal(textOf(result), 'kept');
    t.ok(result.length < 100 && merged.length > 5_000, `${result.length} of ${merged.length} bytes`);
  });

  await t.test('a fault names the argument that is not valid', async (t) => {
    const crdt = open(t);
    const good = updateOf('text');
    const rubbish = (): Buffer => Buffer.from('rubbish');
    t.match(await crdt.merge(good, rubbish()), { result: 'update' });
    t.match(await crdt.merge(null, rubbish()), { result: 'update' });
    t.match(await crdt.merge(rubbish(), updateOf('text')), { result: 'stored' });
    t.match(await crdt.diff(updateOf('text'), Buffer.from([9, 9])), { result: 'vector' });
    t.match(await crdt.diff(rubbish(), Buffer.from([0])), { result: 'stored' });
    t.match(await crdt.compact(rubbish()), { result: 'stored' });
  });

  await t.test('operations run one after the other, in the order of the calls', async (t) => {
    const crdt = open(t);
    const order: string[] = [];
    const note = (name: string) => () => void order.push(name);
    const large = updateOf('x'.repeat(2_000_000));
    await Promise.all([
      crdt.merge(null, large).then(note('large')),
      crdt.compact(updateOf('small')).then(note('small')),
      crdt.merge(null, Buffer.from('rubbish')).then(note('fault')),
      crdt.diff(updateOf('last'), Buffer.from([0])).then(note('last')),
    ]);
    t.strictSame(order, ['large', 'small', 'fault', 'last']);
  });

  await t.test(
    'an operation that takes too long is ended without blocking the event loop, and the next one runs',
    async (t) => {
      const crdt = open(t, { timeMs: (bytes) => (bytes > 50_000 ? 1_000 : 60_000) });
      let iterations = 0;
      let hasEnded = false;
      const count = (): void => {
        iterations += 1;
        if (!hasEnded) setImmediate(count);
      };
      setImmediate(count);
      const outcome = crdt.compact(slowUpdate());
      const next = crdt.merge(null, updateOf('next'));
      t.match(await outcome, { result: 'time' });
      hasEnded = true;
      t.ok((await outcome).ms >= 1_000);
      t.ok(iterations > 1_000, `${iterations} event loop iterations`);
      t.equal(textOf((await next).result), 'next');
    },
  );

  await t.test('an operation that takes too much memory is ended, and the next one runs', async (t) => {
    const crdt = open(t, { timeMs: () => 100_000, heapMb: 64 });
    t.match(await crdt.merge(null, structPerClient(450_000)), { result: 'memory' });
    t.equal(textOf((await crdt.merge(null, updateOf('next'))).result), 'next');
  });

  await t.test('close ends the running operation; pending and later calls reject', async (t) => {
    const crdt = open(t, { timeMs: () => 100_000 });
    t.equal(textOf((await crdt.merge(null, updateOf('before'))).result), 'before');
    const pending = [crdt.compact(slowUpdate()), crdt.merge(null, updateOf('pending'))];
    const rejected = Promise.all(pending.map((call) => t.rejects(call, Error)));
    await nextIteration();
    await crdt.close();
    await rejected;
    for (const call of [
      crdt.merge(null, updateOf('later')),
      crdt.diff(updateOf('later'), Buffer.from([0])),
      crdt.compact(updateOf('later')),
    ])
      await t.rejects(call, Error);
  });
}
