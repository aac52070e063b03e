import { startBuilds } from './lib/collab.ts';
import { median } from './lib/measure.ts';
import { readPlan } from './lib/plan.ts';
import { busyMs } from './lib/processes.ts';
import { seedThreads, seedUsers } from './lib/seed.ts';
import { runWrk, threadsFile } from './lib/wrk.ts';
import { useDataRoot } from './lib/folders.ts';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
execFileSync('taskset', ['-a', '-p', '-c', '1', String(process.pid)], { stdio: 'ignore' });
useDataRoot(undefined);
const [kind, bin, before, rounds = '12'] = process.argv.slice(2);
const plan = readPlan(['--bin', bin!, '--before', before!]);
const builds = await startBuilds(plan);
const files = new Map();
for (const b of builds) { await seedUsers(b, 50); files.set(b, threadsFile(await seedThreads(b, kind === 'list' ? 100 : 500, kind === 'list' ? 50 : 1))); await runWrk(kind as 'create', b, files.get(b), 3); }
const got = new Map();
for (let r = 0; r < Number(rounds); r++) for (const b of r % 2 ? builds : [...builds].reverse()) {
  const pids = b.server.pids();
  const was = pids.map((p) => busyMs([p]));
  const { perSecond } = await runWrk(kind as 'create', b, files.get(b), 1);
  const n = perSecond;
  const now = pids.map((p) => busyMs([p]));
  const list = got.get(b.name) ?? []; got.set(b.name, list);
  list.push([perSecond, ...pids.map((_, i) => ((now[i]! - was[i]!) * 1000) / n)]);
}
for (const [name, list] of got) { console.log(name.padEnd(16), 'rate', median(list.map((x: number[]) => x[0]!)).toFixed(0), 'us/req by process', list[0].slice(1).map((_: number, i: number) => median(list.map((x: number[]) => x[i + 1]!)).toFixed(1)).join(' '), 'total', median(list.map((x: number[]) => x.slice(1).reduce((a, c) => a + c, 0))).toFixed(1), 'min', Math.min(...list.map((x: number[]) => x.slice(1).reduce((a, c) => a + c, 0))).toFixed(1)); }
for (const b of builds) await b.server.stop();
