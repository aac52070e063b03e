import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import t from 'tap';
import { processTimes, timesBetween } from '../../bench/lib/processor-time.ts';

/**
 * Uses processor time in the main thread, in a thread that ends, and in a child that ends; prints what the kernel has
 * counted.
 */
const program = `
  const { spawnSync } = require('node:child_process');
  const { Worker } = require('node:worker_threads');
  const burn = 'const from = process.cpuUsage(); while (process.cpuUsage(from).user < 150_000);';
  const usedMs = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1000; };
  process.stdin.once('data', async () => {
    const begun = usedMs();
    new Function(burn)();
    await new Promise((resolve) => new Worker(burn, { eval: true }).once('exit', resolve));
    const own = usedMs() - begun;
    const { stdout } = spawnSync(process.execPath, ['-e', burn + 'console.log(process.cpuUsage().user / 1000)']);
    console.log(JSON.stringify({ own, child: Number(stdout) }));
    process.stdin.resume();
  });
  console.log('ready');
`;

t.test(
  'the processor time of a process includes its threads and children that have ended, and is given by role',
  async (t) => {
    const child = spawn(process.execPath, ['-e', program], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, COLLAB_ROLE: 'web' },
    });
    t.teardown(() => child.kill('SIGKILL'));
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    await lines.next();
    const pid = child.pid ?? 0;
    const before = processTimes([pid]);
    child.stdin.write('go\n');
    const { value } = (await lines.next()) as { value: string };
    const reported = JSON.parse(value) as { own: number; child: number };
    const [used, ...others] = timesBetween(before, processTimes([pid]));
    t.strictSame(others, []);
    t.equal(used?.role, 'web');
    const total = (used?.userMs ?? 0) + (used?.systemMs ?? 0);
    // Ticks are of 10 ms, of each of four counters at both ends.
    t.ok(total >= reported.own + reported.child - 80, `${total} ms of ${JSON.stringify(reported)}`);
    t.ok((used?.userMs ?? 0) >= 400, `${used?.userMs} ms of user time, of which 450 were asked for`);
    // The child's start and end, and what is used while the answer is on its way.
    t.ok(total <= (reported.own + reported.child) * 2 + 500, `${total} ms of ${JSON.stringify(reported)}`);
  },
);

t.test('a process that begins meanwhile counts from its start, and one that has ended does not count', (t) => {
  const web = { role: 'web', userMs: 10, systemMs: 5 };
  t.strictSame(
    timesBetween(
      new Map([
        [1, web],
        [2, web],
      ]),
      new Map([
        [1, { ...web, userMs: 30 }],
        [3, web],
      ]),
    ),
    [{ role: 'web', userMs: 30, systemMs: 5 }],
  );
  t.equal(processTimes([process.pid, 2 ** 30]).size, 1);
  t.end();
});
