import { readFileSync } from 'node:fs';

/**
 * Nanoseconds since the start of the main thread of this process: running, and waiting for a CPU while it could run.
 */
interface CpuTimes {
  readonly running: number;
  readonly waiting: number;
}

const SAMPLE_MS = 250;

/**
 * Observes whether the main thread of this process has to wait for a CPU, because other threads of the machine are
 * running.
 */
export class CpuWatch {
  readonly #timer: NodeJS.Timeout;
  /** The times when the last two samples began, the older one first. */
  #samples: readonly [CpuTimes | null, CpuTimes | null];

  constructor() {
    const now = cpuTimes();
    this.#samples = [now, now];
    this.#timer = setInterval(() => {
      this.#samples = [this.#samples[1], cpuTimes()];
    }, SAMPLE_MS);
    this.#timer.unref();
  }

  /**
   * Whether the thread waited longer than it ran in the last 250 to 500 ms; false where the system does not say (no
   * /proc/self/schedstat).
   */
  get isContended(): boolean {
    const [before] = this.#samples;
    const now = cpuTimes();
    return before !== null && now !== null && now.waiting - before.waiting > now.running - before.running;
  }

  /** Ends the observation. */
  stop(): void {
    clearInterval(this.#timer);
  }
}

/** Reads /proc/self/schedstat: https://docs.kernel.org/scheduler/sched-stats.html#proc-pid-schedstat */
function cpuTimes(): CpuTimes | null {
  try {
    const [running, waiting] = readFileSync('/proc/self/schedstat', 'utf8').split(' ').map(Number);
    return running === undefined || waiting === undefined ? null : { running, waiting };
  } catch {
    return null;
  }
}
