import { cpus } from 'node:os';

/** Measures how idle the cores of this machine are. */
export class IdleCores {
  #before = readTimes();

  /** The share of the time of all cores, 0 to 1, that was idle since the last call, or since this object was made. */
  share(): number {
    const { idle, all } = this.#before;
    this.#before = readTimes();
    const elapsed = this.#before.all - all;
    return elapsed === 0 ? 0 : (this.#before.idle - idle) / elapsed;
  }
}

/** The time of all cores since the start of the machine, in milliseconds. */
function readTimes(): { readonly idle: number; readonly all: number } {
  let idle = 0;
  let all = 0;
  for (const { times } of cpus()) {
    idle += times.idle;
    all += times.user + times.nice + times.sys + times.idle + times.irq;
  }
  return { idle, all };
}
