import type { Data, Http, Kv, PluginEnvironment, PluginLog, Queue } from '../api.ts';

/** The services for the hooks of one plugin: directly in a process that has the store, and by messages in a thread. */
export interface PluginServices {
  readonly publicUrl: string;
  readonly log: PluginLog;
  readonly http: Http;
  readonly data: Data;
  readonly now: () => number;
  kv(environment: PluginEnvironment): Kv;
  queue(name: string): Queue;
}

/** The name of a method that a thread can call: `kv.get`, `queue.add`, `http.request`, `data.thread`. */
export type ServiceMethod = string;

/** The methods of each service that a thread can call. Their arguments and results can be cloned. */
const methods = {
  kv: ['get', 'put', 'delete', 'replace', 'list'],
  queue: ['add', 'get', 'remove', 'retry', 'list', 'count'],
  http: ['request', 'refusal'],
  data: [
    'thread',
    'comments',
    'comment',
    'user',
    'isPresent',
    'notification',
    'wantsNotification',
    'setPreference',
    'events',
    'passes',
  ],
} as const;

/**
 * Whether a method waits for nothing but the store: of those that do not, one waits for a peer, the other for filters.
 */
export function isStoreMethod(method: ServiceMethod): boolean {
  return !method.startsWith('http.') && method !== 'data.passes';
}

type Call = (method: ServiceMethod, args: readonly unknown[]) => Promise<unknown>;

/** Services that call those of another thread, except for the time. */
export function remoteServices(publicUrl: string, log: PluginLog, now: () => number, call: Call): PluginServices {
  return {
    publicUrl,
    log,
    now,
    http: stub('http', call) as unknown as Http,
    data: stub('data', call) as unknown as Data,
    kv: (environment) => stub('kv', call, environment) as unknown as Kv,
    queue: (name) => stub('queue', call, name) as unknown as Queue,
  };
}

/**
 * An object with the methods of a service. `scope` is sent before their arguments: the environment, or the name of the
 * queue.
 */
function stub(
  service: keyof typeof methods,
  call: Call,
  ...scope: readonly unknown[]
): Record<string, (...args: unknown[]) => Promise<unknown>> {
  return Object.fromEntries(
    methods[service].map((name) => [name, (...args: unknown[]) => call(`${service}.${name}`, [...scope, ...args])]),
  );
}

/** Calls a method for a thread. Rejects for one that does not exist. */
export async function callService(
  services: PluginServices,
  method: ServiceMethod,
  args: readonly unknown[],
): Promise<unknown> {
  const [service = '', name = ''] = method.split('.');
  const names: readonly string[] | undefined = Object.hasOwn(methods, service)
    ? methods[service as keyof typeof methods]
    : undefined;
  if (names?.includes(name) !== true) throw new Error(`there is no method ${method}`);
  const [scope, ...rest] = args;
  const [target, own]: [object, readonly unknown[]] =
    service === 'kv'
      ? [services.kv(scope as PluginEnvironment), rest]
      : service === 'queue'
        ? [services.queue(scope as string), rest]
        : [service === 'http' ? services.http : services.data, args];
  return (Reflect.get(target, name) as (...values: unknown[]) => Promise<unknown>).apply(target, [...own]);
}
