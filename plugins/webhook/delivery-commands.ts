import {
  type CommandCall,
  type CommandResult,
  type Job,
  type PluginEnvironment,
  type PluginHost,
  type Queue,
  UsageError,
} from '../../src/plugins/api.ts';
import { messageOf } from './body.ts';
import { deliveryId } from './deliver.ts';
import { deliveryOf, jobsIn } from './deliveries.ts';
import { endpointWith } from './endpoint-commands.ts';
import { type Endpoint, receives } from './endpoints.ts';
import { isWanted, jobOf, passes } from './fan-out.ts';

type Call = CommandCall<unknown>;

const PAGE = 1_000;
const MAX_LISTED = 1_000;

/** Registers `collab webhook failed|replay`. */
export function registerDeliveryCommands(host: PluginHost<unknown>, queue: Queue): void {
  host.command(
    {
      name: 'failed',
      summary: 'List the deliveries that failed permanently. They are kept for 30 days.',
      examples: ['collab webhook failed --env default', 'collab webhook failed --env default --endpoint wh_1'],
      options: [
        { flag: '--endpoint <id>', description: 'only those to this endpoint' },
        { flag: '--limit <n>', description: `the most deliveries to list, 1 to ${MAX_LISTED}; 100 by default` },
      ],
    },
    (call) => failed(queue, call),
  );
  host.command(
    {
      name: 'replay <id>',
      summary: 'Deliver again: a failed delivery by its id, or those to an endpoint.',
      examples: [
        'collab webhook replay wh_1:evt_2 --env default',
        'collab webhook replay wh_1 --env default --failed',
        'collab webhook replay wh_1 --env default --from 1200 --to 1300',
      ],
      options: [
        { flag: '--failed', description: 'all failed deliveries to the endpoint' },
        { flag: '--from <seq>', description: 'events from this position on, delivered or not' },
        { flag: '--to <seq>', description: 'the last of these positions; the end of the log by default' },
      ],
    },
    (call) => replay(host, queue, call),
  );
}

async function failed(queue: Queue, { options, environment }: Call): Promise<CommandResult> {
  const endpointId = options['endpoint'];
  const limit = integer(options['limit'] ?? '100', '--limit', 1, MAX_LISTED);
  const found: Job[] = [];
  for await (const job of jobsIn(queue, environment, 'dead')) {
    if (endpointId === undefined || deliveryOf(job).endpointId === endpointId) found.push(job);
    if (found.length === limit) break;
  }
  const items = found.map((job) => {
    const { endpointId, eventId, type, seq } = deliveryOf(job);
    return {
      id: job.id,
      endpointId,
      eventId,
      type,
      seq,
      attempts: job.attempts,
      failedAt: job.dueAt,
      reason: job.lastError,
    };
  });
  if (items.length === 0) return { json: { items }, text: 'No failed deliveries.' };
  return {
    json: { items },
    text: {
      header: ['id', 'type', 'seq', 'attempts', 'failed at', 'reason'],
      rows: items.map(({ id, type, seq, attempts, failedAt, reason }) => [
        id,
        type,
        String(seq),
        String(attempts),
        failedAt,
        reason ?? '',
      ]),
    },
    next: [`collab webhook replay ${items[0]?.id} --env ${environment.slug}`],
  };
}

async function replay(host: PluginHost<unknown>, queue: Queue, call: Call): Promise<CommandResult> {
  const {
    arguments: [id = ''],
    options,
    environment,
  } = call;
  if (id.includes(':')) return replayed(await replayOne(host, queue, environment, id));
  const endpoint = await enabledEndpoint(host, environment, id);
  if (options['failed'] === true) return replayed(await replayFailed(queue, environment, endpoint));
  if (options['from'] === undefined)
    throw new UsageError('Name a failed delivery, or add --failed or --from <seq>.', [
      `\`collab webhook failed --env ${environment.slug}\` lists the failed deliveries.`,
    ]);
  const from = integer(options['from'], '--from', 1, Number.MAX_SAFE_INTEGER);
  const to = integer(options['to'] ?? String(Number.MAX_SAFE_INTEGER), '--to', from, Number.MAX_SAFE_INTEGER);
  const { count, first } = await replayRange(host, queue, environment, endpoint, from, to);
  return replayed(count, first > from ? { from, to: Math.min(to, first - 1) } : null);
}

