import { setImmediate as nextIteration } from 'node:timers/promises';
import t, { type Test } from 'tap';
import * as Y from 'yjs';
import { YjsThread, type YjsThreadOptions } from '../../src/adapters/yjs/yjs-thread.ts';
import { baseText, documentWith, insertsAtOneOrigin, structPerClient } from '../fixtures/yjs.ts';

function startThread(t: Test, options?: YjsThreadOptions): YjsThread {
  const thread = new YjsThread(options);
  t.teardown(() => thread.close());
  return thread;
}

function textOf(update: Uint8Array | string): string {
  const document = new Y.Doc();
  if (typeof update !== 'string') Y.applyUpdate(document, update);
  return document.getText('text').toJSON();
}

t.test('documents are merged, compared and compacted, and the arguments are not changed', async (t) => {
  const thread = startThread(t);
  const [one, two] = ['one', 'two'].map((text) => Y.encodeStateAsUpdate(documentWith(text)));
  const view = Buffer.concat([Buffer.alloc(7), one ?? Buffer.alloc(0), Buffer.alloc(9)]).subarray(7, -9);
  const { result: merged, ms } = await thread.merge(view, two ?? view);
  t.ok(['onetwo', 'twoone'].includes(textOf(merged)), textOf(merged));
  t.ok(ms > 0);
  t.same(view, Buffer.from(one ?? []));
  const whole = merged as Uint8Array;
  t.equal(textOf((await thread.diff(whole, Buffer.from([0]))).result), textOf(whole));
  t.equal(textOf((await thread.compact(whole)).result), textOf(whole));
  t.equal(textOf((await thread.merge(null, view)).result), 'one');
});

t.test('a fault names the argument that is not valid', async (t) => {
  const thread = startThread(t);
  const good = Y.encodeStateAsUpdate(documentWith('text'));
  t.match(await thread.merge(good, Buffer.from('rubbish')), { result: 'update' });
  t.match(await thread.merge(Buffer.from('rubbish'), good), { result: 'stored' });
  t.match(await thread.diff(good, Buffer.from([9, 9])), { result: 'vector' });
  t.match(await thread.diff(Buffer.from('rubbish'), Buffer.from([0])), { result: 'stored' });
});

t.test('an operation that takes too long is ended without blocking the event loop, and the next one runs', async (t) => {
  const thread = startThread(t, { timeMs: () => 1_000 });
  const attack = Y.mergeUpdates([baseText(16_000), insertsAtOneOrigin(16_000)]);
  t.ok(attack.byteLength < 400_000, `${attack.byteLength} bytes`);
  let iterations = 0;
  let hasEnded = false;
  const count = (): void => {
    iterations += 1;
    if (!hasEnded) setImmediate(count);
  };
  setImmediate(count);
  const outcome = thread.compact(attack);
  const next = thread.merge(null, Y.encodeStateAsUpdate(documentWith('next')));
  t.match(await outcome, { result: 'time' });
  hasEnded = true;
  t.ok((await outcome).ms >= 1_000);
  t.ok(iterations > 1_000, `${iterations} event loop iterations`);
  t.equal(textOf((await next).result), 'next');
});

t.test('an operation that takes too much memory is ended, and the next one runs', async (t) => {
  const thread = startThread(t, { timeMs: () => 100_000, heapMb: () => 64 });
  t.match(await thread.merge(null, structPerClient(450_000)), { result: 'memory' });
  t.equal(textOf((await thread.merge(null, Y.encodeStateAsUpdate(documentWith('next')))).result), 'next');
});

t.test('close ends the running operation, and a large document gets a thread with a larger heap', async (t) => {
  const thread = startThread(t, { timeMs: () => 100_000 });
  const large = Y.encodeStateAsUpdate(documentWith('x'.repeat(9_000_000)));
  t.equal(textOf((await thread.merge(null, Y.encodeStateAsUpdate(documentWith('small')))).result), 'small');
  t.equal(textOf((await thread.merge(null, large)).result).length, 9_000_000);
  const running = thread.compact(Y.mergeUpdates([baseText(16_000), insertsAtOneOrigin(16_000)]));
  const rejected = t.rejects(running, { message: /^the thread for Yjs documents has ended/ });
  await nextIteration();
  await thread.close();
  await rejected;
  await t.rejects(thread.compact(large), { message: 'the thread for Yjs documents is closed' });
});
