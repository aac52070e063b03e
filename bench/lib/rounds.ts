import type { Target } from './target.ts';

/**
 * Measures every target once in every round, in alternating order (A B C, C B A, …), so that a machine that becomes slower or
 * faster affects all targets alike.
 */
export async function interleave(rounds: number, targets: readonly Target[], measure: (target: Target) => Promise<void>): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    for (const target of inRound(targets, round)) await measure(target);
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
