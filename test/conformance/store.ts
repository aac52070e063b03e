import type { Test } from 'tap';
import type { Store } from '../../src/ports/store.ts';
import { CollabError } from '../../src/model/errors.ts';

/** Two views of one store, as two processes have them. */
export interface StorePair {
  readonly store: Store;
  readonly peer: Store;
  close(): Promise<void>;
}

/** Every sentence of ports/store.ts as a test, for any adapter. */
export async function storeConformance(t: Test, open: () => Promise<StorePair>): Promise<void> {
  const withStore = (name: string, body: (t: Test, pair: StorePair) => Promise<void>): Promise<unknown> =>
    t.test(name, async (t) => {
      const pair = await open();
      t.teardown(() => pair.close());
      await body(t, pair);
    });

  await withStore('a record is absent, present, changed and gone, in both views', async (t, { store, peer }) => {
    t.equal(await store.get('p', 'k'), undefined);
    await store.transact(async (tx) => tx.put('p', 'k', '"one"'));
    t.equal(await store.get('p', 'k'), '"one"');
    t.equal(await peer.get('p', 'k'), '"one"');
    await peer.transact(async (tx) => tx.put('p', 'k', '"two ü 😀"'));
    t.equal(await store.get('p', 'k'), '"two ü 😀"');
    await store.transact(async (tx) => tx.delete('p', 'k'));
    t.equal(await peer.get('p', 'k'), undefined);
  });

  await withStore('once settled, the log of one view holds what reads show of the other’s commits', async (t, { store, peer }) => {
    for (let i = 1; i <= 20; i++) {
      const [writer, reader] = i % 2 === 0 ? [store, peer] : [peer, store];
      await writer.transact(async (tx) => {
        tx.put('p', 'k', String(i));
        tx.emit('env', (seq) => `{"seq":${seq}}`);
      });
      t.equal(await reader.get('p', 'k'), String(i));
      await reader.settle();
      t.equal(await reader.lastSeq('env'), i);
      t.strictSame(await reader.events('env', i - 1, 10), [{ seq: i, text: `{"seq":${i}}` }]);
    }
  });

  await withStore('ranges are ordered, bounded, exclusive after, and keep partitions apart', async (t, { store, peer }) => {
    await store.transact(async (tx) => {
      for (const key of ['c/2', 'a/1', 'c/1', 'b/9', 'c/3']) tx.put('p', key, key);
      tx.put('p0', 'c/0', 'other');
      tx.put('p/', 'c/0', 'other');
      tx.put('o', 'c/0', 'other');
    });
    await store.maintain();
    await store.transact(async (tx) => {
      tx.put('p', 'c/25', 'c/25');
      tx.delete('p', 'c/1');
    });
    for (const view of [store, peer]) {
      t.same((await view.range('p')).map(({ key }) => key), ['a/1', 'b/9', 'c/2', 'c/25', 'c/3']);
      t.same((await view.range('p', { prefix: 'c/' })).map(({ value }) => value), ['c/2', 'c/25', 'c/3']);
      t.same((await view.range('p', { prefix: 'c/', after: 'c/2' })).map(({ key }) => key), ['c/25', 'c/3']);
      t.same((await view.range('p', { prefix: 'c/', reverse: true })).map(({ key }) => key), ['c/3', 'c/25', 'c/2']);
      t.same((await view.range('p', { prefix: 'c/', after: 'c/25', reverse: true })).map(({ key }) => key), ['c/2']);
      t.same((await view.range('p', { prefix: 'c/', limit: 2 })).map(({ key }) => key), ['c/2', 'c/25']);
      t.same((await view.range('p', { prefix: 'c/', reverse: true, limit: 1 })).map(({ key }) => key), ['c/3']);
      t.same(await view.range('p', { limit: 0 }), []);
      t.same(await view.range('nothing'), []);
    }
  });

  await withStore('the names of partitions are listed in order, by prefix and in pages, folded or not', async (t, { store, peer }) => {
    const names = ['a', 'a!b', 'a/b', 'a/b/c', 'a0', 'b/1', 'b/2', 'b~'];
    await store.transact(async (tx) => {
      for (const name of names) for (const key of ['k/1', 'k/2']) if (name !== 'a/b/c') tx.put(name, key, '1');
    });
    await store.trimEvents('none', 0);
    await store.transact(async (tx) => {
      tx.put('a/b/c', 'k', '1');
      tx.put('b/1', 'k/3', '1');
    });
    for (const view of [store, peer]) {
      t.same(await view.partitions(''), names);
      t.same(await view.partitions('a/'), ['a/b', 'a/b/c']);
      t.same(await view.partitions('b/', { after: 'b/1' }), ['b/2']);
      t.same(await view.partitions('a', { limit: 3 }), ['a', 'a!b', 'a/b']);
      t.same(await view.partitions('a', { after: 'a/b', limit: 3 }), ['a/b/c', 'a0']);
      t.same(await view.partitions('a', { limit: 0 }), []);
      t.same(await view.partitions('c'), []);
    }
  });

  await withStore('a transaction that throws writes nothing', async (t, { store, peer }) => {
    await t.rejects(
      store.transact(async (tx) => {
        tx.put('p', 'k', '1');
        tx.emit('env', (seq) => `{"seq":${seq}}`);
        throw new CollabError('thread_not_found', 'Thread not found');
      }),
      { code: 'thread_not_found' },
    );
    await t.rejects(
      store.transact(async (tx) => {
        tx.put('p', 'k', '1');
        tx.update('p', 'n', () => {
          throw new CollabError('forbidden', 'no');
        });
      }),
      { code: 'forbidden' },
    );
    t.equal(await peer.get('p', 'k'), undefined);
    t.equal(await peer.lastSeq('env'), 0);
  });

  await withStore('of many that read and write one record, none is lost', async (t, { store, peer }) => {
    const add = (view: Store): Promise<void> =>
      view.transact(async (tx) => {
        const current = Number((await tx.get('p', 'n')) ?? 0);
        tx.put('p', 'n', String(current + 1));
      });
    // A round as wide as the attempts allow, several times.
    for (let round = 0; round < 10; round++) await Promise.all([store, peer, store, peer].map(add));
    t.equal(await store.get('p', 'n'), '40');
  });

  await withStore('updates never conflict with each other and all apply', async (t, { store, peer }) => {
    const add = (view: Store): Promise<void> =>
      view.transact(async (tx) => {
        tx.update('p', 'n', (current) => String(Number(current ?? 0) + 1));
        tx.update('p', 'n', (current) => String(Number(current ?? 0) + 1));
      });
    await Promise.all(Array.from({ length: 200 }, (_, i) => add(i % 2 === 0 ? store : peer)));
    t.equal(await peer.get('p', 'n'), '400');
  });

  await withStore('whoever read a counter conflicts with its update', async (t, { store, peer }) => {
    await store.transact(async (tx) => tx.put('p', 'n', '1'));
    let runs = 0;
    await store.transact(async (tx) => {
      runs++;
      const seen = await tx.get('p', 'n');
      if (runs === 1) await peer.transact(async (other) => other.update('p', 'n', (n) => String(Number(n) + 1)));
      tx.put('p', 'seen', seen ?? '');
    });
    t.equal(runs, 2);
    t.equal(await store.get('p', 'seen'), '2');
  });

  await withStore('an absent record that was read guards against its creation', async (t, { store, peer }) => {
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        (i % 2 === 0 ? store : peer).transact(async (tx) => {
          if ((await tx.get('p', 'unique')) !== undefined) return 'taken';
          tx.put('p', 'unique', String(i));
          return 'made';
        }),
      ),
    );
    t.equal(outcomes.filter((outcome) => outcome === 'made').length, 1);
  });

  await withStore('events have gapless positions in order, for every follower, once', async (t, { store, peer }) => {
    const seen = new Map<string, number[]>();
    const listen = (name: string, view: Store): void => {
      view.follow((stream, event) => {
        t.match(event?.text, `"seq":${event?.seq}`);
        const key = `${name} ${stream}`;
        seen.set(key, [...(seen.get(key) ?? []), event?.seq ?? 0]);
      });
    };
    listen('store', store);
    listen('peer', peer);
    store.onFlushed((position) => peer.wake(position));
    peer.onFlushed((position) => store.wake(position));
    await Promise.all(
      Array.from({ length: 300 }, (_, i) =>
        (i % 3 === 0 ? store : peer).transact(async (tx) => {
          tx.put('p', String(i), 'x');
          tx.emit(i % 5 === 0 ? 'b' : 'a', (seq) => `{"seq":${seq}}`);
          if (i % 7 === 0) tx.emit('a', (seq) => `{"seq":${seq}}`);
        }),
      ),
    );
    store.wake();
    peer.wake();
    const last = { a: await store.lastSeq('a'), b: await store.lastSeq('b') };
    t.equal(last.a, 240 + 43);
    t.equal(last.b, 60);
    await until(() => ['store a', 'peer a'].every((key) => seen.get(key)?.length === last.a));
    for (const [key, seqs] of seen) t.same(seqs, Array.from({ length: key.endsWith('a') ? last.a : last.b }, (_, i) => i + 1), key);
  });

  await withStore('the log is read by position, before and after upkeep, and trimmed', async (t, { store, peer }) => {
    const add = async (n: number): Promise<void> => {
      for (let i = 0; i < n; i++) await store.transact(async (tx) => tx.emit('env', (seq) => `{"seq":${seq},"ü":"😀"}`));
    };
    t.equal(await peer.lastSeq('env'), 0);
    t.equal(await peer.oldestSeq('env'), 1);
    t.same(await peer.events('env', 0, 10), []);
    await add(5);
    await store.trimEvents('env', 0);
    await add(5);
    peer.wake();
    await until(async () => (await peer.lastSeq('env')) === 10);
    for (const view of [store, peer]) {
      t.same((await view.events('env', 0, 100)).map(({ seq }) => seq), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
      t.same((await view.events('env', 3, 4)).map(({ seq }) => seq), [4, 5, 6, 7]);
      t.same((await view.events('env', 7, 100)).map(({ text }) => text)[0], '{"seq":8,"ü":"😀"}');
      t.same(await view.events('env', 10, 100), []);
      t.same(await view.events('other', 0, 100), []);
    }
    await store.trimEvents('env', 10);
    t.ok((await store.oldestSeq('env')) <= 10, 'the last event is kept');
    t.equal(await store.lastSeq('env'), 10);
    await add(1);
    t.equal(await store.lastSeq('env'), 11);
  });

  await withStore('memo computes once, and again after a change anywhere', async (t, { store, peer }) => {
    let computed = 0;
    const read = (view: Store): Promise<string> =>
      view.cached('m', ['p'], async () => {
        computed++;
        return (await view.range('p')).map(({ value }) => value).join();
      });
    await store.transact(async (tx) => tx.put('p', 'a', '1'));
    t.equal(await read(store), '1');
    await store.transact(async (tx) => tx.put('q', 'a', 'elsewhere'));
    t.equal(await read(store), '1');
    t.equal(computed, 1);
    await peer.transact(async (tx) => tx.put('p', 'b', '2'));
    t.equal(await read(store), '1,2');
    await store.transact(async (tx) => tx.delete('p', 'a'));
    t.equal(await read(store), '2');
    t.equal(computed, 3);
    await t.rejects(store.cached('bad', ['p'], () => Promise.reject(new Error('once'))), /once/);
    t.equal(await store.cached('bad', ['p'], () => Promise.resolve('fine')), 'fine', 'a failure is not kept');
  });

  await withStore('recall gives at once what memo has computed, until a change anywhere', async (t, { store, peer }) => {
    const compute = async (): Promise<string> => (await store.get('p', 'k')) ?? 'none';
    t.equal(store.peek('m'), undefined, 'nothing was computed');
    await store.cached('m', ['p'], compute);
    t.equal(store.peek('m'), 'none');
    await peer.transact(async (tx) => tx.put('q', 'k', 'elsewhere'));
    t.equal(store.peek('m'), 'none');
    await peer.transact(async (tx) => tx.put('p', 'k', '1'));
    t.equal(store.peek('m'), undefined, 'it has changed');
    const computing = store.cached('m', ['p'], compute);
    t.equal(store.peek('m'), undefined, 'it is being computed');
    await computing;
    t.equal(store.peek('m'), '1');
    await store.transact(async (tx) => tx.put('p', 'k', '2'));
    t.equal(store.peek('m'), undefined, 'it has changed again');
    t.equal(await store.cached('m', ['p'], compute), '2');
  });

  await withStore('a value computed while it changed is not kept', async (t, { store, peer }) => {
    let first = true;
    const read = (): Promise<string | undefined> =>
      store.cached('m', ['p'], async () => {
        const value = await store.get('p', 'k');
        if (first) {
          first = false;
          await peer.transact(async (tx) => tx.put('p', 'k', 'new'));
          await store.get('p', 'k');
        }
        return value;
      });
    await read();
    t.equal(await read(), 'new');
  });

  await withStore('a stream that ends loses its events in every view, folded or not, and takes no more', async (t, { store, peer }) => {
    const emit = (view: Store, stream: string): Promise<void> => view.transact(async (tx) => tx.emit(stream, (seq) => `{"seq":${seq}}`));
    const heard: string[] = [];
    peer.follow((stream, event) => heard.push(`${stream} ${event?.seq ?? 'end'}`));
    for (let i = 0; i < 3; i++) await emit(store, 'folded');
    await store.trimEvents('folded', 0);
    for (const stream of ['one', 'folded', 'two']) await emit(store, stream);
    t.equal(await peer.lastSeq('folded'), 4);
    peer.wake();
    await until(() => heard.length === 6);
    await store.transact(async (tx) => {
      tx.put('p', 'k', 'with it');
      tx.endStream('one');
      tx.endStream('folded');
      tx.endStream('empty');
    });
    t.equal(await peer.get('p', 'k'), 'with it');
    for (const fold of [false, true, true]) {
      if (fold) await (heard.length % 2 === 0 ? store : peer).trimEvents('two', 0);
      for (const view of [store, peer]) {
        await view.settle();
        for (const stream of ['one', 'folded', 'empty']) {
          t.strictSame([await view.lastSeq(stream), await view.oldestSeq(stream), await view.events(stream, 0, 10)], [0, 1, []], stream);
          await t.rejects(emit(view, stream), { code: 'environment_not_found' });
        }
        await t.rejects(
          view.transact(async (tx) => {
            tx.endStream('two');
            tx.emit('two', (seq) => `{"seq":${seq}}`);
          }),
          { code: 'environment_not_found' },
        );
        await t.resolves(view.transact(async (tx) => tx.endStream('one')), 'it may end again');
      }
      await emit(peer, 'two');
      heard.push('round');
    }
    t.equal(await store.lastSeq('two'), 4);
    await until(() => heard.includes('two 4'));
    for (const stream of ['one', 'folded', 'empty']) t.equal(heard.filter((line) => line === `${stream} end`).length, 1, 'followers hear of it once');
  });

  await withStore('what a listener throws changes nothing about the commit, and holds up no other', async (t, { store, peer }) => {
    const faults: unknown[] = [];
    const heard: number[] = [];
    let flushed = 0;
    for (const view of [store, peer]) view.onListenerError((error) => faults.push(error));
    store.follow(() => {
      throw new Error('a follower');
    });
    store.follow((_, event) => heard.push(event?.seq ?? 0));
    store.onFlushed(() => {
      throw new Error('a flush listener');
    });
    store.onFlushed(() => flushed++);
    for (let i = 1; i <= 3; i++) {
      await store.transact(async (tx) => {
        tx.put('p', 'k', String(i));
        tx.emit('env', (seq) => `{"seq":${seq}}`);
      });
    }
    t.equal(await peer.get('p', 'k'), '3');
    await until(() => heard.length === 3);
    t.strictSame([heard, flushed], [[1, 2, 3], 3]);
    t.strictSame([...new Set(faults.map(String))].sort(), ['Error: a flush listener', 'Error: a follower']);
  });

  await withStore('probe passes on a healthy store; a closed one rejects', async (t, { store }) => {
    await t.resolves(store.probe());
    await store.close();
    await t.rejects(Promise.resolve().then(() => store.get('p', 'k')));
    await t.rejects(Promise.resolve().then(() => store.transact(async (tx) => tx.put('p', 'k', '1'))));
  });
}

/** Resolves when `condition` holds; rejects after ten seconds. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error('the condition did not come true in 10 s');
    await new Promise((resolve) => setImmediate(resolve));
  }
}
