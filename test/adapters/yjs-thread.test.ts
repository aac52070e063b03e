import { setImmediate as nextIteration } from 'node:timers/promises';
import t, { type Test } from 'tap';
import * as Y from 'yjs';
import { YjsThread, type YjsThreadOptions } from '../../src/adapters/yjs/yjs-thread.ts';
import { crdtConformance, slowUpdate, textOf } from '../conformance/crdt.ts';
import { documentWith } from '../fixtures/yjs.ts';

function startThread(t: Test, options?: YjsThreadOptions): YjsThread {
  const thread = new YjsThread(options);
  t.teardown(() => thread.close());
  return thread;
}

await crdtConformance(t, (t, limits) => {
  if (limits === undefined) return startThread(t);
  const { timeMs, heapMb } = limits;
  return startThread(t, { timeMs, ...(heapMb === undefined ? {} : { heapMb: () => heapMb }) });
});

t.test('the arguments, which may be views of larger buffers, are not changed', async (t) => {
  const thread = startThread(t);
  const one = Buffer.from(Y.encodeStateAsUpdate(documentWith('one')));
  const view = Buffer.concat([Buffer.alloc(7), one, Buffer.alloc(9)]).subarray(7, -9);
  t.equal(textOf((await thread.merge(null, view)).result), 'one');
  t.same(view, one);
});

t.test('close ends the running operation, and a large document gets a thread with a larger heap', async (t) => {
  const thread = startThread(t, { timeMs: () => 100_000 });
  const large = Y.encodeStateAsUpdate(documentWith('x'.repeat(9_000_000)));
  t.equal(textOf((await thread.merge(null, Y.encodeStateAsUpdate(documentWith('small')))).result), 'small');
  t.equal(textOf((await thread.merge(null, large)).result).length, 9_000_000);
  const running = thread.compact(slowUpdate());
  const rejected = t.rejects(running, { message: /^the thread for Yjs documents has ended/ });
  await nextIteration();
  await thread.close();
  await rejected;
  await t.rejects(thread.compact(large), { message: 'the thread for Yjs documents is closed' });
});
