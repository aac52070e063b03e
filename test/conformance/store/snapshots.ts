import { once } from 'node:events';
import type { OpenSnapshot } from '../../../src/ports/store.ts';
import { until } from '../../helpers/cluster.ts';
import type { Cases } from './cases.ts';

/** The snapshots that other processes hold. */
export const snapshotCases: Cases = {
  'openSnapshots lists no snapshot of its own process': async (t, { store, peer }) => {
    await store.transact(async (tx) => tx.put('p', 'k', '1'));
    for (const view of [store, peer]) {
      await view.get('p', 'k');
      await view.range('p');
      t.strictSame(store.openSnapshots(), []);
    }
  },

  'openSnapshots describes a snapshot of another process, which killHolder kills and maintain frees': async (
    t,
    { store, peer, outside },
  ) => {
    const absent: OpenSnapshot = {
      table: 'tree',
      pid: process.ppid,
      command: null,
      stopped: false,
      heldMs: 0,
      idleMs: 0,
      grownBytes: 0,
    };
    t.equal(store.killHolder(absent), false, 'a process that does not have the store open is not killed');
    if (outside.holdSnapshot === null) return;
    const holder = await outside.holdSnapshot(t);
    const pid = holder.pid ?? 0;
    const held = (): OpenSnapshot | undefined => store.openSnapshots().find((snapshot) => snapshot.pid === pid);
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
    const before = peer.openSnapshots().find((snapshot) => snapshot.pid === pid);
    t.equal(before?.heldMs, 0, 'the time begins with the first call that finds it');
    t.equal(before?.grownBytes, 0);

    const ended = once(holder, 'exit');
    t.equal(store.killHolder(first as OpenSnapshot), true);
    t.strictSame(await ended, [null, 'SIGKILL']);
    await store.maintain();
    t.strictSame([held(), peer.openSnapshots()], [undefined, []]);
  },
};
