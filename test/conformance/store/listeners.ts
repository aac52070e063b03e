import { once } from 'node:events';
import { until } from '../../helpers/cluster.ts';
import { type Cases, emit } from './cases.ts';

/** Followers and flush listeners, and what they throw. */
export const listenerCases: Cases = {
  'a follower receives the events of other processes with a poll, a read or maintain, until it unsubscribes': async (t, { store, peer }) => {
    const received: number[] = [];
    const stop = peer.follow((_, event) => received.push(event?.seq ?? 0));
    const triggers = [async () => peer.poll(), async () => peer.get('p', 'k'), async () => peer.maintain()];
    for (const [i, trigger] of triggers.entries()) {
      await emit(store, 'stream');
      await trigger();
      await until(() => received.length === i + 1);
    }
    stop();
    await emit(store, 'stream');
    await emit(peer, 'stream');
    peer.poll();
    t.equal(await peer.lastSeq('stream'), 5);
    t.strictSame(received, [1, 2, 3]);
  },

  'onFlushed reports each commit of its own process, with a growing position and a duration': async (t, { store, peer }) => {
    const flushed: [position: number, ms: number][] = [];
    const stop = store.onFlushed((position, ms) => flushed.push([position, ms]));
    for (const view of [store, peer, store, peer, store]) await emit(view, 'stream');
    t.equal(flushed.length, 3);
    t.ok(flushed.every(([position, ms], i) => position > (flushed[i - 1]?.[0] ?? 0) && ms >= 0), JSON.stringify(flushed));
    stop();
    await emit(store, 'stream');
    t.equal(flushed.length, 3);
  },

  'a listener that throws affects neither the commit nor other listeners': async (t, { store, peer }) => {
    const errors: unknown[] = [];
    const received: number[] = [];
    let flushed = 0;
    const stops = [store, peer].map((view) => view.onListenerError((error) => errors.push(error)));
    store.follow(() => {
      throw new Error('a follower');
    });
    store.follow((_, event) => received.push(event?.seq ?? 0));
    store.onFlushed(() => {
      throw new Error('a flush listener');
    });
    store.onFlushed(() => flushed++);
    for (let i = 1; i <= 3; i++) {
      await store.transact(async (tx) => {
        tx.put('p', 'k', String(i));
        tx.emit('stream', (seq) => `{"seq":${seq}}`);
      });
    }
    for (const view of [store, peer]) t.strictSame([await view.get('p', 'k'), await view.lastSeq('stream')], ['3', 3]);
    await until(() => received.length === 3);
    t.strictSame([received, flushed], [[1, 2, 3], 3]);
    t.strictSame(errors.map(String).sort(), [...Array<string>(3).fill('Error: a flush listener'), ...Array<string>(3).fill('Error: a follower')]);

    for (const stop of stops) stop();
    const warned = once(process, 'warning');
    await emit(store, 'stream');
    t.match(await warned, [{ message: /^a (follower|flush listener)$/ }], 'without a handler it is a process warning');
    t.equal(errors.length, 6);
  },
};
