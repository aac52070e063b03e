import type { Store, Transaction } from '../../../src/ports/store.ts';
import { CollabError } from '../../../src/model/errors.ts';
import type { Cases } from './cases.ts';

const plusOne = (current: string | undefined): string => String(Number(current ?? 0) + 1);

/** Atomicity, conflicts, counters. */
export const transactionCases: Cases = {
  'a transaction sees nothing that it has buffered, and others see nothing before the commit': async (
    t,
    { store, peer },
  ) => {
    await store.transact(async (tx) => tx.put('p', 'changed', 'before'));
    const result = await store.transact(async (tx) => {
      tx.put('p', 'new', '1');
      tx.put('p', 'changed', 'after');
      tx.emit('stream', (seq) => `{"seq":${seq}}`);
      for (const reader of [tx, tx.unguarded, peer]) {
        t.equal(await reader.get('p', 'new'), undefined);
        t.strictSame(await reader.range('p'), [{ key: 'changed', value: 'before' }]);
      }
      t.equal(await peer.lastSeq('stream'), 0);
      return 'result';
    });
    t.equal(result, 'result');
    for (const view of [store, peer])
      t.strictSame(
        [await view.get('p', 'new'), await view.get('p', 'changed'), await view.lastSeq('stream')],
        ['1', 'after', 1],
      );
  },

  'a transaction without writes gives its result, and commits nothing': async (t, { store }) => {
    let commits = 0;
    store.onFlushed(() => commits++);
    t.equal(await store.transact(async (tx) => (await tx.get('p', 'k')) ?? 'none'), 'none');
    t.equal(commits, 0);
  },

  'a transaction whose work, change or render throws writes nothing': async (t, { store, peer }) => {
    const fail = (): never => {
      throw new CollabError('forbidden', 'no');
    };
    const failures: Readonly<Record<string, (tx: Transaction) => void>> = {
      work: fail,
      change: (tx) => tx.update('p', 'n', fail),
      render: (tx) => tx.emit('stream', fail),
    };
    for (const [name, failing] of Object.entries(failures)) {
      const transaction = store.transact(async (tx) => {
        tx.put('p', 'k', '1');
        tx.emit('stream', (seq) => `{"seq":${seq}}`);
        failing(tx);
      });
      await t.rejects(transaction, { code: 'forbidden' }, name);
      t.strictSame(
        [await peer.get('p', 'k'), await peer.get('p', 'n'), await peer.lastSeq('stream')],
        [undefined, undefined, 0],
        name,
      );
    }
  },

  'a transaction may write 16 MB, and one that is larger than the adapter allows is refused alone': async (
    t,
    { store, peer },
  ) => {
    await store.transact(async (tx) => {
      for (let i = 0; i < 4; i++) tx.put('p', `large${i}`, 'x'.repeat(3_999_000));
    });
    t.equal((await peer.get('p', 'large3'))?.length, 3_999_000);
    const [small, huge] = await Promise.allSettled(
      [1, 40_000_000].map((length) => store.transact(async (tx) => tx.put('p', `length${length}`, 'x'.repeat(length)))),
    );
    t.equal(small?.status, 'fulfilled');
    if (huge?.status === 'rejected') t.match(huge.reason, { code: 'payload_too_large' });
    t.equal((await peer.get('p', 'length40000000'))?.length, huge?.status === 'fulfilled' ? 40_000_000 : undefined);
  },

  'transactions that fail together with others leave nothing behind': async (t, { store, peer }) => {
    await store.transact(async (tx) => {
      for (const key of ['kept', 'n', 'old']) tx.put('p', key, '1');
    });
    const outcomes = await Promise.allSettled(
      Array.from({ length: 30 }, (_, i) =>
        store.transact(async (tx) => {
          tx.update('p', 'n', plusOne);
          tx.update('p', 'n', plusOne);
          tx.put('q', 'last', String(i));
          if (i === 0) tx.delete('p', 'old');
          if (i % 3 !== 1) return;
          tx.put('p', 'old', 'x');
          tx.delete('p', 'kept');
          tx.put('failed', 'k', 'x');
          tx.emit('stream', () => {
            throw new CollabError('forbidden', 'no');
          });
        }),
      ),
    );
    t.equal(outcomes.filter(({ status }) => status === 'rejected').length, 10);
    for (const view of [store, peer]) {
      t.equal(await view.get('p', 'n'), String(1 + 2 * 20));
      t.strictSame([await view.get('p', 'kept'), await view.get('p', 'old')], ['1', undefined]);
      t.not(Number(await view.get('q', 'last')) % 3, 1, 'the last write is not one of a transaction that failed');
      t.strictSame([await view.range('failed'), await view.lastSeq('stream')], [[], 0]);
    }
  },

  'of concurrent transactions that read and write one record, none is lost': async (t, { store, peer }) => {
    const add = (view: Store): Promise<void> =>
      view.transact(async (tx) => tx.put('p', 'n', plusOne(await tx.get('p', 'n'))));
    // As many at once as the number of runs surely allows, several times.
    for (let round = 0; round < 10; round++) await Promise.all([store, peer, store, peer].map(add));
    t.equal(await store.get('p', 'n'), '40');
  },

  'a transaction that has read a key runs again after a put, delete or update of it': async (t, { store, peer }) => {
    const changes: Readonly<Record<string, (tx: Transaction) => void>> = {
      put: (tx) => tx.put('p', 'n', '2'),
      delete: (tx) => tx.delete('p', 'n'),
      update: (tx) => tx.update('p', 'n', plusOne),
    };
    for (const [name, change] of Object.entries(changes)) {
      for (const other of [store, peer]) {
        await store.transact(async (tx) => tx.put('p', 'n', '1'));
        let runs = 0;
        let hasRead = (): void => {};
        // Begun outside of the transaction, which must not use the store itself.
        const changed = new Promise<void>((resolve) => (hasRead = resolve)).then(() =>
          other.transact(async (tx) => change(tx)),
        );
        await store.transact(async (tx) => {
          const seen = await tx.get('p', 'n');
          hasRead();
          await changed;
          runs++;
          tx.put('p', 'seen', seen ?? 'none');
        });
        t.equal(runs, 2, name);
        t.equal(await store.get('p', 'seen'), name === 'delete' ? 'none' : '2', name);
      }
    }
  },

  'a read of an absent record guards against its creation': async (t, { store, peer }) => {
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        (i % 2 === 0 ? store : peer).transact(async (tx) => {
          if ((await tx.get('p', 'unique')) !== undefined) return 'taken';
          tx.put('p', 'unique', String(i));
          return 'created';
        }),
      ),
    );
    t.equal(outcomes.filter((outcome) => outcome === 'created').length, 1);
  },

  'a range that was read does not guard, nor does an unguarded read': async (t, { store, peer }) => {
    let runs = 0;
    await store.transact(async (tx) => {
      runs++;
      await tx.range('p');
      await tx.unguarded.range('p');
      t.equal(await tx.unguarded.get('p', 'k'), undefined);
      await peer.transact(async (tx) => tx.put('p', 'k', '1'));
      tx.put('q', 'k', '1');
    });
    t.equal(runs, 1);
  },

  'an unguarded read shows an earlier value only if what there is at the commit suffices': async (
    t,
    { store, peer },
  ) => {
    const changes: Readonly<Record<string, (tx: Transaction) => void>> = {
      put: (tx) => tx.put('p', 'k', '2'),
      delete: (tx) => tx.delete('p', 'k'),
    };
    for (const [name, change] of Object.entries(changes)) {
      const latest = name === 'put' ? '2' : undefined;
      for (const answer of [true, false]) {
        await store.transact(async (tx) => tx.put('p', 'k', '1'));
        await peer.transact(async (tx) => change(tx));
        const asked: (string | undefined)[] = [];
        let runs = 0;
        const seen = await store.transact(async (tx) => {
          runs++;
          const value = await tx.unguarded.get('p', 'k', (current) => {
            asked.push(current);
            return answer;
          });
          tx.put('p', 'seen', value ?? 'none');
          return value;
        });
        t.equal(await peer.get('p', 'seen'), seen ?? 'none', name);
        t.ok(asked.every((current) => current === latest));
        if (answer) t.strictSame({ runs, isKnown: seen === '1' || seen === latest }, { runs: 1, isKnown: true }, name);
        else t.ok(runs <= 2 && seen === latest, `${name}: ${runs} runs, ${seen}`);
      }
    }
  },

  'a transaction that conflicts every time runs 12 times, and writes nothing': async (t, { store, peer }) => {
    let runs = 0;
    const transaction = store.transact(async (tx) => {
      runs++;
      await tx.get('p', 'n');
      await peer.transact(async (tx) => tx.update('p', 'n', plusOne));
      tx.put('p', 'k', '1');
    });
    await t.rejects(transaction, { code: 'write_conflict' });
    t.equal(runs, 12);
    t.strictSame([await store.get('p', 'k'), await store.get('p', 'n')], [undefined, '12']);
  },

  'concurrent updates of one record do not conflict, and all apply': async (t, { store, peer }) => {
    let runs = 0;
    const add = (view: Store): Promise<void> =>
      view.transact(async (tx) => {
        runs++;
        tx.update('p', 'n', plusOne);
        tx.update('p', 'n', plusOne);
      });
    await Promise.all(Array.from({ length: 200 }, (_, i) => add(i % 2 === 0 ? store : peer)));
    t.equal(await peer.get('p', 'n'), '400');
    t.equal(runs, 200);
  },

  'the writes of a transaction to one key apply in order, and undefined stands for no record': async (
    t,
    { store, peer },
  ) => {
    const seen: (string | undefined)[] = [];
    const note = (result: string | undefined) => (current: string | undefined) => {
      seen.push(current);
      return result;
    };
    await store.transact(async (tx) => {
      tx.update('p', 'a', note('1'));
      tx.put('p', 'a', '2');
      tx.update('p', 'a', note('3'));
      tx.update('p', 'b', note(undefined));
    });
    // A change may have been called more than once.
    t.strictSame([seen.at(0), seen.at(-2), seen.at(-1)], [undefined, '2', undefined]);
    t.strictSame(await peer.range('p'), [{ key: 'a', value: '3' }]);
    await store.transact(async (tx) => tx.update('p', 'a', () => undefined));
    t.equal(await peer.get('p', 'a'), undefined);
    await store.transact(async (tx) => {
      tx.put('p', 'a', '4');
      tx.delete('p', 'a');
      tx.update('p', 'a', (current) => current ?? 'none');
    });
    t.equal(await peer.get('p', 'a'), 'none');
  },
};
