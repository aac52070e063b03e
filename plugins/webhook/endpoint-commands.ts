import { randomUUID } from 'node:crypto';
import {
  type CommandCall,
  type CommandResult,
  type Kv,
  type Payload,
  type PluginEnvironment,
  type PluginHost,
  type Queue,
  UsageError,
} from '../../src/plugins/api.ts';
import { hasDeliveries, removeDeliveries } from './deliveries.ts';
import {
  addEndpoint,
  changeEndpoint,
  type Endpoint,
  listEndpoints,
  MAX_ENDPOINTS,
  MAX_PREVIOUS,
  newEndpointId,
  previousAt,
  readEndpoint,
  removeEndpoint,
  unknownType,
  urlFault,
} from './endpoints.ts';
import { send } from './send.ts';
import { newSecret, secretFault } from './signature.ts';

type Call = CommandCall<unknown>;

const HOUR_MS = 3_600_000;
const MAX_OVERLAP_HOURS = 168;

/** Registers `collab webhook add|list|test|rotate|enable|remove`. */
export function registerEndpointCommands(host: PluginHost<unknown>, queue: Queue): void {
  host.command(
    {
      name: 'add',
      summary: 'Send the events of an environment to a URL.',
      examples: [
        'collab webhook add --env default --url https://example.com/webhooks',
        'collab webhook add --env default --url https://example.com/webhooks --events comment.created,thread.resolved',
      ],
      options: [
        { flag: '--url <url>', description: 'http or https URL of the receiver', required: true },
        { flag: '--events <types>', description: 'types of events, separated by commas; all by default' },
        { flag: '--secret <secret>', description: 'a secret that you have already (whsec_…); one is made by default' },
      ],
    },
    (call) => add(host, call),
  );
  host.command(
    {
      name: 'list',
      summary: 'List the endpoints, and which of them fail.',
      examples: ['collab webhook list --env default'],
    },
    (call) => list(host, call),
  );
  host.command(
    {
      name: 'test <id>',
      summary: 'Send a test message to an endpoint now, and show the response.',
      examples: ['collab webhook test wh_1 --env default'],
    },
    (call) => test(host, call),
  );
  host.command(
    {
      name: 'rotate <id>',
      summary: 'Replace the secret of an endpoint. Both secrets sign for a while.',
      examples: ['collab webhook rotate wh_1 --env default --overlap-hours 48'],
      options: [
        {
          flag: '--overlap-hours <hours>',
          description: `how long the old secret signs too, 0 to ${MAX_OVERLAP_HOURS}; 24 by default`,
        },
      ],
    },
    (call) => rotate(host, call),
  );
  host.command(
    {
      name: 'enable <id>',
      summary: 'Send events to a disabled endpoint again.',
      examples: ['collab webhook enable wh_1 --env default'],
    },
    (call) => enable(host, call),
  );
  host.command(
    {
      name: 'remove <id>',
      summary: 'Remove an endpoint and its deliveries.',
      examples: ['collab webhook remove wh_1 --env default --yes'],
    },
    (call) => remove(host, queue, call),
  );
}

/** The endpoint with an id. Throws a UsageError if there is none. */
export async function endpointWith(kv: Kv, id: string, environment: PluginEnvironment): Promise<Endpoint> {
  return (await readEndpoint(kv, id)) ?? unknownEndpoint(id, environment);
}

function unknownEndpoint(id: string, { slug }: PluginEnvironment): never {
  throw new UsageError(`Environment ${slug} has no webhook endpoint ${id}.`, [
    `\`collab webhook list --env ${slug}\` lists them.`,
  ]);
}

