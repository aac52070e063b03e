import type {
  NewJob,
  Payload,
  PluginEnvironment,
  PluginEvent,
  PluginHost,
  PluginNotification,
} from '../../src/plugins/api.ts';
import { messageOf, type Message } from './body.ts';
import { type Delivery, deliveryId } from './deliver.ts';
import { type Endpoint, listEndpoints, receives } from './endpoints.ts';

/** The jobs that deliver an event to the endpoints of its environment that receive its type. */
export async function jobsFor(
  host: PluginHost<unknown>,
  environment: PluginEnvironment,
  event: PluginEvent,
): Promise<NewJob[]> {
  const endpoints = (await listEndpoints(host.kv(environment))).filter((endpoint) => receives(endpoint, event));
  if (endpoints.length === 0 || !(await isWanted(host, environment, event))) return [];
  const message = messageOf(event);
  const jobs = await Promise.all(
    endpoints.map(async (endpoint) =>
      (await passes(host, environment, endpoint, event)) ? [jobOf(endpoint, message)] : [],
    ),
  );
  return jobs.flat();
}

/**
 * The job that delivers a message to an endpoint. Deliveries to one endpoint are a group, so that a slow one delays no
 * other.
 */
export function jobOf({ id }: Endpoint, message: Message): NewJob {
  const delivery: Delivery & Payload = { endpointId: id, ...message };
  return { id: deliveryId(id, message.eventId), payload: delivery, group: id };
}

/** Whether the `webhook.deliver` filters let an event pass to an endpoint. */
export function passes(
  { data }: PluginHost<unknown>,
  environment: PluginEnvironment,
  { id, url }: Endpoint,
  event: PluginEvent,
): Promise<boolean> {
  return data.passes(environment, 'webhook.deliver', { endpointId: id, url, event });
}

/** Whether a notification is for webhooks too, by the settings of its user and the filters; other events always are. */
export async function isWanted(
  { name, data }: PluginHost<unknown>,
  environment: PluginEnvironment,
  event: PluginEvent,
): Promise<boolean> {
  const type: string = event.type;
  if (type !== 'notification.created') return true;
  const notification = event.data as PluginNotification;
  if (!(await data.wantsNotification(environment, notification.userId, name, notification.kind))) return false;
  return data.passes(environment, 'notification.deliver', { channel: name, notification });
}
