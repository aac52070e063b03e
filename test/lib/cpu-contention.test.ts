import { spawn } from 'node:child_process';
import { cpus } from 'node:os';
import t from 'tap';
import { watchCpu } from '../../src/lib/cpu-contention.ts';
import { until } from '../helpers/cluster.ts';

/** Runs for 50 ms, and returns whether the CPU was contended. */
function isContended(): boolean {
  const observed = watchCpu();
  for (const end = performance.now() + 50; performance.now() < end; );
  return observed();
}

t.test('the CPU is contended while other processes use every core, and only then', async (t) => {
  const others = cpus().flatMap(() => [1, 2, 3, 4].map(() => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' })));
  t.teardown(() => others.forEach((other) => other.kill('SIGKILL')));
  await until(isContended);
  for (const other of others) other.kill('SIGKILL');
  await until(() => !isContended());
  t.pass('both were observed');
});
