import { setTimeout } from 'node:timers/promises';
import { installCollab, startCollab } from '../lib/collab.ts';
import { beforeGoal, type CaseResult, ceilingGoal, newRow, record } from '../lib/measure.ts';
import { startBareUws, startFastify } from '../lib/peers.ts';
import type { Plan } from '../lib/plan.ts';
import { residentBytes } from '../lib/processes.ts';
import { inRound, withTargets } from '../lib/rounds.ts';
import { seedUsers } from '../lib/seed.ts';
import { startSink } from '../lib/sink.ts';
import { openSockets, socketsPerUser } from '../lib/sockets.ts';
import type { Target } from '../lib/target.ts';

/** Sockets that are opened and closed before the first measurement, so that all code is loaded and compiled. */
const warmUpSockets = 100;
const warmUpTimes = 3;

/** Idle memory: the growth of the resident memory of all server processes per open authenticated socket. */
export async function memoryCase(plan: Plan): Promise<CaseResult> {
  const perSocket = newRow('memory per idle socket', 'bytes', 0);
  const before = newRow('resident before', 'MB', 1);
  const after = newRow(`resident with ${plan.idleSockets} sockets`, 'MB', 1);
  const { before: earlier } = plan;
  const peers: (() => Promise<Target>)[] =
    earlier === null
      ? [() => startBareUws(), startFastify]
      : [() => startCollab(installCollab(earlier), 'auto', 'collab before')];
  const starts = [() => startCollab(installCollab(plan.bin)), ...peers];

  for (let round = 0; round < plan.memoryRounds; round += 1) {
    for (const start of inRound(starts, round)) {
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
    goals:
      earlier === null
        ? [ceilingGoal(perSocket, 6000)]
        : [beforeGoal(perSocket), beforeGoal(before), beforeGoal(after)],
  };
}

/** Resident bytes without and with the sockets, each after they became stable. */
async function measure(target: Target, sockets: number): Promise<[empty: number, full: number]> {
  if (target.name.startsWith('collab')) await seedUsers(target, Math.ceil(sockets / socketsPerUser));
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
    await sink.end();
  }
}

/**
 * V8 shrinks the heap of an idle process some ten seconds after its last collection: memory that is stable before may
 * still shrink.
 */
const STABLE_MS = 12_000;
const STABLE_BYTES = 1024 * 1024;
const LIMIT_MS = 45_000;

/** Resident bytes once they have been stable for twelve seconds; after 45 seconds as they are, with a warning. */
async function settledBytes(target: Target): Promise<number> {
  const end = performance.now() + LIMIT_MS;
  let reference = residentBytes(target.server.pids());
  for (let since = performance.now(); performance.now() - since < STABLE_MS;) {
    await setTimeout(100);
    const now = residentBytes(target.server.pids());
    if (performance.now() > end) {
      console.error(
        `${target.name}: resident memory was still moving after ${LIMIT_MS / 1000} s, at ${(now / 1e6).toFixed(1)} MB`,
      );
      return now;
    }
    if (Math.abs(now - reference) > STABLE_BYTES) {
      reference = now;
      since = performance.now();
    }
  }
  return residentBytes(target.server.pids());
}
