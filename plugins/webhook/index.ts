import * as Type from 'typebox';
import { definePlugin } from '../../src/plugins/api.ts';
import { registerDeliveryCommands } from './delivery-commands.ts';
import { deliver, RETRY_DELAYS_MS } from './deliver.ts';
import { registerEndpointCommands } from './endpoint-commands.ts';
import { ENDPOINT_PREFIX, TYPES_FIELD } from './endpoints.ts';
import { jobsFor } from './fan-out.ts';

/** Sends the events of an environment to HTTP endpoints, signed as Standard Webhooks 1.0 (docs/webhooks.md). */
export default definePlugin({
  name: 'webhook',
  version: '1.0.0',
  apiVersion: 1,
  config: Type.Object({}),
  setup(host) {
    const deliveries = host.queue(
      'deliveries',
      (job, { attempt }, environment) => deliver(host, job, attempt, environment),
      {
        retryDelaysMs: RETRY_DELAYS_MS,
        concurrency: 256,
        groupConcurrency: 16,
        timeoutMs: 20_000,
      },
    );
    host.action(
      '*',
      async (event, { environment }) => {
        const jobs = await jobsFor(host, environment, event);
        if (jobs.length > 0) await deliveries.add(environment, jobs);
      },
      // Deliveries are not ordered, so the jobs of a busy thread need not wait for each other.
      { whenKv: ENDPOINT_PREFIX, typesIn: TYPES_FIELD, ordered: false },
    );
    registerEndpointCommands(host, deliveries);
    registerDeliveryCommands(host, deliveries);
  },
});
