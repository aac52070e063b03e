import { newRow, record, type Row } from './measure.ts';
import { processTimes, timesBetween } from './processor-time.ts';
import { untilIdle } from './rounds.ts';
import type { Target } from './target.ts';

/** The rows of a case that show the processor time of an operation. */
export class ProcessorTimeRows {
  /** Of all processes of the server together. */
  readonly total: Row;
  readonly #digits: number;
  readonly #byRole = new Map<string, Row>();

  /**
   * @param operation what is counted, such as `comment`
   * @param digits decimals of the microseconds that are shown
   */
  constructor(operation: string, digits = 2) {
    this.#digits = digits;
    this.total = newRow(`processor time per ${operation}`, 'µs', digits);
  }

  /** The total, its ratio to that of Collab in the same round, and user and system time of each process. */
  get rows(): readonly Row[] {
    const ratio = newRow('the same, that of Collab being 1', 'x', 2);
    const collab = this.total.runs.get('collab') ?? [];
    for (const [target, runs] of this.total.runs) {
      if (target !== 'collab')
        for (const [round, value] of runs.entries()) record(ratio, target, value / (collab[round] ?? NaN));
    }
    return [this.total, ratio, ...this.#byRole.values()];
  }

  /**
   * Measures a run, until the work in the background that it has caused has ended. A server that is idle uses some
   * time, too, which counts: at most 4 % of a core for as long as the wait lasts.
   *
   * @param work returns how many operations it has made
   */
  async measure(target: Target, work: () => Promise<number>): Promise<void> {
    const before = processTimes(target.server.pids());
    const operations = await work();
    await untilIdle([target]);
    const used = timesBetween(before, processTimes(target.server.pids()));
    const perOperation = (ms: number): number => (ms * 1000) / operations;
    record(
      this.total,
      target.name,
      perOperation(used.reduce((sum, { userMs, systemMs }) => sum + userMs + systemMs, 0)),
    );
    for (const { role, userMs, systemMs } of used) {
      record(this.#rowOf(role, 'user'), target.name, perOperation(userMs));
      record(this.#rowOf(role, 'system'), target.name, perOperation(systemMs));
    }
  }

  #rowOf(role: string, kind: string): Row {
    const label = `of this, ${role}, ${kind}`;
    const row = this.#byRole.get(label) ?? newRow(label, 'µs', this.#digits);
    this.#byRole.set(label, row);
    return row;
  }
}
