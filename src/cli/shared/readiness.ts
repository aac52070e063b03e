import type { Running } from './running.ts';

const PATIENCE_MS = 5_000;

/** What /readyz of a running server answers: whether it is ready, and why not, in its own words. */
export interface Readiness {
  readonly ready: boolean;
  /** The checks of the answer, such as `store: failed`; empty when it is ready. */
  readonly reason: string;
}

/** Asks a running server whether it is ready. Never rejects: one that does not answer is not. */
export async function readinessOf({ address }: Running): Promise<Readiness> {
  try {
    const answer = await fetch(`${address}/readyz`, { signal: AbortSignal.timeout(PATIENCE_MS) });
    const { checks = {} } = (await answer.json()) as { checks?: Readonly<Record<string, unknown>> };
    if (answer.ok) return { ready: true, reason: '' };
    return { ready: false, reason: Object.entries(checks).map(([name, found]) => `${name}: ${String(found)}`).join(', ') };
  } catch {
    return { ready: false, reason: `/readyz did not answer within ${PATIENCE_MS / 1_000} s` };
  }
}
