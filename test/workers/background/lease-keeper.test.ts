import { mock } from 'node:test';
import t, { type Test } from 'tap';
import { FOLDER_NODE, readLease } from '../../../src/domain/leases/leases.ts';
import { CollabError } from '../../../src/model/errors.ts';
import { createLogger } from '../../../src/observability/log.ts';
import type { Store } from '../../../src/ports/store.ts';
import { LeaseKeeper } from '../../../src/workers/background/lease-keeper.ts';
import { ManualClock } from '../../doubles/manual-clock.ts';
import { MemoryDatabase } from '../../doubles/memory-database.ts';
import { MemoryStore } from '../../doubles/memory-store.ts';

const HOUR = 3_600_000;
const log = createLogger({ level: 'silent', name: 'test' });

/** Opens keepers over one store, each with a clock of its own. Their looks are those that the test asks for. */
function place(t: Test) {
  const database = new MemoryDatabase();
  const store = new MemoryStore(database);
  t.teardown(() => store.close());
  let commits = 0;
  database.onCommit(() => void commits++);
  const keeper = (node: string, worker: string, own: Store = store) => {
    const clock = new ManualClock(0);
    const said: string[] = [];
    const keeper = new LeaseKeeper({
      store: own,
      clock,
      log,
      name: 'work',
      holder: { node, worker },
      onTaken: ({ fence }) => void said.push(`taken ${fence}`),
      onLost: () => void said.push('lost'),
    });
    return { keeper, clock, said, look: () => keeper.look() };
  };
  return { store, keeper, commits: () => commits };
}

t.test('a lease that nobody holds is taken at once, and so is that of an earlier worker of the node', async (t) => {
  const { keeper } = place(t);
  const [first, next, last] = [keeper('one', 'a'), keeper('one', 'b'), keeper('two', 'c')];
  await first.look();
  t.strictSame(first.said, ['taken 1']);
  await next.look();
  t.strictSame(next.said, ['taken 2'], 'the primary starts it when the one before has ended');
  await first.look();
  t.strictSame(first.said, ['taken 1', 'lost']);
  await next.keeper.stop();
  await next.keeper.release();
  await last.look();
  t.strictSame(last.said, ['taken 3']);
});

t.test('a lease that came with a move from or to a folder is taken at once', async (t) => {
  const { keeper } = place(t);
  const [folder, node, back] = [keeper(FOLDER_NODE, 'a'), keeper('one', 'b'), keeper(FOLDER_NODE, 'c')];
  await folder.look();
  await node.look();
  t.strictSame(node.said, ['taken 2']);
  await back.look();
  t.strictSame(back.said, ['taken 3']);
});

t.test('another node takes a lease that it has not seen renewed for 20 s, whatever the wall clocks say', async (t) => {
  const { keeper } = place(t);
  const [holder, other] = [keeper('one', 'a'), keeper('two', 'b')];
  await holder.look();
  holder.clock.set(HOUR);
  other.clock.set(-HOUR);
  for (let n = 0; n < 20; n++) {
    await other.look();
    other.clock.advance(5_000);
    if (n % 3 === 0) await holder.look();
  }
  t.strictSame(other.said, [], 'it is renewed every 15 s');
  await holder.look();
  await other.look();
  other.clock.advance(19_999);
  other.clock.set(2 * HOUR);
  await other.look();
  t.strictSame(other.said, []);
  other.clock.advance(1);
  await other.look();
  t.strictSame(other.said, ['taken 2']);
  await holder.look();
  await holder.look();
  t.strictSame(holder.said, ['taken 1', 'lost'], 'reported once');
});

t.test('a worker that waits looks each second, and once it has seen a renewal only when the next is due', async (t) => {
  const { store, keeper } = place(t);
  const holder = keeper('one', 'a');
  await holder.look();
  let looks = 0;
  const counting = new Proxy<Store>(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...args: readonly unknown[]): unknown => {
        if (name === 'get' && args[1] === 'work/renewals') looks++;
        return value.apply(target, args) as unknown;
      };
    },
  });
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const pass = async (ms: number): Promise<number> => {
    mock.timers.tick(ms);
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
    return looks;
  };
  const { keeper: other } = keeper('two', 'b', counting);
  await other.start();
  t.teardown(() => other.stop());
  t.equal(await pass(1_000), 2);
  t.equal(await pass(1_000), 3);
  await holder.look();
  t.equal(await pass(1_000), 4, 'it sees the renewal');
  t.equal(await pass(4_899), 4);
  t.equal(await pass(1), 5, 'none was due yet');
  t.equal(await pass(999), 5);
  await holder.look();
  t.equal(await pass(1), 6, 'it sees the next one');
  t.equal(await pass(4_899), 6);
});

t.test('while nobody waits for a lease, keeping it writes nothing', async (t) => {
  const { keeper, commits } = place(t);
  const [holder, other] = [keeper('one', 'a'), keeper('two', 'b')];
  await holder.look();
  const before = commits();
  for (let n = 0; n < 10; n++) await holder.look();
  t.equal(commits(), before);
  await other.look();
  await other.look();
  t.equal(commits(), before + 1, 'the wish');
  await holder.look();
  t.equal(commits(), before + 2, 'the renewal');
});

t.test('a holder is sure for 10 s after a look; then it reads the lease, and finds that it is lost', async (t) => {
  const { store, keeper } = place(t);
  const [holder, next] = [keeper('one', 'a'), keeper('one', 'b')];
  await t.rejects(holder.keeper.confirm(), /not taken/);
  await holder.look();
  await next.look();
  holder.clock.advance(9_999);
  await holder.keeper.confirm();
  holder.clock.advance(1);
  await t.rejects(holder.keeper.confirm(), { name: 'LeaseLostError' });
  t.strictSame(holder.said, ['taken 1', 'lost']);
  await holder.keeper.release();
  t.match(await readLease(store, 'work'), { holder: { worker: 'b' } });
  next.clock.advance(60_000);
  await next.keeper.confirm();
});

t.test(
  'while the store refuses writes, the next worker of the node goes on, and one of another node waits',
  async (t) => {
    const { store, keeper } = place(t);
    await keeper('one', 'a').look();
    let isFull = true;
    const full = new Proxy<Store>(store, {
      get: (target, name) => {
        if (name === 'transact' && isFull) return () => Promise.reject(new CollabError('storage_full', 'full'));
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    const [next, other] = [keeper('one', 'b', full), keeper('two', 'c', full)];
    await next.look();
    t.strictSame(next.said, ['taken 1']);
    other.clock.advance(HOUR);
    await other.look();
    other.clock.advance(HOUR);
    await other.look();
    t.strictSame(other.said, []);
    isFull = false;
    await other.look();
    await other.look();
    other.clock.advance(20_000);
    await other.look();
    t.strictSame(other.said, ['taken 2']);
  },
);
