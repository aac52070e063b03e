/** Every family of measurements that /metrics shows, under the prefix `collab_` (docs/operations.md, "Measurements"). */
export const metricFamilies = {
  build_info: { type: 'gauge', help: 'Always 1; the label says which version runs.' },
  http_requests_total: { type: 'counter', help: 'Requests answered, by method, template of the route and status; status "aborted": the client went away first.' },
  http_request_duration_seconds: { type: 'histogram', help: 'Time from a request’s head to the end of its answer, by template of the route.' },
  ws_connections: { type: 'gauge', help: 'Authenticated WebSockets that are open, by environment.' },
  ws_messages_total: { type: 'counter', help: 'WebSocket messages by direction (in, out) and type.' },
  ws_closed_total: { type: 'counter', help: 'WebSockets closed, by close code.' },
  ws_resume_total: { type: 'counter', help: 'Clients that came back with a position, by whether all they had missed could be sent.' },
  events_total: { type: 'counter', help: 'Events committed, by type.' },
  consumer_events_total: { type: 'counter', help: 'Events that a background consumer has finished with, by consumer and outcome (handled, retried, skipped, lost to retention).' },
  consumer_lag_events: { type: 'gauge', help: 'Events that a background consumer has yet to handle, by consumer, over all environments.' },
  uploads_bytes_total: { type: 'counter', help: 'Bytes of files that were uploaded, by media type.' },
  rate_limited_total: { type: 'counter', help: 'Requests and sockets refused for coming too often, by what they were counted on.' },
  worker_restarts_total: { type: 'counter', help: 'Worker processes replaced because they ended or did not answer the primary, by role and reason (ended, hung).' },
  lmdb_txn_duration_seconds: { type: 'histogram', help: 'Time of a group commit, from its begin until it is flushed to the disk.' },
  lmdb_used_bytes: { type: 'gauge', help: 'Size of the store’s files.' },
  lmdb_held_snapshot_seconds: { type: 'gauge', help: 'Time for which a process has held a snapshot of the store, by table (log, tree), pid and command; only past 10 s.' },
} as const satisfies Readonly<Record<string, { readonly type: 'counter' | 'gauge' | 'histogram'; readonly help: string }>>;

export type MetricFamily = keyof typeof metricFamilies;
type FamilyOf<T> = { [F in MetricFamily]: (typeof metricFamilies)[F]['type'] extends T ? F : never }[MetricFamily];
export type CounterFamily = FamilyOf<'counter'>;
export type Labels = Readonly<Record<string, string>>;

/** Upper bounds of the buckets of every histogram, in seconds. */
export const BUCKETS: readonly number[] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** A number that only grows. Change it directly: it is read once a second. */
export interface Counter {
  value: number;
}

/** Observations by size. */
export class Histogram {
  /** Observations per bucket, the last for those past every bound. */
  readonly counts = new Float64Array(BUCKETS.length + 1);
  /** Of all observations, in seconds. */
  sum = 0;

  observe(seconds: number): void {
    let bucket = 0;
    while (bucket < BUCKETS.length && seconds > (BUCKETS[bucket] as number)) bucket++;
    this.counts[bucket] = (this.counts[bucket] as number) + 1;
    this.sum += seconds;
  }
}

/** What one process counted since its last report; keys are series, `family{label="value"}`. */
export interface MetricsReport {
  readonly counters: Readonly<Record<string, number>>;
  /** As they stand, all of them. */
  readonly gauges: Readonly<Record<string, number>>;
  readonly histograms: Readonly<Record<string, { readonly counts: readonly number[]; readonly sum: number }>>;
}

type Gauges = () => Iterable<readonly [labels: Labels, value: number]>;

/** The measurements of one process. Whoever measures keeps what it got from here and only adds to it. */
export class Metrics {
  readonly #counters = new Map<string, Counter>();
  readonly #histograms = new Map<string, Histogram>();
  readonly #gauges: [family: MetricFamily, read: Gauges][] = [];

  /** The counter of a series, the same at every call. Label values must come from a small set. */
  counter(family: FamilyOf<'counter'>, labels: Labels = {}): Counter {
    return found(this.#counters, seriesOf(family, labels), () => ({ value: 0 }));
  }

  histogram(family: FamilyOf<'histogram'>, labels: Labels = {}): Histogram {
    return found(this.#histograms, seriesOf(family, labels), () => new Histogram());
  }

  /** Measures at each report by asking `read`. */
  gauge(family: FamilyOf<'gauge'>, read: Gauges): void {
    this.#gauges.push([family, read]);
  }

  /** What was counted since the last call. */
  takeReport(): MetricsReport {
    const counters: Record<string, number> = {};
    for (const [series, counter] of this.#counters) {
      if (counter.value === 0) continue;
      counters[series] = counter.value;
      counter.value = 0;
    }
    const histograms: Record<string, { counts: number[]; sum: number }> = {};
    for (const [series, histogram] of this.#histograms) {
      if (!histogram.counts.some((count) => count > 0)) continue;
      histograms[series] = { counts: [...histogram.counts], sum: histogram.sum };
      histogram.counts.fill(0);
      histogram.sum = 0;
    }
    const gauges: Record<string, number> = {};
    for (const [family, read] of this.#gauges) for (const [labels, value] of read()) gauges[seriesOf(family, labels)] = value;
    return { counters, gauges, histograms };
  }
}

/** The name of a series: `family{a="1",b="2"}`, values escaped as Prometheus wants them. */
export function seriesOf(family: MetricFamily, labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${value.replace(/["\\\n]/g, escaped)}"`);
  return pairs.length === 0 ? family : `${family}{${pairs.join(',')}}`;
}

function escaped(character: string): string {
  return character === '\n' ? '\\n' : `\\${character}`;
}

function found<T>(map: Map<string, T>, series: string, make: () => T): T {
  let value = map.get(series);
  if (value === undefined) map.set(series, (value = make()));
  return value;
}
