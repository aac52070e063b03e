import type { RunningServer } from './running-server.ts';

const TIMEOUT_MS = 5_000;

/** The response of /readyz of a running server. */
export interface Readiness {
  readonly ready: boolean;
  /** The checks in the response, such as `store: failed`; empty if the server is ready. */
  readonly reason: string;
  /** How many plugins of the configuration it runs without. */
  readonly missingPlugins: number;
  /** Whether its background worker cannot start. */
  readonly backgroundFailing: boolean;
}

/** Asks a running server whether it is ready. Never rejects: a server that does not answer is not ready. */
export async function readinessOf({ address }: RunningServer): Promise<Readiness> {
  try {
    const response = await fetch(`${address}/readyz`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    const answer = (await response.json()) as {
      checks?: Readonly<Record<string, unknown>>;
      missingPlugins?: number;
      background?: string;
    };
    const { checks = {}, missingPlugins = 0 } = answer;
    const backgroundFailing = answer.background === 'failing';
    if (response.ok) return { ready: true, reason: '', missingPlugins, backgroundFailing };
    return {
      ready: false,
      missingPlugins,
      backgroundFailing,
      reason: Object.entries(checks)
        .map(([name, found]) => `${name}: ${String(found)}`)
        .join(', '),
    };
  } catch {
    return {
      ready: false,
      reason: `/readyz did not answer within ${TIMEOUT_MS / 1_000} s`,
      missingPlugins: 0,
      backgroundFailing: false,
    };
  }
}
