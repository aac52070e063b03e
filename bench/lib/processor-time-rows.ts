import { newRow, record, type Row } from './measure.ts';
import { type ProcessTime, processTimes, timesBetween } from './processor-time.ts';
import { untilIdle } from './rounds.ts';
import type { Target } from './target.ts';

/** The rows of a case that show the processor time of an operation. */
export class ProcessorTimeRows {
  /** Of all processes of the server together. */
  readonly total: Row;
  readonly #digits: number;
  readonly #operation: string;
  readonly #byRole = new Map<string, Row>();
  readonly #byEngine = new Map<string, Row>();

  /**
   * @param operation what is counted, such as `comment`
   * @param digits decimals of the microseconds that are shown
   */
  constructor(operation: string, digits = 2) {
    this.#operation = operation;
    this.#digits = digits;
    this.total = newRow(`processor time per ${operation}`, 'µs', digits);
  }

  /**
   * The total, its ratio to that of Collab in the same round, user and system time of each process, and the same of the
   * engines of the server, which are not part of the total.
   */
  get rows(): readonly Row[] {
    // Collab uses fewer engines than the same with another one: there is nothing to compare that with.
    const engines = [...this.#byEngine.values()].flatMap((row) =>
      row.runs.has('collab') ? [row, ratioOf(row)] : [row],
    );
    return [this.total, ratioOf(this.total), ...this.#byRole.values(), ...engines];
  }

  /**
   * Measures a run, until the work in the background that it has caused has ended. A server that is idle uses some
   * time, too, which counts: at most 4 % of a core for as long as the wait lasts.
   *
   * @param work returns how many operations it has made
   */
  async measure(target: Target, work: () => Promise<number>): Promise<void> {
    const before = processTimes(target.server.pids());
    const engines = (target.engines ?? []).map((engine) => ({ engine, before: processTimes(engine.pids()) }));
    const operations = await work();
    await untilIdle([target]);
    const used = timesBetween(before, processTimes(target.server.pids()));
    const perOperation = (ms: number): number => (ms * 1000) / operations;
    record(this.total, target.name, perOperation(sumOf(used)));
    for (const { role, userMs, systemMs } of used) {
      record(this.#rowOf(role, 'user'), target.name, perOperation(userMs));
      record(this.#rowOf(role, 'system'), target.name, perOperation(systemMs));
    }
    for (const { engine, before: earlier } of engines) {
      const times = timesBetween(earlier, processTimes(engine.pids()));
      record(this.#engineRowOf(engine.name), target.name, perOperation(sumOf(times)));
    }
  }

  #rowOf(role: string, kind: string): Row {
    return this.#rowIn(this.#byRole, `of this, ${role}, ${kind}`);
  }

  #engineRowOf(engine: string): Row {
    return this.#rowIn(this.#byEngine, `processor time per ${this.#operation}, ${engine}`);
  }

  #rowIn(rows: Map<string, Row>, label: string): Row {
    const row = rows.get(label) ?? newRow(label, 'µs', this.#digits);
    rows.set(label, row);
    return row;
  }
}

function sumOf(times: readonly ProcessTime[]): number {
  return times.reduce((sum, { userMs, systemMs }) => sum + userMs + systemMs, 0);
}

/** The ratio of each target to Collab in the same round. */
function ratioOf(row: Row): Row {
  const ratio = newRow('the same, that of Collab being 1', 'x', 2);
  const collab = row.runs.get('collab') ?? [];
  for (const [target, runs] of row.runs) {
    if (target !== 'collab')
      for (const [round, value] of runs.entries()) record(ratio, target, value / (collab[round] ?? NaN));
  }
  return ratio;
}
