import t from 'tap';
import { ProcessorTimeRows } from '../../bench/lib/processor-time-rows.ts';
import type { Target, TargetName } from '../../bench/lib/target.ts';

/** A server that is this process, with engines that are this process too. */
function targetOf(name: TargetName, engines: readonly string[]): Target {
  const pids = (): number[] => [process.pid];
  return {
    name,
    server: { pids },
    engines: engines.map((engine) => ({ name: engine, pids })),
  } as unknown as Target;
}

t.test('each row has values, also of an engine that only one of the targets uses', async (t) => {
  const rows = new ProcessorTimeRows('comment');
  const work = async (): Promise<number> => {
    for (const from = process.cpuUsage(); process.cpuUsage(from).user < 50_000;);
    return 10;
  };
  for (const target of [targetOf('collab', ['PostgreSQL']), targetOf('collab, Redis', ['PostgreSQL', 'Redis'])])
    await rows.measure(target, work);
  const values = rows.rows.flatMap(({ runs }) => [...runs.values()].flat());
  t.ok(values.length > 8);
  t.strictSame(
    values.filter((value) => !(value > 0)),
    [],
  );
  t.equal(rows.rows.filter(({ label }) => label.endsWith(', Redis')).length, 1);
  t.equal(rows.rows.filter(({ label }) => label.startsWith('the same')).length, 2, 'of all, and of PostgreSQL');
});
