import type { Metrics } from '../../observability/metrics.ts';

/** Measures the hooks of one plugin; does nothing without metrics. */
export class HookMeter {
  readonly #plugin: string;
  readonly #metrics: Metrics | undefined;

  constructor(plugin: string, metrics: Metrics | undefined) {
    this.#plugin = plugin;
    this.#metrics = metrics;
  }

  /** Runs a hook and counts its duration, and its failure if it rejects. */
  async measure<T>(hook: string, work: () => Promise<T>): Promise<T> {
    const labels = { plugin: this.#plugin, hook };
    const startedAt = performance.now();
    try {
      return await work();
    } catch (error) {
      if (this.#metrics !== undefined) this.#metrics.counter('plugin_hook_errors_total', labels).value += 1;
      throw error;
    } finally {
      this.#metrics?.histogram('plugin_hook_duration_seconds', labels).observe((performance.now() - startedAt) / 1_000);
    }
  }
}
