import type { Cases } from './cases.ts';

/** Which commits reads show. */
export const freshnessCases: Cases = {
  'every kind of read shows a commit that the other store has confirmed': async (t, { store, peer }) => {
    for (let i = 1; i <= 20; i++) {
      const [writer, reader] = i % 2 === 0 ? [store, peer] : [peer, store];
      await writer.transact(async (tx) => {
        tx.put('p', 'k', String(i));
        tx.put(`q/${i}`, 'k', 'x');
        tx.emit('stream', (seq) => `{"seq":${seq}}`);
      });
      // Each round another kind of read is the first one.
      const reads = [
        async () => t.equal(await reader.get('p', 'k'), String(i)),
        async () => t.strictSame(await reader.range('p'), [{ key: 'k', value: String(i) }]),
        async () => t.equal((await reader.partitions('q/')).length, i),
        async () => t.equal(await reader.lastSeq('stream'), i),
        async () => t.equal(await reader.oldestSeq('stream'), 1),
        async () => t.strictSame(await reader.events('stream', i - 1, 10), [{ seq: i, text: `{"seq":${i}}` }]),
        async () => t.equal(await reader.cached('value', ['p'], async () => reader.get('p', 'k')), String(i)),
        async () => t.equal(await reader.transact(async (tx) => tx.get('p', 'k')), String(i)),
      ];
      for (let n = 0; n < reads.length; n++) await reads[(i + n) % reads.length]?.();
    }
  },

  'reads of every kind never go back, and show a commit with all its records and events': async (
    t,
    { store, peer },
  ) => {
    // Commit i writes i, adds a partition and an event, and ends a stream whose oldest event is not its first.
    const endsOf = (commit: number): string => `ends/${commit}`;
    const commits = 40;
    for (let i = 1; i <= commits; i++) {
      await store.transact(async (tx) => {
        for (let n = 0; n < 600; n++) tx.emit(endsOf(i), () => '{}');
      });
      await store.trimEvents(endsOf(i), 600);
    }
    const compute = async (): Promise<number> => Number((await peer.get('p', 'n')) ?? 0);
    /** The latest commit that each kind of read shows, at least of those up to `shown`. */
    const reads: Readonly<Record<string, (shown: number) => Promise<number>>> = {
      get: compute,
      oldestSeq: async (shown) => (shown > 0 && (await peer.oldestSeq(endsOf(shown))) > 1 ? 0 : shown),
      range: async () => Number((await peer.range('p'))[0]?.value ?? 0),
      lastSeq: () => peer.lastSeq('stream'),
      cached: () => peer.cached('value', ['p'], compute),
      partitions: async () => (await peer.partitions('q/')).length,
      events: async () => (await peer.events('stream', 0, 1_000)).length,
    };
    let writing = true;
    const writes = (async () => {
      for (let i = 1; i <= commits; i++) {
        await store.transact(async (tx) => {
          tx.put('p', 'n', String(i));
          tx.put(`q/${i}`, 'k', 'x');
          tx.emit('stream', (seq) => `{"seq":${seq}}`);
          tx.endStream(endsOf(i));
        });
      }
      writing = false;
    })();
    const wrong: unknown[] = [];
    const kinds = Object.entries(reads);
    for (let shown = 0, round = 0; writing; round++) {
      // Each kind of read follows each other kind in some round.
      for (let n = 0; n < kinds.length; n++) {
        const [kind, read] = kinds[(round + n * (1 + 2 * (round % 4))) % kinds.length] ?? [];
        const shows = (await read?.(shown)) ?? -1;
        if (shows < shown) wrong.push({ kind, shows, shown });
        shown = Math.max(shown, shows);
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    await writes;
    t.strictSame(wrong, []);
  },
};
