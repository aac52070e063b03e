import { isDeepStrictEqual } from 'node:util';
import type { Kv, Queue } from '../api.ts';
import type { PluginServices } from './services.ts';

/**
 * Services that read like `services` and write nothing: what a plugin stores, adds or sets is dropped. Requests are
 * sent.
 *
 * @param now the time of the plugin
 */
export function dryServices(services: PluginServices, now: () => number): PluginServices {
  return {
    ...services,
    now,
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
  return {
    ...queue,
    add: drop,
    remove: drop,
    retry: async (environment, id) => (await queue.get(environment, id)) !== undefined,
  };
}

function drop(): Promise<void> {
  return Promise.resolve();
}
