import t from 'tap';
import { MemoryDatabase } from '../../doubles/memory-database.ts';
import { MemoryStore } from '../../doubles/memory-store.ts';
import { createLogger } from '../../../src/observability/log.ts';
import { SnapshotWatch } from '../../../src/workers/background/snapshot-watch.ts';
import type { OpenSnapshot } from '../../../src/ports/store.ts';

t.test('a snapshot that is open for long is reported with its process, again every minute, and when it is closed', async (t) => {
  let open: OpenSnapshot[] = [];
  const store = new MemoryStore(new MemoryDatabase());
  store.openSnapshots = () => open;
  const lines: string[] = [];
  const watch = new SnapshotWatch(store, createLogger({ level: 'info', name: 'background', destination: { write: (line: string) => void lines.push(line) } }));
  const at = (heldMs: number): void => {
    open = [{ table: 'log', pid: 4711, command: 'collab tail', stopped: true, heldMs }];
    watch.check();
  };
  at(9_000);
  t.same([lines.length, watch.longOpen.length], [0, 0], 'a short one is not reported');
  for (let ms = 10_000; ms < 75_000; ms += 1_000) at(ms);
  t.same(watch.longOpen, open);
  t.equal(lines.length, 2);
  t.match(JSON.parse(lines[0] ?? ''), { level: 'warn', table: 'log', pid: 4711, command: 'collab tail', stopped: true, heldSeconds: 10 });
  open = [];
  watch.check();
  watch.check();
  t.match(JSON.parse(lines[2] ?? ''), { level: 'info', snapshot: 'log 4711' });
  t.equal(lines.length, 3);
});