async function add(host: PluginHost<unknown>, { options, environment }: Call): Promise<CommandResult> {
  const kv = host.kv(environment);
  const url = String(options['url']);
  const fault = urlFault(url);
  if (fault !== null) throw new UsageError(`--url ${fault}`);
  const events =
    options['events'] === undefined
      ? null
      : String(options['events'])
          .split(',')
          .map((type) => type.trim());
  const unknown = unknownType(events ?? []);
  if (unknown !== undefined)
    throw new UsageError(
      `--events contains ${JSON.stringify(unknown)}, which is no type of event. docs/webhooks.md lists the types.`,
    );
  const secret = options['secret'] === undefined ? newSecret() : String(options['secret']);
  const secretIs = secretFault(secret);
  if (secretIs !== null) throw new UsageError(`--secret ${secretIs}`);
  if ((await listEndpoints(kv)).length >= MAX_ENDPOINTS)
    throw new UsageError(
      `Environment ${environment.slug} has ${MAX_ENDPOINTS} webhook endpoints, which is the maximum.`,
      [`\`collab webhook remove <id> --env ${environment.slug}\` removes one.`],
    );

  const endpoint: Endpoint = {
    id: newEndpointId(),
    url,
    events,
    secret,
    previous: [],
    disabled: null,
    failing: null,
    createdAt: host.now(),
  };
  await addEndpoint(kv, endpoint);
  const refusal = await host.http.refusal(url);
  const warning =
    refusal === null
      ? null
      : `Nothing is delivered to this URL yet: ${refusal}. Restart the server after such a change.`;
  return {
    json: { ...endpointView(endpoint, host.now()), secret, warning },
    text: `Added webhook ${endpoint.id}.\n\n  secret  ${secret}\n\nThe receiver verifies deliveries with this secret. It is not shown again.${warning === null ? '' : `\n\n${warning}`}`,
    next: [`collab webhook test ${endpoint.id} --env ${environment.slug}`],
  };
}

async function list(host: PluginHost<unknown>, { environment }: Call): Promise<CommandResult> {
  const endpoints = await listEndpoints(host.kv(environment));
  if (endpoints.length === 0)
    return {
      json: { items: [] },
      text: `Environment ${environment.slug} has no webhook endpoints.`,
      next: [`collab webhook add --env ${environment.slug} --url https://…`],
    };
  return {
    json: { items: endpoints.map((endpoint) => endpointView(endpoint, host.now())) },
    text: {
      header: ['id', 'url', 'events', 'state'],
      rows: endpoints.map((endpoint) => [
        endpoint.id,
        endpoint.url,
        endpoint.events?.join(',') ?? 'all',
        stateOf(endpoint),
      ]),
    },
  };
}

async function test(host: PluginHost<unknown>, { arguments: [id = ''], environment }: Call): Promise<CommandResult> {
  const endpoint = await endpointWith(host.kv(environment), id, environment);
  const now = host.now();
  const body = JSON.stringify({
    type: 'webhook.test',
    timestamp: new Date(now).toISOString(),
    data: { endpointId: id },
  });
  const eventId = `evt_test_${randomUUID()}`;
  const outcome = await send(host.http, endpoint, { eventId, body }, now);
  const reason = outcome.ok ? null : outcome.reason;
  return {
    json: { ok: outcome.ok, status: outcome.status, reason, webhookId: eventId },
    text:
      reason === null
        ? `${endpoint.url} answered ${outcome.status}: the endpoint works.`
        : `${endpoint.url} did not accept the test message: ${reason}. It must answer 2xx within 15 seconds.`,
    ...(reason !== null && { failure: 'The test failed.' }),
  };
}

