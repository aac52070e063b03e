import { spawn } from 'node:child_process';
import { cpus } from 'node:os';
import t from 'tap';
import { CpuWatch } from '../../src/lib/process/cpu-contention.ts';
import { until } from '../helpers/cluster.ts';

/** Runs for 50 ms between other work, and returns whether the CPU was contended. */
function isContended(watch: CpuWatch): boolean {
  for (const end = performance.now() + 50; performance.now() < end;);
  return watch.isContended;
}

t.test('the CPU is contended while other processes use every core, and only then', async (t) => {
  const others = cpus().flatMap(() =>
    [1, 2, 3, 4].map(() => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' })),
  );
  t.teardown(() => others.forEach((other) => other.kill('SIGKILL')));
  const watch = new CpuWatch();
  t.teardown(() => watch.stop());
  await until(() => isContended(watch));
  for (const other of others) other.kill('SIGKILL');
  await until(() => !isContended(watch), 300_000);
  t.pass('both were observed');
});
