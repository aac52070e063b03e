import type { Static, TSchema } from 'typebox';
import Value from 'typebox/value';
import type {
  Action,
  CommandOptions,
  CommandResult,
  FilterContext,
  FilterName,
  FilterTypes,
  HookContext,
  HttpRequest,
  HttpResponse,
  Plugin,
  PluginActor,
  PluginEvent,
  PluginHost,
  RouteResponse,
  RouteRequest,
} from '../../src/plugins/api.ts';
import { ManualClock } from './manual-clock.ts';
import { MemoryData, MemoryKv, request } from './plugin-data.ts';
import { MemoryQueue } from './plugin-queue.ts';

/** The environment of the host. */
export const environment = { id: 'env_1', slug: 'default' } as const;

/** A line that a plugin logged. */
export interface Logged {
  readonly level: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface HostOptions {
  /** The plugin's configuration; its defaults are applied. */
  readonly config?: unknown;
  readonly publicUrl?: string;
  /** Answers the plugin's requests in place of a real request. */
  readonly http?: (url: string, options?: HttpRequest) => Promise<HttpResponse>;
}

/** A plugin in one environment, with storage in memory and a clock that the test turns. */
export interface TestHost {
  readonly clock: ManualClock;
  readonly data: MemoryData;
  readonly kv: MemoryKv;
  readonly logged: Logged[];
  /**
   * Runs the filters of a name in the order of their registration, until one decides. The actor is a user, unless one
   * is given.
   */
  filter<N extends FilterName>(name: N, payload: FilterTypes[N]['payload'], actor?: PluginActor): Promise<unknown>;
  /** Runs the actions for an event. */
  emit(event: PluginEvent): Promise<void>;
  /** Turns the clock, then runs the jobs that are due. */
  runJobs(afterMs?: number): Promise<void>;
  queue(name: string): MemoryQueue;
  /** Calls a route, such as `POST subscription`. */
  route(route: string, request?: Partial<RouteRequest>): Promise<RouteResponse>;
  /** Runs a command, such as `test wh_1`. */
  command(line: string, options?: Readonly<Record<string, string | true>>): Promise<CommandResult>;
}

/** Sets a plugin up as the real host does. @throws if the configuration does not fit the schema */
export async function hostPlugin<S extends TSchema>(
  plugin: Plugin<S>,
  { config = {}, publicUrl = '', http = request }: HostOptions = {},
): Promise<TestHost> {
  const own = Value.Default(plugin.config, structuredClone(config)) as Static<S>;
  if (!Value.Check(plugin.config, own))
    throw new Error(`wrong configuration: ${JSON.stringify(Value.Errors(plugin.config, own))}`);
  const clock = new ManualClock(Date.UTC(2026, 0, 5, 12));
  const [data, kv, logged] = [new MemoryData(), new MemoryKv(), [] as Logged[]];
  const actions: { type: string; run: Action<Static<S>> }[] = [];
  const filters: { name: FilterName; run: (payload: never, context: FilterContext<Static<S>>) => unknown }[] = [];
  const queues = new Map<string, MemoryQueue>();
  const routes = new Map<string, (request: RouteRequest) => RouteResponse | Promise<RouteResponse>>();
  const commands: { options: CommandOptions; run: Parameters<PluginHost<Static<S>>['command']>[1] }[] = [];
  const context: HookContext<Static<S>> = { environment, config: own, signal: new AbortController().signal };
  const at = (level: string) => (fields: Readonly<Record<string, unknown>>, message: string) =>
    void logged.push({ level, message, fields });

  await plugin.setup({
    name: plugin.name,
    publicUrl,
    now: () => clock.now(),
    log: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') },
    http: { request: http, refusal: () => Promise.resolve(null) },
    data,
    kv: () => kv,
    filter: (name, run) => void filters.push({ name, run }),
    action: (type, run) => void actions.push({ type, run }),
    queue: (name, run, options) => {
      const queue = new MemoryQueue(
        clock,
        async (job, attempt) => run(job, { ...context, attempt }, environment),
        options,
      );
      queues.set(name, queue);
      return queue;
    },
    route: ({ method, path }, handle) => void routes.set(`${method} ${path}`, (received) => handle(received, context)),
    command: (options, run) => void commands.push({ options, run }),
  });

  return {
    clock,
    data,
    kv,
    logged,
    filter: async (name, payload, actor = { kind: 'user', userId: 'ann', role: 'member' }) => {
      for (const filter of filters) {
        const result =
          filter.name === name ? await filter.run(structuredClone(payload) as never, { ...context, actor }) : undefined;
        if (result !== undefined) return result;
      }
      return undefined;
    },
    emit: async (event) => {
      data.log.push(event);
      for (const { type, run } of actions)
        if (type === '*' || type === event.type) await run(event, { ...context, attempt: 1 });
    },
    runJobs: async (afterMs = 0) => {
      clock.advance(afterMs);
      for (const queue of queues.values()) await queue.runDue();
    },
    queue: (name) => queues.get(name) ?? missing(`queue ${name}`),
    route: async (route, received = {}) =>
      (routes.get(route) ?? missing(route))({ userId: null, query: {}, body: '', headers: {}, ...received }),
    command: async (line, options = {}) => {
      const [name = '', ...args] = line.split(' ');
      const { run } =
        commands.find((command) => command.options.name.split(' ')[0] === name) ?? missing(`command ${name}`);
      return run({ arguments: args, options, environment, config: own, confirm: () => Promise.resolve() });
    },
  };
}

function missing(what: string): never {
  throw new Error(`the plugin has no ${what}`);
}
