import type { Target } from './target.ts';

/** Lets every target have its turn in every round (A B C A B C …), so that a drift of the machine meets all alike. */
export async function interleave(rounds: number, targets: readonly Target[], turn: (target: Target) => Promise<void>): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    for (const target of targets) await turn(target);
  }
}

/** Runs the work with the targets and ends them, whatever happens. */
export async function withTargets<T>(targets: readonly Target[], work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } finally {
    for (const target of targets) await target.server.stop();
  }
}
