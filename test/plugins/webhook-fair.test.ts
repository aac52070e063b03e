import type { ServerResponse } from 'node:http';
import t from 'tap';
import { jobOf } from '../../plugins/webhook/fan-out.ts';
import { addEndpoint, type Endpoint } from '../../plugins/webhook/endpoints.ts';
import { createLogger } from '../../src/observability/log.ts';
import { HookMeter } from '../../src/plugins/thread/hook-meter.ts';
import { localServices } from '../../src/plugins/services/local-services.ts';
import type { PluginServices } from '../../src/plugins/services/services.ts';
import { PluginThread } from '../../src/plugins/thread/plugin-thread.ts';
import { QueueRunner } from '../../src/plugins/queues/queue-runner.ts';
import { createWorld } from '../domain/world.ts';
import { until } from '../helpers/cluster.ts';
import { startReceiver } from '../helpers/receiver.ts';

/** With as many jobs each, 16 of them would take all 256 places. */
const HANGING = 20;
const JOBS = 20;

t.test('20 endpoints that hang leave places for one that answers', { timeout: 120_000 }, async (t) => {
  const hanging = new Map<string, Set<ServerResponse>>();
  const hangs = await startReceiver(
    t,
    (response, { path }) => void hanging.set(path, (hanging.get(path) ?? new Set()).add(response)),
  );
  const answers = await startReceiver(t);
  const { ctx, environment } = await createWorld(t);
  const log = createLogger({ level: 'silent', name: 'test' });
  const entry = { use: 'webhook', allowPrivate: true };
  const services = (plugin: string): PluginServices =>
    localServices(plugin, entry, {
      ctx,
      config: { publicUrl: '' },
      log,
      passes: () => Promise.resolve(true),
      starterOf: () => undefined,
    });
  const thread = new PluginThread(entry, { publicUrl: '', services });
  const info = await thread.start();
  const runner = new QueueRunner({ ctx, log, info, thread, meter: new HookMeter(info.name, undefined) }, 0);
  t.teardown(() => thread.stop());

  const at = { id: environment.id, slug: environment.slug };
  const { kv, queue } = services(info.name);
  const endpointOf = async (id: string, url: string): Promise<Endpoint> => {
    const endpoint: Endpoint = {
      id,
      url,
      events: null,
      secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
      previous: [],
      disabled: null,
      failing: null,
      createdAt: 0,
    };
    await addEndpoint(kv(at), endpoint);
    return endpoint;
  };
  const endpoints = await Promise.all(
    Array.from({ length: HANGING }, (_, n) => endpointOf(`wh_${n}`, `${hangs.url}/${n}`)),
  );
  endpoints.push(await endpointOf('wh_z', answers.url));
  for (const endpoint of endpoints) {
    await queue('deliveries').add(
      at,
      Array.from({ length: JOBS }, (_, n) =>
        jobOf(endpoint, { eventId: `evt_${n}`, seq: n, type: 'comment.created', body: '{}' }),
      ),
    );
  }
  runner.poll();
  await until(() => answers.received.length === JOBS, 90_000);
  t.equal(new Set(answers.received.map(({ headers }) => headers['webhook-id'])).size, JOBS, 'each arrived once');
  t.ok(
    [...hanging.values()].every((responses) => responses.size <= 2),
    'one at a time of each that hangs, and the next one after its deadline',
  );
  for (const responses of hanging.values()) for (const response of responses) response.destroy();
});
