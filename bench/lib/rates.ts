import { newRow, record, type Row } from './measure.ts';
import type { Plan } from './plan.ts';
import { ProcessorTimeRows } from './processor-time-rows.ts';
import type { Target } from './target.ts';
import { runWrk, type WrkRun } from './wrk.ts';

/** Connections of wrk to a server, over all its nodes. */
const CONNECTIONS = 64;

/** The rows of a case in which wrk repeats one request. */
export class Rates {
  readonly cost: ProcessorTimeRows;
  readonly perSecond: Row;
  readonly #p50 = newRow('answer, median', 'ms', 2);
  readonly #p99 = newRow('answer, 99 of 100', 'ms', 2);
  readonly #busy = newRow('core of the server busy', '%', 0);
  readonly #script: 'create' | 'list';

  /**
   * @param operation what one request does, such as `comment`
   * @param label what the rate counts, such as `comments created`
   */
  constructor(script: 'create' | 'list', operation: string, label: string) {
    this.#script = script;
    this.cost = new ProcessorTimeRows(operation);
    this.perSecond = newRow(label, '1/s', 0);
  }

  get rows(): readonly Row[] {
    return [...this.cost.rows, this.perSecond, this.#p50, this.#p99, this.#busy];
  }

  /**
   * Measures one run, with a warm-up before it, because V8 discards compiled code of a server without requests.
   *
   * @param threads the file of thread ids
   * @param doors the nodes that get the requests, by default the server alone
   */
  async measure(plan: Plan, target: Target, threads: string, doors: readonly Target[] = [target]): Promise<void> {
    const connections = CONNECTIONS / doors.length;
    const runOf = async (seconds: number): Promise<WrkRun> =>
      sumOf(await Promise.all(doors.map((door) => runWrk(this.#script, door, threads, seconds, connections))));
    await this.cost.measure(target, async () => {
      const warmUp = await runOf(plan.warmUpSeconds);
      const run = await runOf(plan.seconds);
      record(this.perSecond, target.name, run.perSecond);
      record(this.#p50, target.name, run.p50Ms);
      record(this.#p99, target.name, run.p99Ms);
      record(this.#busy, target.name, run.serverBusy);
      return warmUp.requests + run.requests;
    });
  }
}

/** Runs at the same time as one: rates are added, of times the longer one counts. */
function sumOf(runs: readonly WrkRun[]): WrkRun {
  const sum = (pick: (run: WrkRun) => number): number => runs.reduce((total, run) => total + pick(run), 0);
  return {
    requests: sum((run) => run.requests),
    perSecond: sum((run) => run.perSecond),
    p50Ms: Math.max(...runs.map((run) => run.p50Ms)),
    p99Ms: Math.max(...runs.map((run) => run.p99Ms)),
    bytesPerAnswer: sum((run) => run.bytesPerAnswer * run.requests) / sum((run) => run.requests),
    serverBusy: sum((run) => run.serverBusy),
  };
}
