import type { Metrics } from '../observability/metrics.ts';
import type { ProcessChannel } from './channel.ts';

const EVERY_MS = 1_000;

/** Tells the primary once a second what this process has counted. Returns the way to stop, which tells it the last. */
export function reportMetrics(channel: ProcessChannel, metrics: Metrics): () => void {
  const report = (): void => channel.send({ type: 'metrics', data: metrics.takeReport() });
  const timer = setInterval(report, EVERY_MS).unref();
  return () => {
    clearInterval(timer);
    report();
  };
}
