import t from 'tap';
import { createLogger } from '../../../src/observability/log.ts';
import { SnapshotWatch } from '../../../src/workers/background/snapshot-watch.ts';
import type { OpenSnapshot } from '../../../src/ports/store-operations.ts';

t.test(
  'a snapshot that is open for long is reported with its process, again every minute, and when it is closed',
  async (t) => {
    let open: OpenSnapshot[] = [];
    const operations = { openSnapshots: () => open, killHolder: () => false };
    const lines: string[] = [];
    const watch = new SnapshotWatch(
      operations,
      createLogger({
        level: 'info',
        name: 'background',
        destination: { write: (line: string) => void lines.push(line) },
      }),
    );
    const at = (heldMs: number): void => {
      open = [
        { table: 'log', pid: 4711, command: 'collab tail', stopped: true, heldMs, idleMs: heldMs, grownBytes: 2 ** 40 },
      ];
      watch.check();
    };
    at(9_000);
    t.same([lines.length, watch.longOpen.length], [0, 0], 'a short one is not reported');
    for (let ms = 10_000; ms < 75_000; ms += 1_000) at(ms);
    t.same(watch.longOpen, open);
    t.equal(lines.length, 2);
    t.match(JSON.parse(lines[0] ?? ''), {
      level: 'warn',
      table: 'log',
      pid: 4711,
      command: 'collab tail',
      stopped: true,
      heldSeconds: 10,
    });
    open = [];
    watch.check();
    watch.check();
    t.match(JSON.parse(lines[2] ?? ''), { level: 'info', snapshot: 'log 4711' });
    t.equal(lines.length, 3);
  },
);

t.test(
  'a process that is stopped or does not run is ended when the base table has grown, and nothing else is',
  async (t) => {
    const MB = 1024 * 1024;
    const stuck: OpenSnapshot = {
      table: 'tree',
      pid: 4711,
      command: 'collab tail',
      stopped: true,
      heldMs: 10_000,
      idleMs: 10_000,
      grownBytes: 256 * MB,
    };
    const cases: readonly [string, OpenSnapshot, boolean][] = [
      ['stopped', stuck, true],
      ['for less than 10 s', { ...stuck, heldMs: 9_999 }, false],
      ['with little growth', { ...stuck, grownBytes: 256 * MB - 1 }, false],
      ['with a snapshot of the log', { ...stuck, table: 'log' }, false],
      ['that runs', { ...stuck, stopped: false }, false],
      ['that has not run for a minute', { ...stuck, stopped: false, heldMs: 60_000, idleMs: 60_000 }, true],
      ['that is the primary', { ...stuck, pid: process.ppid }, false],
      ['that is a worker', { ...stuck, pid: process.pid }, false],
    ];
    for (const [name, snapshot, isEnded] of cases) {
      const ended: number[] = [];
      const operations = {
        openSnapshots: () => [snapshot],
        killHolder: ({ pid }: OpenSnapshot) => ended.push(pid) > 0,
      };
      const lines: string[] = [];
      let counted = 0;
      const log = createLogger({
        level: 'info',
        name: 'background',
        destination: { write: (line: string) => void lines.push(line) },
      });
      new SnapshotWatch(operations, log, { onEnded: () => counted++ }).check();
      t.same(ended, isEnded ? [snapshot.pid] : [], name);
      t.equal(counted, ended.length);
      if (isEnded)
        t.match(JSON.parse(lines.at(-1) ?? ''), { level: 'error', pid: 4711, grownMb: 256, msg: /has been killed/ });
    }
  },
);
