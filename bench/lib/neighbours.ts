import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';

/** Share of the machine, in percent, that processes outside of this bench used between two looks. */
export interface Neighbours {
  /** The share since the watch began. Reads right only while none of the bench's children run: they count when they end. */
  share(): number;
}

/** Above this share, in percent, others took time from the server or the load, and the figures mislead. */
export const disturbing = 5;

/** Begins to watch, at a moment when no child of this process runs. */
export function watchNeighbours(): Neighbours {
  const started = performance.now();
  const before = machineTicks() - ownTicks();
  return {
    share() {
      // The kernel counts in hundredths of a second, so ticks are 10 ms of one core.
      const capacity = ((performance.now() - started) / 10) * cpus().length;
      return Math.max(0, ((machineTicks() - ownTicks() - before) / capacity) * 100);
    },
  };
}

/** Ticks that all processes have spent in user and kernel code. */
function machineTicks(): number {
  const [user, nice, system] = readFileSync('/proc/stat', 'utf8').split('\n', 1)[0]!.trim().split(/\s+/).slice(1).map(Number);
  return user! + nice! + system!;
}

/** Ticks of this process and of all its descendants that have ended. */
function ownTicks(): number {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  // After the name in brackets, utime, stime, cutime and cstime are the 12th to the 15th field.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
}
