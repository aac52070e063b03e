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
  const [service, name] = parseMethod(method);
  const [target, own] = targets[service](services, args);
  return (Reflect.get(target, name) as (...values: readonly unknown[]) => Promise<unknown>).apply(target, [...own]);
}

function parseMethod(method: ServiceMethod): [service: keyof typeof methods, name: string] {
  const [service = '', name = ''] = method.split('.');
  if (!isService(service) || !(methods[service] as readonly string[]).includes(name))
    throw new Error(`there is no method ${method}`);
  return [service, name];
}

const isService = (name: string): name is keyof typeof methods => Object.hasOwn(methods, name);

/** By service: the object that has its methods, and the arguments of a call without the scope that `stub` sends. */
const targets: Readonly<
  Record<
    keyof typeof methods,
    (services: PluginServices, args: readonly unknown[]) => [target: object, args: readonly unknown[]]
  >
> = {
  kv: (services, [environment, ...args]) => [services.kv(environment as PluginEnvironment), args],
  queue: (services, [name, ...args]) => [services.queue(name as string), args],
  http: (services, args) => [services.http, args],
  data: (services, args) => [services.data, args],
};
