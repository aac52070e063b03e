import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { busyMs, commandOf, processTree, ticksOf } from './processes.ts';

const SAMPLE_MS = 500;

/** Pid -> CPU time in milliseconds of the processes that `countBrowser` has seen. */
const browserProcesses = new Map<number, number>();

/** Measures the share of the machine that processes outside of this benchmark use. */
export interface Neighbours {
  /**
   * The share in percent since the start of the watch. Valid only while no child of the benchmark runs, because
   * children count when they end.
   */
  share(): number;
}

/**
 * Above this share, in percent, other processes took time from the server or the load, and the results are misleading.
 */
export const disturbing = 5;

/** Starts a watch. Call it while no child of this process runs. */
export function watchNeighbours(): Neighbours {
  const started = performance.now();
  const before = machineTicks() - ownTicks();
  return {
    share() {
      // The kernel counts in hundredths of a second, so one tick is 10 ms of one core.
      const capacity = ((performance.now() - started) / 10) * cpus().length;
      return Math.max(0, ((machineTicks() - ownTicks() - before) / capacity) * 100);
    },
  };
}

/**
 * Counts the processes of browsers that this process starts as its own until `end` is called. Chromium does not wait
 * for those of its pages when they end, so the kernel does not add their time to that of this process.
 */
export function countBrowser(): { end(): void } {
  const sample = (): void => {
    const parts = processTree(process.pid).filter((pid) => commandOf(pid).includes('--type='));
    for (const pid of parts) browserProcesses.set(pid, busyMs([pid]));
  };
  const timer = setInterval(sample, SAMPLE_MS);
  return {
    end() {
      clearInterval(timer);
      sample();
    },
  };
}

/** Ticks that all processes have spent in user and kernel code. */
function machineTicks(): number {
  const [user, nice, system] = readFileSync('/proc/stat', 'utf8')
    .split('\n', 1)[0]!
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return user! + nice! + system!;
}

/** Ticks of this process, of all its descendants that have ended, and of its browsers. */
function ownTicks(): number {
  const browsers = [...browserProcesses.values()].reduce((sum, ms) => sum + ms, 0) / 10;
  return (ticksOf('self') ?? []).reduce((sum, ticks) => sum + ticks, browsers);
}
