import { once } from 'node:events';
import type { ChildProcess } from 'node:child_process';
import type { Test } from 'tap';
import type { OpenSnapshot, StoreFault, StoreOperations } from '../../src/ports/store-operations.ts';
import { until } from '../helpers/cluster.ts';
import { compact, emit, type Pair } from './store/cases.ts';

/** What the disk and other processes do to a store folder. */
export interface Folder {
  /** Changes a text on disk wherever it is, without its length. */
  readonly damage: (text: string) => void;
  /** Starts a process that has the store open and holds a snapshot until it is killed. */
  readonly holdSnapshot: (t: Test) => Promise<ChildProcess>;
}

/** Two open stores over the same folder, with what they need of it. */
export interface LocalStores extends Pair {
  readonly operations: StoreOperations;
  readonly peerOperations: StoreOperations;
}

/** Of a process that does not have the store open. */
const absent: OpenSnapshot = {
  table: 'tree',
  pid: process.ppid,
  command: null,
  stopped: false,
  heldMs: 0,
  idleMs: 0,
  grownBytes: 0,
};

const cases: Readonly<Record<string, (t: Test, pair: LocalStores & Folder) => Promise<void>>> = {
  'with expireOnInput, a read after an input shows what was committed before it': async (
    t,
    { store, operations, peer },
  ) => {
    const onInput = operations.expireOnInput();
    for (let i = 1; i <= 10; i++) {
      await peer.transact(async (tx) => tx.put('p', 'k', String(i)));
      onInput();
      t.equal(await store.get('p', 'k'), String(i));
      t.equal(await store.get('p', 'k'), String(i));
    }
  },

  'the read after releaseSnapshot takes a new snapshot, and results of earlier reads stay valid': async (
    t,
    { store, operations, outside },
  ) => {
    await store.transact(async (tx) => tx.put('p', 'k', '1'));
    // The steps until the next read are one callback: without the release, a read may show what the first one has
    // shown.
    const entries = await store.range('p');
    outside.commit('p', 'k', '2');
    operations.releaseSnapshot();
    t.equal(await store.get('p', 'k'), '2');
    operations.releaseSnapshot();
    operations.releaseSnapshot();
    t.equal(await store.get('p', 'k'), '2');
    t.strictSame(entries, [{ key: 'k', value: '1' }]);
  },

  'maintenance changes nothing that reads show': async (t, { store, operations, peer, peerOperations }) => {
    await store.transact(async (tx) => tx.put('p', 'k', '1'));
    await emit(store, 'stream');
    for (const view of [operations, peerOperations, operations]) {
      await view.maintain();
      t.strictSame(
        [await peer.get('p', 'k'), await peer.lastSeq('stream'), await store.events('stream', 0, 10)],
        ['1', 1, [{ seq: 1, text: '{"seq":1}' }]],
      );
    }
  },

  'maintenance passes the events of other processes to followers': async (t, { store, peer, peerOperations }) => {
    const received: number[] = [];
    peer.follow((_, event) => received.push(event?.seq ?? 0));
    await emit(store, 'stream');
    await peerOperations.maintain();
    await until(() => received.length > 0);
    t.strictSame(received, [1]);
  },

  'faults yields nothing while the data is as written, and each record and event that is damaged': async (
    t,
    { store, operations, damage },
  ) => {
    const found = async (): Promise<StoreFault[]> => {
      const faults: StoreFault[] = [];
      for await (const fault of operations.faults()) faults.push(fault);
      return faults;
    };
    await store.transact(async (tx) => {
      for (const key of ['whole', 'damaged']) tx.put('p', key, `"value of ${key}"`);
      for (const stream of ['intact', 'harmed']) tx.emit(stream, () => `"event of ${stream}"`);
    });
    await compact(store);
    t.strictSame(await found(), []);
    for (const text of ['value of damaged', 'event of harmed']) damage(text);
    const faults = await found();
    t.equal(faults.length, 2);
    for (const name of ['damaged', 'harmed'])
      t.match(
        faults.find((fault) => fault.name.includes(name)),
        { fault: /^is / },
        name,
      );
  },

  'openSnapshots lists no snapshot of its own process': async (t, { store, operations, peer }) => {
    await store.transact(async (tx) => tx.put('p', 'k', '1'));
    for (const view of [store, peer]) {
      await view.get('p', 'k');
      await view.range('p');
      t.strictSame(operations.openSnapshots(), []);
    }
  },

  'openSnapshots describes a snapshot of another process, which killHolder kills and maintain frees': async (
    t,
    { operations, peerOperations, holdSnapshot },
  ) => {
    t.equal(operations.killHolder(absent), false, 'a process that does not have the store open is not killed');
    const holder = await holdSnapshot(t);
    const pid = holder.pid ?? 0;
    const held = (): OpenSnapshot | undefined => operations.openSnapshots().find((snapshot) => snapshot.pid === pid);
    await until(() => held() !== undefined);
    process.kill(pid, 'SIGSTOP');
    await until(() => held()?.stopped === true);
    await until(() => (held()?.idleMs ?? 0) > 0);
    const first = held();
    await until(() => (held()?.heldMs ?? 0) > (first?.heldMs ?? 0));
    t.ok(first !== undefined && ['log', 'tree'].includes(first.table), 'the table is named');
    t.ok(
      first !== undefined && (first.command === null || first.command.length > 0),
      'so is the command, where the system shows it',
    );
    t.ok(first !== undefined && first.heldMs >= first.idleMs && first.grownBytes >= 0);
    const before = peerOperations.openSnapshots().find((snapshot) => snapshot.pid === pid);
    t.equal(before?.heldMs, 0, 'the time begins with the first call that finds it');
    t.equal(before?.grownBytes, 0);

    const ended = once(holder, 'exit');
    t.equal(operations.killHolder(first as OpenSnapshot), true);
    t.strictSame(await ended, [null, 'SIGKILL']);
    await operations.maintain();
    t.strictSame([held(), peerOperations.openSnapshots()], [undefined, []]);
  },

  'after close, operations throw or reject, except a release': async (t, { store, operations }) => {
    await store.close();
    t.doesNotThrow(() => operations.releaseSnapshot());
    const calls: Readonly<Record<string, () => unknown>> = {
      maintain: () => operations.maintain(),
      faults: async () => {
        for await (const _ of operations.faults());
      },
      openSnapshots: () => operations.openSnapshots(),
      killHolder: () => operations.killHolder(absent),
    };
    for (const [name, call] of Object.entries(calls))
      await t.rejects(Promise.resolve().then(call), { message: 'The store is closed' }, name);
  },
};

/** Asserts every sentence of `StoreOperations` for an adapter. `open` opens two stores over a new, empty folder. */
export async function storeOperationsConformance(
  t: Test,
  open: (t: Test) => Promise<LocalStores & Folder & { close(): Promise<void> }>,
): Promise<void> {
  for (const [name, run] of Object.entries(cases)) {
    await t.test(name, async (t) => {
      const { close, ...pair } = await open(t);
      t.teardown(close);
      await run(t, pair);
    });
  }
}
