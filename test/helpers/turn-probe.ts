import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from './cluster.ts';

/** A turn of the event loop of a web worker that took too long. */
export interface SlowTurn {
  readonly tookMs: number;
  readonly cpuMs: number;
}

/** Measures the web workers of a server in processes of its own. */
export interface TurnProbe {
  /** Environment variables for the server's processes. */
  readonly env: Readonly<Record<string, string>>;
  /** All slow turns so far. */
  slowTurns(): SlowTurn[];
  /** Bytes in use by the web workers once garbage is collected. */
  settledBytes(workers: number): Promise<number>;
  /** Removes its files. */
  remove(): void;
}

/**
 * Makes a probe.
 *
 * @param slowMs milliseconds on the processor from which on a turn is slow
 */
export function turnProbe(slowMs = 200): TurnProbe {
  const folder = mkdtempSync(join(tmpdir(), 'collab-probe-'));
  const reports = (): { slow: SlowTurn[]; memory: { asked: string; bytes: number } | null }[] =>
    readdirSync(folder)
      .filter((name) => name.endsWith('.json'))
      .map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')));
  let collections = 0;
  return {
    env: {
      TURN_PROBE_FOLDER: folder,
      TURN_PROBE_SLOW_MS: String(slowMs),
      NODE_OPTIONS: `${process.env['NODE_OPTIONS'] ?? ''} --import=${new URL('turn-probe.mjs', import.meta.url).href}`,
    },
    slowTurns: () => reports().flatMap(({ slow }) => slow),
    settledBytes: async (workers) => {
      const asked = String(++collections);
      writeFileSync(join(folder, 'collect'), asked);
      await until(() => reports().filter(({ memory }) => memory?.asked === asked).length === workers);
      return reports().reduce((sum, { memory }) => sum + (memory?.bytes ?? 0), 0);
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
