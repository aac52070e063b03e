/** Every metric family of /metrics, under the prefix `collab_` (docs/operations.md, "Measurements"). */
export const metricFamilies = {
  build_info: { type: 'gauge', help: 'Always 1; the label is the running version.' },
  core: { type: 'gauge', help: 'Web workers, by the HTTP core that they run on (uws, node).' },
  http_requests_total: {
    type: 'counter',
    help: 'HTTP requests by method, route template and status; status "aborted": the client disconnected before the response.',
  },
  http_request_duration_seconds: {
    type: 'histogram',
    help: 'Time from the end of a request’s head to the end of its response, by route template.',
  },
  ws_connections: { type: 'gauge', help: 'Open authenticated WebSockets, by environment.' },
  ws_messages_total: { type: 'counter', help: 'WebSocket messages by direction (in, out) and type.' },
  ws_closed_total: { type: 'counter', help: 'Closed WebSockets, by close code.' },
  ws_resume_total: {
    type: 'counter',
    help: 'Clients that reconnected with a position, by whether all missed events could be replayed.',
  },
  events_total: { type: 'counter', help: 'Committed events, by type.' },
  consumer_events_total: {
    type: 'counter',
    help: 'Events that a background consumer has finished with, by consumer and outcome (handled, retried, skipped, lost to retention).',
  },
  consumer_lag_events: {
    type: 'gauge',
    help: 'Events that a background consumer has yet to handle, by consumer, over all environments.',
  },
  plugin_hook_duration_seconds: {
    type: 'histogram',
    help: 'Time that a hook of a plugin took, by plugin and hook (the name of a filter, action or queue).',
  },
  plugin_hook_errors_total: {
    type: 'counter',
    help: 'Calls of a hook of a plugin that failed, passed their deadline, or were running when their web worker hung, by plugin and hook.',
  },
  plugin_filter_skipped: {
    type: 'gauge',
    help: 'Environments in which a filter is not called at the moment because it has failed 5 times in a row, by plugin and hook.',
  },
  plugin_restarts_total: {
    type: 'counter',
    help: 'Threads of plugins that were ended and started again, by plugin and reason (deadline, memory, ended).',
  },
  plugin_jobs: { type: 'gauge', help: 'Jobs in the queues of plugins, by plugin, queue and state (waiting, dead).' },
  uploads_bytes_total: { type: 'counter', help: 'Bytes of uploaded files, by media type.' },
  rate_limited_total: { type: 'counter', help: 'Requests and sockets refused by a rate limit, by what is counted.' },
  worker_restarts_total: {
    type: 'counter',
    help: 'Worker processes replaced because they ended or did not answer the primary, by role and reason (ended, hung).',
  },
  lmdb_txn_duration_seconds: {
    type: 'histogram',
    help: 'Time of a group commit from its start until it is flushed to disk.',
  },
  lmdb_used_bytes: { type: 'gauge', help: 'Size of the store’s files.' },
  process_resident_memory_bytes: {
    type: 'gauge',
    help: 'Resident memory of a process, by process. It includes the part of the store’s file that is mapped, which all processes share.',
  },
  process_cpu_seconds_total: {
    type: 'counter',
    help: 'User and system processor time of a process since it started, by process.',
  },
  nodejs_eventloop_lag_p99_seconds: {
    type: 'gauge',
    help: 'The 99th percentile of the delay of the event loop since the last report, by process.',
  },
  nodejs_eventloop_lag_max_seconds: {
    type: 'gauge',
    help: 'The longest delay of the event loop since the last report, by process.',
  },
  lmdb_held_snapshot_seconds: {
    type: 'gauge',
    help: 'How long a process has kept a snapshot of the store open, by table (log, tree), pid and command; only above 10 s.',
  },
  lmdb_ended_holders_total: {
    type: 'counter',
    help:
      'Stuck processes that were killed because the store grew while they kept a snapshot of it open, or ' +
      'because they kept a lock of it.',
  },
} as const satisfies Readonly<
  Record<string, { readonly type: 'counter' | 'gauge' | 'histogram'; readonly help: string }>
>;

/** The name of a metric family, without the prefix. */
export type MetricFamily = keyof typeof metricFamilies;
type FamilyOf<T> = { [F in MetricFamily]: (typeof metricFamilies)[F]['type'] extends T ? F : never }[MetricFamily];
/** The name of a family of counters. */
export type CounterFamily = FamilyOf<'counter'>;
/**
 * Metric families that are reported as their current value. The processor time of a process only grows, but the system
 * counts it.
 */
type ReadFamily = FamilyOf<'gauge'> | 'process_cpu_seconds_total';
/** The labels of a series: name to value. */
export type Labels = Readonly<Record<string, string>>;

/** Upper bounds of the buckets of every histogram, in seconds. */
export const BUCKETS: readonly number[] = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

/** A number that only grows. Callers increment `value` directly; it is read and reset once a second. */
export interface Counter {
  value: number;
}

/** Observed durations, counted by bucket. */
export class Histogram {
  /** Observations per bucket; the last one counts those above every bound. */
  readonly counts = new Float64Array(BUCKETS.length + 1);
  /** The sum of all observations, in seconds. */
  sum = 0;

  /** Counts one duration. */
  observe(seconds: number): void {
    let bucket = 0;
    while (bucket < BUCKETS.length && seconds > (BUCKETS[bucket] as number)) bucket++;
    this.counts[bucket] = (this.counts[bucket] as number) + 1;
    this.sum += seconds;
  }
}

/** The counts of one process since its last report. Keys are series: `family{label="value"}`. */
export interface MetricsReport {
  readonly counters: Readonly<Record<string, number>>;
  /** The current values of all gauges. */
  readonly gauges: Readonly<Record<string, number>>;
  readonly histograms: Readonly<Record<string, { readonly counts: readonly number[]; readonly sum: number }>>;
}

type Gauges = () => Iterable<readonly [labels: Labels, value: number]>;

/** The metrics of one process. Callers keep the counters and histograms they get from here and add to them. */
export class Metrics {
  readonly #counters = new Map<string, Counter>();
  readonly #histograms = new Map<string, Histogram>();
  readonly #gauges: [family: MetricFamily, read: Gauges][] = [];

  /** The counter of a series; the same object at every call. Label values must come from a small set. */
  counter(family: FamilyOf<'counter'>, labels: Labels = {}): Counter {
    return getOrCreate(this.#counters, seriesOf(family, labels), () => ({ value: 0 }));
  }

  /** The histogram of a series; the same object at every call. Label values must come from a small set. */
  histogram(family: FamilyOf<'histogram'>, labels: Labels = {}): Histogram {
    return getOrCreate(this.#histograms, seriesOf(family, labels), () => new Histogram());
  }

  /** Registers a gauge: `read` is called at each report. */
  gauge(family: ReadFamily, read: Gauges): void {
    this.#gauges.push([family, read]);
  }

  /** Returns the counts since the last call. */
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
    for (const [family, read] of this.#gauges)
      for (const [labels, value] of read()) gauges[seriesOf(family, labels)] = value;
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

function getOrCreate<T>(map: Map<string, T>, series: string, create: () => T): T {
  let value = map.get(series);
  if (value === undefined) map.set(series, (value = create()));
  return value;
}
