import {
  BUCKETS,
  type CounterFamily,
  type Labels,
  metricFamilies,
  type MetricFamily,
  type MetricsReport,
  seriesOf,
} from './metrics.ts';
import { version } from '../model/version.ts';

/** The content type of the Prometheus text format 0.0.4. */
export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

interface Distribution {
  readonly counts: number[];
  sum: number;
}

/**
 * Counters with fixed labels, which are 0 from the start on. A counter that appears with its first increment has not
 * increased, as Prometheus sees it, so that an alert on its increase would miss that.
 */
const fixedCounters: readonly (readonly [CounterFamily, Labels])[] = [
  ...['web', 'background'].flatMap((role) =>
    ['ended', 'hung'].map((reason): [CounterFamily, Labels] => ['worker_restarts_total', { role, reason }]),
  ),
  ...['true', 'false'].map((recovered): [CounterFamily, Labels] => ['ws_resume_total', { recovered }]),
  ...['image', 'audio', 'video'].map((type): [CounterFamily, Labels] => ['uploads_bytes_total', { type }]),
  ['ws_closed_total', { code: '1013' }],
  ['lmdb_ended_holders_total', {}],
];

/** The totals of all processes of the cluster since the server started, including processes that have ended. */
export class MetricsTotals {
  readonly #counters = new Map<string, number>();
  readonly #histograms = new Map<string, Distribution>();
  /** By worker id: its gauges as last reported. */
  readonly #gauges = new Map<string, MetricsReport['gauges']>();

  /**
   * Begins with zeros: alerts need a value. The series of `ws_connections` without labels is that of a server without
   * connections.
   */
  constructor() {
    for (const [family, labels] of fixedCounters) this.#counters.set(seriesOf(family, labels), 0);
    this.#gauges.set('', { [seriesOf('build_info', { version })]: 1, ws_connections: 0 });
  }

  /** Increments a counter of the primary itself. */
  count(family: CounterFamily, labels: Labels): void {
    this.#increase(seriesOf(family, labels), 1);
  }

  /** Adds a worker's report. Its gauges replace those of its last report. */
  add(workerId: string, report: MetricsReport): void {
    for (const [series, value] of Object.entries(report.counters)) this.#increase(series, value);
    for (const [series, { counts, sum }] of Object.entries(report.histograms)) {
      const total = this.#histograms.get(series);
      if (total === undefined) this.#histograms.set(series, { counts: [...counts], sum });
      else {
        counts.forEach((count, i) => (total.counts[i] = (total.counts[i] ?? 0) + count));
        total.sum += sum;
      }
    }
    this.#gauges.set(workerId, report.gauges);
  }

  /** Drops the gauges of a worker that has ended; its counts remain. */
  dropGauges(workerId: string): void {
    this.#gauges.delete(workerId);
  }

  /** Renders everything in the Prometheus text format 0.0.4. */
  render(): string {
    const lines = new Map<MetricFamily, string[]>();
    const put = (series: string, text: string[]): void => {
      const family = familyOf(series);
      lines.set(family, [...(lines.get(family) ?? []), ...text]);
    };
    for (const [series, value] of this.#counters) put(series, [`collab_${series} ${value}`]);
    for (const [series, value] of this.#gaugeSums()) put(series, [`collab_${series} ${value}`]);
    for (const [series, distribution] of this.#histograms) put(series, bucketLines(series, distribution));
    let text = '';
    for (const family of Object.keys(metricFamilies) as MetricFamily[]) {
      const { type, help } = metricFamilies[family];
      const found = lines.get(family);
      if (found !== undefined)
        text += `# HELP collab_${family} ${help}\n# TYPE collab_${family} ${type}\n${found.join('\n')}\n`;
    }
    return text;
  }

  #increase(series: string, by: number): void {
    this.#counters.set(series, (this.#counters.get(series) ?? 0) + by);
  }

  #gaugeSums(): Map<string, number> {
    const sums = new Map<string, number>();
    for (const gauges of this.#gauges.values()) {
      for (const [series, value] of Object.entries(gauges)) sums.set(series, (sums.get(series) ?? 0) + value);
    }
    return sums;
  }
}

function familyOf(series: string): MetricFamily {
  const brace = series.indexOf('{');
  return (brace < 0 ? series : series.slice(0, brace)) as MetricFamily;
}

function bucketLines(series: string, { counts, sum }: Distribution): string[] {
  const family = familyOf(series);
  const labels = series.slice(family.length + 1, -1);
  const withBound = (bound: string): string =>
    `collab_${family}_bucket{${labels === '' ? '' : `${labels},`}le="${bound}"}`;
  const own = labels === '' ? '' : `{${labels}}`;
  let total = 0;
  const buckets = counts.map(
    (count, i) => `${withBound(BUCKETS[i] === undefined ? '+Inf' : String(BUCKETS[i]))} ${(total += count)}`,
  );
  return [...buckets, `collab_${family}_sum${own} ${sum}`, `collab_${family}_count${own} ${total}`];
}