/**
 * The endpoint with an id. Throws a UsageError if there is none, or if it is disabled: a delivery to it would not be
 * sent.
 */
async function enabledEndpoint(
  host: PluginHost<unknown>,
  environment: PluginEnvironment,
  id: string,
): Promise<Endpoint> {
  const endpoint = await endpointWith(host.kv(environment), id, environment);
  if (endpoint.disabled !== null)
    throw new UsageError(`Webhook ${id} is disabled: ${endpoint.disabled}.`, [
      `\`collab webhook enable ${id} --env ${environment.slug}\` enables it.`,
    ]);
  return endpoint;
}

async function replayOne(
  host: PluginHost<unknown>,
  queue: Queue,
  environment: PluginEnvironment,
  id: string,
): Promise<1> {
  const job = await queue.get(environment, id);
  if (job?.state === 'dead') {
    await enabledEndpoint(host, environment, deliveryOf(job).endpointId);
    if (await queue.retry(environment, id)) return 1;
  }
  throw new UsageError(`There is no failed delivery ${id}.`, [
    `\`collab webhook failed --env ${environment.slug}\` lists them.`,
  ]);
}

async function replayFailed(queue: Queue, environment: PluginEnvironment, { id }: Endpoint): Promise<number> {
  // All ids first: a job that is retried leaves the list that is being read.
  const ids: string[] = [];
  for await (const job of jobsIn(queue, environment, 'dead')) if (deliveryOf(job).endpointId === id) ids.push(job.id);
  let count = 0;
  for (const dead of ids) if (await queue.retry(environment, dead)) count++;
  return count;
}

/**
 * Adds the events of a range that the endpoint receives. One that waits for its next attempt is made due, also if it
 * failed permanently. Returns how many there were, and the position of the first event that the log has from `from` on,
 * or `from`.
 */
async function replayRange(
  host: PluginHost<unknown>,
  queue: Queue,
  environment: PluginEnvironment,
  endpoint: Endpoint,
  from: number,
  to: number,
): Promise<{ count: number; first: number }> {
  let [count, first] = [0, from];
  for (let since = from - 1; since < to;) {
    const events = await host.data.events(environment, since, PAGE);
    const last = events.at(-1);
    if (last === undefined) break;
    if (since === from - 1) first = events[0]?.seq ?? from;
    since = last.seq;
    for (const event of events) {
      if (event.seq > to || !receives(endpoint, event)) continue;
      if (!(await isWanted(host, environment, event)) || !(await passes(host, environment, endpoint, event))) continue;
      count++;
      if (!(await queue.retry(environment, deliveryId(endpoint.id, event.eventId))))
        await queue.add(environment, [jobOf(endpoint, messageOf(event))]);
    }
  }
  return { count, first };
}

/** @param missing positions of events that retention has removed from the log */
function replayed(count: number, missing: { readonly from: number; readonly to: number } | null = null): CommandResult {
  const due = count === 1 ? '1 delivery is due now.' : `${count} deliveries are due now.`;
  if (missing === null) return { json: { replayed: count }, text: due };
  return {
    json: { replayed: count, missing },
    text: `${due} The events ${missing.from} to ${missing.to} are no longer in the log, so they cannot be delivered again.`,
  };
}

function integer(text: string | true, flag: string, min: number, max: number): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new UsageError(
    max === Number.MAX_SAFE_INTEGER
      ? `${flag} must be an integer, at least ${min}`
      : `${flag} must be an integer from ${min} to ${max}`,
  );
}
