import { firstLine } from '../lib/thrown.ts';
import { withTimeout } from '../lib/concurrency/deadline.ts';
import { formatValue } from '../lib/format-value.ts';
import { type EventType, eventTypes } from '../model/event.ts';
import type {
  Action,
  ActionOptions,
  CommandCall,
  CommandOptions,
  CommandResult,
  Filter,
  FilterName,
  FilterOptions,
  HookContext,
  Job,
  JobContext,
  Plugin,
  PluginEnvironment,
  PluginHost,
  Queue,
  QueueOptions,
  RouteResponse,
  RouteOptions,
  RouteRequest,
} from './api.ts';
import { LOAD_MS } from './loading/load.ts';
import { PluginError } from './loading/plugin-error.ts';
import type { PluginServices } from './services/services.ts';

/**
 * The hooks that a plugin has registered, in the order of the registrations. `Config` is not known here: it was
 * validated.
 */
export interface Hooks {
  readonly filters: {
    readonly name: FilterName;
    readonly filter: Filter<FilterName, unknown>;
    readonly options: Required<FilterOptions>;
  }[];
  readonly actions: {
    readonly type: EventType | '*';
    readonly action: Action<unknown>;
    readonly timeoutMs: number;
    readonly whenKv: string | null;
    readonly typesIn: string | null;
    readonly ordered: boolean;
  }[];
  readonly queues: {
    readonly name: string;
    readonly run: (job: Job, context: JobContext<unknown>, environment: PluginEnvironment) => void | Promise<void>;
    readonly options: Required<QueueOptions>;
  }[];
  readonly routes: {
    readonly options: RouteOptions;
    readonly handle: (request: RouteRequest, context: HookContext<unknown>) => RouteResponse | Promise<RouteResponse>;
  }[];
  readonly commands: {
    readonly options: CommandOptions;
    readonly run: (call: CommandCall<unknown>) => CommandResult | Promise<CommandResult>;
  }[];
}

const filterNames = new Set<string>([
  'comment.create',
  'comment.update',
  'thread.create',
  'thread.resolve',
  'reaction.create',
  'upload.create',
  'connection.open',
  'notification.deliver',
  'webhook.deliver',
] satisfies FilterName[]);
const onErrorValues: ReadonlySet<unknown> = new Set(['open', 'closed', 'hold'] satisfies FilterOptions['onError'][]);
const QUEUE_NAME = /^[a-z][a-z0-9-]{0,39}$/;
const PATH = /^[a-z0-9-]{1,64}$/;
const routeMethods: ReadonlySet<unknown> = new Set(['GET', 'POST', 'DELETE'] satisfies RouteOptions['method'][]);
const routeCredentials: ReadonlySet<unknown> = new Set([
  'user',
  'secret',
  'public',
] satisfies RouteOptions['credential'][]);
const MAX_RETRIES = 100;
/** 30 days. */
const MAX_RETRY_DELAY_MS = 30 * 24 * 3_600_000;

/**
 * Runs the setup of a plugin and returns its hooks. Throws `PluginError` for what setup throws, and for options out of
 * bounds.
 */
export async function setUp(plugin: Plugin, services: PluginServices): Promise<Hooks> {
  const { name } = plugin;
  const hooks: Hooks = { filters: [], actions: [], queues: [], routes: [], commands: [] };
  const host = createHost(name, services, hooks);
  try {
    await withTimeout(LOAD_MS, Promise.resolve(plugin.setup(host)), () => {
      throw new Error(`setup did not end within ${LOAD_MS / 1_000} s`);
    });
  } catch (error) {
    throw new PluginError(name, `its setup failed: ${firstLine(error)}`);
  }
  return hooks;
}

