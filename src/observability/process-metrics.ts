import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Metrics } from './metrics.ts';

/** How often the delay of the event loop is measured. Each sample contains this time. */
const RESOLUTION_MS = 20;
/** How long a report must cover at least. After a reset, the first sample takes twice the resolution. */
const WINDOW_MS = 200;
const NANOSECONDS = 1e9;
const MICROSECONDS = 1e6;

/**
 * Adds the metrics of this process: memory, processor time and the delay of its event loop since the last report.
 * Reports that follow each other more quickly cover the same time.
 *
 * @param name the name of the process, as in the log: `web-1`
 */
export function meterProcess(metrics: Metrics, name: string): void {
  const labels = { process: name };
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  let collectedSince = performance.now();
  const seconds = (nanoseconds: number): number => Math.max(0, nanoseconds / NANOSECONDS - RESOLUTION_MS / 1_000);
  metrics.gauge('process_resident_memory_bytes', () => [[labels, process.memoryUsage.rss()]]);
  metrics.gauge('process_cpu_seconds_total', () => {
    const { user, system } = process.cpuUsage();
    return [[labels, (user + system) / MICROSECONDS]];
  });
  metrics.gauge('nodejs_eventloop_lag_p99_seconds', () =>
    delay.count === 0 ? [] : [[labels, seconds(delay.percentile(99))]],
  );
  metrics.gauge('nodejs_eventloop_lag_max_seconds', () => {
    const read: [typeof labels, number][] = delay.count === 0 ? [] : [[labels, seconds(delay.max)]];
    // The last gauge of the report.
    if (performance.now() - collectedSince >= WINDOW_MS) {
      delay.reset();
      collectedSince = performance.now();
    }
    return read;
  });
}