async function rotate(
  host: PluginHost<unknown>,
  { arguments: [id = ''], options, environment }: Call,
): Promise<CommandResult> {
  const hours = Number(options['overlapHours'] ?? 24);
  if (!Number.isInteger(hours) || hours < 0 || hours > MAX_OVERLAP_HOURS)
    throw new UsageError(`--overlap-hours must be an integer from 0 to ${MAX_OVERLAP_HOURS}`);
  const secret = newSecret();
  const now = host.now();
  const until = now + hours * HOUR_MS;
  const rotated = await changeEndpoint(host.kv(environment), id, (endpoint) => {
    const previous = previousAt([{ secret: endpoint.secret, until }, ...endpoint.previous], now);
    if (previous.length > MAX_PREVIOUS) throw tooManySecrets(endpoint);
    return { ...endpoint, secret, previous };
  });
  if (rotated === undefined) return unknownEndpoint(id, environment);
  const end = new Date(until).toISOString();
  return {
    json: { ...endpointView(rotated, host.now()), secret, previousSecretExpiresAt: end },
    text:
      `The new secret of ${id}:\n\n  secret  ${secret}\n\nDeliveries are signed with ` +
      `${rotated.previous.length > 1 ? 'each earlier secret too until its time, the last one' : 'both secrets'} ` +
      `until ${end}. Give the receiver the new one before that. It is not shown again.`,
  };
}

function tooManySecrets({ id, previous }: Endpoint): UsageError {
  const first = new Date(Math.min(...previous.map(({ until }) => until))).toISOString();
  return new UsageError(`${MAX_PREVIOUS} earlier secrets of ${id} sign too, which is the maximum.`, [
    `Rotate again after ${first}, or with \`--overlap-hours 0\`, which ends the current secret at once.`,
  ]);
}

async function enable(host: PluginHost<unknown>, { arguments: [id = ''], environment }: Call): Promise<CommandResult> {
  const enabled = await changeEndpoint(host.kv(environment), id, (endpoint) => ({
    ...endpoint,
    disabled: null,
    failing: null,
  }));
  if (enabled === undefined) return unknownEndpoint(id, environment);
  return {
    json: endpointView(enabled, host.now()),
    text: `${id} receives events again. Deliveries that failed meanwhile, and events that were skipped, can be sent again.`,
    next: [
      `collab webhook replay ${id} --env ${environment.slug} --failed`,
      `collab webhook replay ${id} --env ${environment.slug} --from <seq>`,
    ],
  };
}

async function remove(host: PluginHost<unknown>, queue: Queue, call: Call): Promise<CommandResult> {
  const {
    arguments: [id = ''],
    environment,
  } = call;
  const kv = host.kv(environment);
  const endpoint = await readEndpoint(kv, id);
  // Deliveries without their endpoint are left by a removal that was interrupted.
  if (endpoint === undefined && !(await hasDeliveries(queue, environment, id))) return unknownEndpoint(id, environment);
  const deliveries = 'Its undelivered events and failed deliveries are dropped.';
  await call.confirm(
    endpoint === undefined
      ? `Webhook ${id} was removed, but not its deliveries. ${deliveries}`
      : `Remove webhook ${id} (${endpoint.url})? ${deliveries}`,
  );
  // First, so that no delivery is added behind those that are being removed.
  await removeEndpoint(kv, id);
  const count = await removeDeliveries(queue, environment, id);
  const removed = count === 0 ? '' : count === 1 ? ' and 1 delivery' : ` and ${count} deliveries`;
  return { json: { deleted: true, deliveries: count }, text: `Removed webhook ${id}${removed}.` };
}

/** An endpoint as the commands show it, without its secrets. */
function endpointView(endpoint: Endpoint, now: number): { readonly [key: string]: Payload } {
  const { id, url, events, disabled, failing, previous, createdAt } = endpoint;
  const signing = previousAt(previous, now);
  return {
    id,
    url,
    events,
    enabled: disabled === null,
    disabledReason: disabled,
    failingSince: failing === null ? null : new Date(failing.since).toISOString(),
    failingReason: failing?.reason ?? null,
    previousSecretExpiresAt:
      signing.length === 0 ? null : new Date(Math.max(...signing.map(({ until }) => until))).toISOString(),
    createdAt: new Date(createdAt).toISOString(),
  };
}

function stateOf({ disabled, failing }: Endpoint): string {
  if (disabled !== null) return `disabled: ${disabled}`;
  return failing === null ? 'enabled' : `failing since ${new Date(failing.since).toISOString()}: ${failing.reason}`;
}
