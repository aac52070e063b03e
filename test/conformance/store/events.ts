import type { Store } from '../../../src/ports/store.ts';
import { until } from '../../helpers/cluster.ts';
import { type Cases, compact, emit } from './cases.ts';

const seqsOf = async (store: Store, stream: string, since: number, limit: number): Promise<number[]> =>
  (await store.events(stream, since, limit)).map(({ seq }) => seq);

/** Streams: positions, reading, trimming, their end. */
export const eventCases: Cases = {
  'events get positions per stream in the order of the calls': async (t, { store, peer }) => {
    await store.transact(async (tx) => {
      for (const [stream, name] of [
        ['a', 'one'],
        ['b', 'two'],
        ['a', 'three'],
      ] as const)
        tx.emit(stream, (seq) => `${name} ${seq}`);
    });
    await peer.transact(async (tx) => tx.emit('a', (seq) => `four ${seq}`));
    for (const view of [store, peer]) {
      t.strictSame(await view.events('a', 0, 10), [
        { seq: 1, text: 'one 1' },
        { seq: 2, text: 'three 2' },
        { seq: 3, text: 'four 3' },
      ]);
      t.strictSame(await view.events('b', 0, 10), [{ seq: 1, text: 'two 1' }]);
    }
  },

  'events are read by position, before and after maintenance': async (t, { store, peer }) => {
    const add = async (n: number): Promise<void> => {
      for (let i = 0; i < n; i++)
        await store.transact(async (tx) => tx.emit('stream', (seq) => `{"seq":${seq},"ü":"😀"}`));
    };
    for (const view of [store, peer]) {
      t.strictSame(
        [await view.lastSeq('stream'), await view.oldestSeq('stream'), await view.events('stream', 0, 10)],
        [0, 1, []],
      );
    }
    await add(5);
    await compact(store);
    await add(5);
    for (const view of [store, peer]) {
      t.strictSame([await view.lastSeq('stream'), await view.oldestSeq('stream')], [10, 1]);
      t.strictSame(await seqsOf(view, 'stream', 0, 100), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
      t.strictSame(await seqsOf(view, 'stream', 3, 4), [4, 5, 6, 7]);
      t.strictSame(
        (await view.events('stream', 7, 1)).map(({ text }) => text),
        ['{"seq":8,"ü":"😀"}'],
      );
      for (const [since, limit] of [
        [10, 100],
        [11, 100],
        [0, 0],
      ] as const)
        t.strictSame(await view.events('stream', since, limit), []);
      t.strictSame(await view.events('other', 0, 100), []);
    }
  },

  'a page of events is bounded in characters, and has at least one': async (t, { store, peer }) => {
    const text = (seq: number): string => `{"seq":${seq},"text":"${'ü'.repeat(seq === 7 ? 1_000_000 : 1_000)}"}`;
    const { length } = text(1);
    const add = async (n: number): Promise<void> => {
      for (let i = 0; i < n; i++) await store.transact(async (tx) => tx.emit('stream', text));
    };
    await add(9);
    const check = async (): Promise<void> => {
      for (const view of [store, peer]) {
        const seqs = async (since: number, maxChars: number): Promise<number[]> =>
          (await view.events('stream', since, 100, maxChars)).map(({ seq }) => seq);
        t.strictSame(await seqs(0, 3 * length), [1, 2, 3]);
        t.strictSame(await seqs(0, 3 * length - 1), [1, 2]);
        t.strictSame(await seqs(3, 1), [4]);
        t.strictSame(await seqs(4, 10 * length), [5, 6], 'the next one is too long');
        t.strictSame(await seqs(6, 10 * length), [7]);
        t.strictSame(await seqs(7, 10 * length), (await view.lastSeq('stream')) === 9 ? [8, 9] : [8, 9, 10, 11, 12]);
        t.equal((await view.events('stream', 4, 1, 10 * length)).length, 1, 'the number is bounded too');
      }
    };
    await check();
    await compact(store);
    await check();
    await add(3);
    await check();
  },

  'the names of streams follow the rules for those of partitions': async (t, { store, peer }) => {
    const printable = Array.from({ length: 0x7e - 0x20 }, (_, i) => String.fromCharCode(0x21 + i)).join('');
    const names = [printable, 's'.repeat(1_899), 's', 's!', 's~'];
    for (let round = 1; round <= 2; round++) {
      for (const name of names) await store.transact(async (tx) => tx.emit(name, (seq) => `${name} ${seq}`));
      for (const view of [store, peer]) {
        for (const name of names) {
          t.strictSame([await view.lastSeq(name), await view.oldestSeq(name)], [round, 1]);
          t.strictSame(
            (await view.events(name, 0, 10)).map(({ text }) => text),
            Array.from({ length: round }, (_, i) => `${name} ${i + 1}`),
          );
        }
      }
      await compact(store);
    }
    for (const name of names) await peer.trimEvents(name, 1);
    await store.transact(async (tx) => tx.endStream(printable));
    await compact(store);
    for (const view of [store, peer])
      t.strictSame(await Promise.all(names.map((name) => view.lastSeq(name))), [0, 2, 2, 2, 2]);
  },

  'a trim deletes the events up to its position, but not those after it and not the last one, and positions continue':
    async (t, { store, peer }) => {
      for (let i = 0; i < 60; i++) {
        await store.transact(async (tx) => {
          for (let n = 0; n < 20; n++) tx.emit('stream', (seq) => `{"seq":${seq}}`);
        });
      }
      for (const trimmed of [0, 700, 1_200, 9_999]) {
        await peer.trimEvents('stream', trimmed);
        for (const view of [store, peer]) {
          const oldest = await view.oldestSeq('stream');
          const position = Math.min(trimmed, 1_200);
          t.ok(
            oldest > position - 500 && oldest <= Math.min(position + 1, 1_200),
            `${oldest} is the oldest after a trim up to ${trimmed}`,
          );
          t.equal(await view.lastSeq('stream'), 1_200);
          for (const since of [0, oldest - 1]) {
            const seqs = await seqsOf(view, 'stream', since, 2_000);
            const first = seqs[0] ?? Infinity;
            t.ok(first > since && first <= oldest, `the events after ${since} begin with ${first}`);
            t.strictSame(
              seqs,
              Array.from({ length: 1_201 - first }, (_, i) => first + i),
              'without a gap',
            );
          }
        }
      }
      await emit(store, 'stream');
      for (const view of [store, peer]) t.equal(await view.lastSeq('stream'), 1_201);
      await t.resolves(store.trimEvents('no-such-stream', 10));
    },

  'a stream that ends loses its events, also after maintenance, and never takes another': async (
    t,
    { store, peer },
  ) => {
    const received: string[] = [];
    peer.follow((stream, event) => received.push(`${stream} ${event?.seq ?? 'end'}`));
    for (let i = 0; i < 3; i++) await emit(store, 'compacted');
    await compact(store);
    for (const stream of ['one', 'compacted', 'two']) await emit(store, stream);
    t.equal(await peer.lastSeq('compacted'), 4);
    peer.poll();
    await until(() => received.length === 6);
    await store.transact(async (tx) => {
      tx.put('p', 'k', 'in the same commit');
      tx.endStream('one');
      tx.endStream('compacted');
      tx.endStream('empty');
    });
    t.equal(await peer.get('p', 'k'), 'in the same commit');
    for (const maintenance of [() => Promise.resolve(), () => compact(store), () => compact(peer)]) {
      await maintenance();
      for (const view of [store, peer]) {
        for (const stream of ['one', 'compacted', 'empty']) {
          t.strictSame(
            [await view.lastSeq(stream), await view.oldestSeq(stream), await view.events(stream, 0, 10)],
            [0, 1, []],
            stream,
          );
          await t.rejects(emit(view, stream), { code: 'environment_not_found' });
        }
        const afterEnd = view.transact(async (tx) => {
          tx.endStream('two');
          tx.emit('two', (seq) => `{"seq":${seq}}`);
        });
        await t.rejects(afterEnd, { code: 'environment_not_found' }, 'also in the commit that ends it');
        await t.resolves(
          view.transact(async (tx) => tx.endStream('one')),
          'ending it again has no effect',
        );
      }
      await emit(peer, 'two');
    }
    for (const view of [store, peer]) t.equal(await view.lastSeq('two'), 4, 'other streams continue');
    const ended = ['one', 'compacted', 'empty'];
    await until(() => ['two 4', ...ended.map((stream) => `${stream} end`)].every((line) => received.includes(line)));
    for (const stream of ended)
      t.equal(received.filter((line) => line === `${stream} end`).length, 1, 'followers receive its end once');
  },

  'the positions of a stream have no gap, and every follower receives each event once, in order': async (
    t,
    { store, peer },
  ) => {
    const received = new Map<string, number[]>();
    const follow = (name: string, view: Store): void => {
      view.follow((stream, event) => {
        t.match(event?.text, `"seq":${event?.seq}`);
        const key = `${name} ${stream}`;
        received.set(key, [...(received.get(key) ?? []), event?.seq ?? 0]);
      });
    };
    follow('store', store);
    follow('peer', peer);
    store.onFlushed(() => peer.poll());
    peer.onFlushed(() => store.poll());
    await Promise.all(
      Array.from({ length: 300 }, (_, i) =>
        (i % 3 === 0 ? store : peer).transact(async (tx) => {
          tx.put('p', String(i), 'x');
          tx.emit(i % 5 === 0 ? 'b' : 'a', (seq) => `{"seq":${seq}}`);
          if (i % 7 === 0) tx.emit('a', (seq) => `{"seq":${seq}}`);
        }),
      ),
    );
    const last = { a: await store.lastSeq('a'), b: await store.lastSeq('b') };
    t.strictSame(last, { a: 240 + 43, b: 60 });
    for (const view of [store, peer]) view.poll();
    await until(
      () =>
        ['store a', 'peer a'].every((key) => received.get(key)?.length === last.a) &&
        ['store b', 'peer b'].every((key) => received.get(key)?.length === last.b),
    );
    for (const [key, seqs] of received)
      t.strictSame(
        seqs,
        Array.from({ length: key.endsWith('a') ? last.a : last.b }, (_, i) => i + 1),
        key,
      );
  },
};
