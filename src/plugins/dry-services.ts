import { isDeepStrictEqual } from 'node:util';
import type { Kv, Queue } from './api.ts';
import type { PluginServices } from './services.ts';

/** Services that read like `services` and write nothing: what a plugin stores, adds or sets is dropped. Requests are sent. */
export function dryServices(services: PluginServices): PluginServices {
  return {
    ...services,
    data: { ...services.data, setPreference: drop },
    kv: (environment) => dryKv(services.kv(environment)),
    queue: (name) => dryQueue(services.queue(name)),
  };
}

function dryKv(kv: Kv): Kv {
  return {
    get: (key) => kv.get(key),
    list: (options) => kv.list(options),
    put: drop,
    delete: drop,
    replace: async (key, expected) => isDeepStrictEqual(await kv.get(key), expected),
  };
}

function dryQueue(queue: Queue): Queue {
  return { ...queue, add: drop, remove: drop, retry: async (environment, id) => (await queue.get(environment, id)) !== undefined };
}

function drop(): Promise<void> {
  return Promise.resolve();
}
