import { once } from 'node:events';
import type { Growth } from '../../../src/ports/store.ts';
import { until } from '../../helpers/cluster.ts';
import { type Cases, emit } from './cases.ts';

/** Followers and flush listeners, and what they throw. */
export const listenerCases: Cases = {
  'a follower receives the events of other processes with a poll or a read, until it unsubscribes': async (
    t,
    { store, peer },
  ) => {
    const received: number[] = [];
    const stop = peer.follow((_, event) => received.push(event?.seq ?? 0));
    const triggers = [async () => peer.poll(), async () => peer.get('p', 'k')];
    for (const [i, trigger] of triggers.entries()) {
      await emit(store, 'stream');
      await trigger();
      await until(() => received.length === i + 1);
    }
    stop();
    await emit(store, 'stream');
    await emit(peer, 'stream');
    peer.poll();
    t.equal(await peer.lastSeq('stream'), 4);
    t.strictSame(received, [1, 2]);
  },

  'a follower that reads the store receives every event once, in order and with its text': async (
    t,
    { store, peer },
  ) => {
    const received: string[] = [];
    peer.follow((_, event) => {
      peer.poll();
      void peer.get('p', 'k');
      received.push(event?.text ?? 'end');
    });
    const own = emit(peer, 'stream');
    for (let i = 0; i < 5; i++) {
      await Promise.all([emit(store, 'stream'), emit(store, 'stream')]);
      peer.poll();
    }
    await own;
    const last = await peer.lastSeq('stream');
    await until(() => received.length === last);
    const texts = (await peer.events('stream', 0, last)).map(({ text }) => text);
    t.strictSame(received, texts);
  },

  'onFlushed reports each commit of its own process, with the streams that have grown and a duration': async (
    t,
    { store, peer },
  ) => {
    const flushed: [growth: object, ms: number][] = [];
    const stop = store.onFlushed((growth, ms) => flushed.push([Object.fromEntries(growth), ms]));
    for (const view of [store, peer, store, peer, store]) await emit(view, 'stream');
    await store.transact(async (tx) => {
      tx.emit('other', (seq) => `{"seq":${seq}}`);
      for (let i = 0; i < 2; i++) tx.emit('stream', (seq) => `{"seq":${seq}}`);
    });
    await store.transact(async (tx) => tx.put('p', 'k', 'v'));
    await store.transact(async (tx) => {
      tx.emit('stream', (seq) => `{"seq":${seq}}`);
      tx.endStream('stream');
    });
    t.strictSame(
      flushed.map(([growth]) => growth),
      [{ stream: 1 }, { stream: 3 }, { stream: 5 }, { other: 1, stream: 7 }, {}, { stream: null }],
    );
    t.ok(flushed.every(([, ms]) => ms >= 0));
    stop();
    await emit(store, 'other');
    t.equal(flushed.length, 6);
  },

  'what onFlushed reports of concurrent commits covers every event': async (t, { store }) => {
    const last = new Map<string, number>();
    store.onFlushed((growth) => {
      for (const [stream, seq] of growth) last.set(stream, Math.max(seq ?? 0, last.get(stream) ?? 0));
    });
    await Promise.all(Array.from({ length: 60 }, (_, i) => emit(store, `s${i % 3}`)));
    t.strictSame(
      last,
      new Map([
        ['s0', 20],
        ['s1', 20],
        ['s2', 20],
      ]),
    );
  },

  'a poll finds what was announced, whether or not its followers have received a part of it': async (
    t,
    { store, peer },
  ) => {
    const received: string[] = [];
    peer.follow((stream, event) => received.push(`${stream} ${event?.seq ?? 'end'}`));
    const announced: Growth[] = [];
    store.onFlushed((growth) => announced.push(growth));
    await emit(store, 'a');
    await emit(store, 'b');
    for (const growth of announced) peer.poll(growth);
    await until(() => received.length === 2);
    await emit(store, 'a');
    peer.poll(new Map([['a', 1]]));
    peer.poll(announced.at(-1));
    await until(() => received.length === 3);
    await store.transact(async (tx) => tx.endStream('b'));
    peer.poll(announced.at(-1));
    await until(() => received.length === 4);
    await emit(store, 'a');
    peer.poll(null);
    await until(() => received.length === 5);
    t.strictSame(received, ['a 1', 'b 1', 'a 2', 'b end', 'a 3']);
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
    t.strictSame(errors.map(String).sort(), [
      ...Array<string>(3).fill('Error: a flush listener'),
      ...Array<string>(3).fill('Error: a follower'),
    ]);

    for (const stop of stops) stop();
    const warned = once(process, 'warning');
    await emit(store, 'stream');
    t.match(await warned, [{ message: /^a (follower|flush listener)$/ }], 'without a handler it is a process warning');
    t.equal(errors.length, 6);
  },
};