function createHost(name: string, services: PluginServices, hooks: Hooks): PluginHost<never> {
  const { publicUrl, now, log, http, data } = services;
  return {
    name,
    publicUrl,
    now,
    log,
    http,
    data,
    kv: (environment) => services.kv(environment),
    filter: (filterName, filter, { priority = 100, timeoutMs = 2_000, onError = 'open' } = {}) => {
      if (!filterNames.has(filterName)) throw new Error(`there is no filter ${String(filterName)}`);
      bound(`timeoutMs of the filter ${filterName}`, timeoutMs, 100, 10_000);
      if (!Number.isSafeInteger(priority))
        throw new Error(`priority of the filter ${filterName} must be a whole number, not ${formatValue(priority)}`);
      if (!isOnError(onError))
        throw new Error(
          `onError of the filter ${filterName} must be open, closed or hold, not ${formatValue(onError)}`,
        );
      hooks.filters.push({
        name: filterName,
        filter: filter as unknown as Filter<FilterName, unknown>,
        options: { priority, timeoutMs, onError },
      });
    },
    action: (type, action, { timeoutMs = 10_000, whenKv, typesIn, ordered = true }: ActionOptions = {}) => {
      if (type !== '*' && !(eventTypes as readonly string[]).includes(type))
        throw new Error(`there is no event ${type}`);
      bound(`timeoutMs of the action on ${type}`, timeoutMs, 100, 60_000);
      hooks.actions.push({
        type,
        action: action as Action<unknown>,
        timeoutMs,
        whenKv: whenKv ?? null,
        typesIn: typesIn ?? null,
        ordered,
      });
    },
    queue: (queueName, run, options): Queue => {
      const { concurrency = 8, timeoutMs = 20_000, groupConcurrency = 256, retryDelaysMs } = options;
      if (!QUEUE_NAME.test(queueName)) throw new Error(`the name of a queue must match ${QUEUE_NAME.source}`);
      if (hooks.queues.some((queue) => queue.name === queueName)) throw new Error(`two queues are named ${queueName}`);
      bound(`concurrency of the queue ${queueName}`, concurrency, 1, 256);
      bound(`groupConcurrency of the queue ${queueName}`, groupConcurrency, 1, 256);
      bound(`timeoutMs of the queue ${queueName}`, timeoutMs, 100, 60_000);
      if (!isDelays(retryDelaysMs))
        throw new Error(
          `retryDelaysMs of the queue ${queueName} must be an array of at most ${MAX_RETRIES} whole numbers ` +
            `from 0 to ${MAX_RETRY_DELAY_MS}, not ${formatValue(retryDelaysMs)}`,
        );
      hooks.queues.push({
        name: queueName,
        run: run as Hooks['queues'][number]['run'],
        options: { retryDelaysMs, concurrency, groupConcurrency, timeoutMs },
      });
      return services.queue(queueName);
    },
    route: (options, handle) => {
      if (!PATH.test(options.path)) throw new Error(`the path of a route must match ${PATH.source}`);
      if (!routeMethods.has(options.method))
        throw new Error(
          `method of the route ${options.path} must be GET, POST or DELETE, not ${formatValue(options.method)}`,
        );
      if (!routeCredentials.has(options.credential))
        throw new Error(
          `credential of the route ${options.path} must be user, secret or public, not ${formatValue(options.credential)}`,
        );
      if (hooks.routes.some((route) => route.options.path === options.path && route.options.method === options.method))
        throw new Error(`two routes are ${options.method} ${options.path}`);
      hooks.routes.push({ options, handle: handle as Hooks['routes'][number]['handle'] });
    },
    command: (options, run) => {
      const [commandName] = options.name.split(' ');
      if (hooks.commands.some((command) => command.options.name.split(' ')[0] === commandName))
        throw new Error(`two commands are named ${commandName}`);
      hooks.commands.push({ options, run: run as Hooks['commands'][number]['run'] });
    },
  };
}

function isDelays(value: unknown): value is readonly number[] {
  return (
    Array.isArray(value) &&
    value.length <= MAX_RETRIES &&
    value.every((delay) => Number.isSafeInteger(delay) && delay >= 0 && delay <= MAX_RETRY_DELAY_MS)
  );
}

function bound(what: string, value: number, minimum: number, maximum: number): void {
  if (!Number.isInteger(value) || value < minimum || value > maximum)
    throw new Error(`${what} must be a whole number from ${minimum} to ${maximum}, not ${value}`);
}

/** Whether a value says what a failure of a filter means; plugins need not be typed. */
export function isOnError(value: unknown): value is Required<FilterOptions>['onError'] {
  return onErrorValues.has(value);
}
