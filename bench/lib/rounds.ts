import { setTimeout as delay } from 'node:timers/promises';
import { busyMs } from './processes.ts';
import type { Target } from './target.ts';

/** Processes that use less than this share of a core are idle: a server polls and keeps timers. */
const IDLE_SHARE = 0.04;
/** The same of nodes, of which there may be several, and which also poll their engines. */
const IDLE_SHARE_OF_NODES = 0.1;
/** In cases of nodes, what is still not idle after this time does the rest of its work beside the next run. */
const NODES_LIMIT_MS = 15_000;
/** Longer than the second for which notifications rest while the CPU is contended: a rest does not count as idle. */
const IDLE_SAMPLE_MS = 1_500;
const IDLE_LIMIT_MS = 300_000;

/**
 * Measures every target once in every round, in alternating order (A B C, C B A, …), so that a machine that becomes
 * slower or faster affects all targets alike. Each run begins when all targets are idle: what a server still does in
 * the background for an earlier run, such as notifications, would slow the run of another one, because they share a
 * core.
 */
export async function interleave(
  rounds: number,
  targets: readonly Target[],
  measure: (target: Target) => Promise<void>,
): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    for (const target of inRound(targets, round)) {
      await untilIdle(targets);
      await measure(target);
    }
  }
}

/**
 * Measures all targets at the same time in every round, so that they share the core and meet a machine of the same
 * speed. Only for builds of one server whose load uses the processor alone: what waits for the disk, or runs with a
 * lower priority, does not share evenly.
 */
export async function together(
  rounds: number,
  targets: readonly Target[],
  measure: (target: Target) => Promise<void>,
): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    await untilIdle(targets);
    await Promise.all(inRound(targets, round).map(measure));
  }
}

/**
 * Resolves once the processes of the targets are idle, or have had 15 s if some are nodes on engines. Throws after five
 * minutes.
 */
export async function untilIdle(targets: readonly Target[]): Promise<void> {
  const begun = performance.now();
  const end = begun + IDLE_LIMIT_MS;
  const isOfNodes = targets.some(({ engines }) => engines !== undefined);
  for (const { name, server, engines } of targets) {
    const idleShare = engines === undefined ? IDLE_SHARE : IDLE_SHARE_OF_NODES;
    for (;;) {
      const pids = server.pids();
      const [busyBefore, from] = [busyMs(pids), performance.now()];
      await delay(IDLE_SAMPLE_MS);
      if ((busyMs(pids) - busyBefore) / (performance.now() - from) < idleShare) break;
      if (isOfNodes && performance.now() - begun > NODES_LIMIT_MS) break;
      if (performance.now() > end) throw new Error(`${name} is not idle after ${IDLE_LIMIT_MS / 1000} s`);
    }
  }
}

/** The items in the order of a round: reversed in every other one. */
export function inRound<T>(items: readonly T[], round: number): readonly T[] {
  return round % 2 === 0 ? items : items.toReversed();
}

/** Runs the work with the targets, and ends them in any case. */
export async function withTargets<T>(targets: readonly Target[], work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } finally {
    for (const target of targets) await target.server.stop();
  }
}
