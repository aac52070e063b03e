import { installCollab, startCollab } from '../lib/collab.ts';
import { type CaseResult, ceilingGoal, newRow, record } from '../lib/measure.ts';
import { startBareUws, startFastify } from '../lib/peers.ts';
import type { Plan } from '../lib/plan.ts';
import { residentBytes } from '../lib/processes.ts';
import { withTargets } from '../lib/rounds.ts';
import { seedUsers } from '../lib/seed.ts';
import { startSink } from '../lib/sink.ts';
import { openSockets, socketsPerUser } from '../lib/sockets.ts';
import type { Target } from '../lib/target.ts';
import { until } from '../lib/wait.ts';

/** Sockets that are opened and closed before the first look, so that code is loaded and compiled. */
const warmUpSockets = 100;
const warmUpTimes = 3;

/** Idle memory: what the resident memory of all server processes grows by, per open authenticated socket. */
export async function memoryCase(plan: Plan): Promise<CaseResult> {
  const perSocket = newRow('memory per idle socket', 'bytes', 0);
  const before = newRow('resident before', 'MB', 1);
  const after = newRow(`resident with ${plan.idleSockets} sockets`, 'MB', 1);
  const starts = [() => startCollab(installCollab(plan.bin), 2), () => startBareUws(), startFastify];

  for (let round = 0; round < plan.memoryRounds; round += 1) {
    for (const start of starts) {
      const target = await start();
      const [empty, full] = await withTargets([target], () => measure(target, plan.idleSockets));
      record(perSocket, target.name, (full - empty) / plan.idleSockets);
      record(before, target.name, empty / 1e6);
      record(after, target.name, full / 1e6);
    }
  }
  return {
    name: 'memory',
    title: `${plan.idleSockets} idle sockets`,
    rows: [perSocket, before, after],
    goals: [ceilingGoal(perSocket, 6000)],
  };
}

/** Resident bytes without and with the sockets, each once settled. */
async function measure(target: Target, sockets: number): Promise<[empty: number, full: number]> {
  if (target.name === 'collab') await seedUsers(target, Math.ceil(sockets / socketsPerUser));
  const sink = startSink(target.name);
  try {
    for (let i = 0; i < warmUpTimes; i += 1) {
      await openSockets(sink, target, warmUpSockets);
      await sink.close();
    }
    const empty = await settledBytes(target);
    await openSockets(sink, target, sockets);
    const full = await settledBytes(target);
    await sink.close();
    return [empty, full];
  } finally {
    sink.end();
  }
}

/** Resident bytes once they stayed within 256 KiB for three seconds. */
async function settledBytes(target: Target): Promise<number> {
  const steady = 256 * 1024;
  const steadyMs = 3000;
  let reference = residentBytes(target.server.pids());
  let since = performance.now();
  await until(`${target.name}: resident memory settles`, 30_000, () => {
    const now = residentBytes(target.server.pids());
    if (Math.abs(now - reference) > steady) {
      reference = now;
      since = performance.now();
    }
    return performance.now() - since > steadyMs;
  });
  return residentBytes(target.server.pids());
}
