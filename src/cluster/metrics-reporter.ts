import type { Metrics } from '../observability/metrics.ts';
import type { ProcessChannel } from './channel.ts';

const REPORT_MS = 1_000;

/**
 * Reports the metrics of this process to the primary once a second. Returns a function that sends a last report and
 * stops.
 */
export function reportMetrics(channel: ProcessChannel, metrics: Metrics): () => void {
  const report = (): void => channel.send({ type: 'metrics', data: metrics.takeReport() });
  const timer = setInterval(report, REPORT_MS).unref();
  return () => {
    clearInterval(timer);
    report();
  };
}
