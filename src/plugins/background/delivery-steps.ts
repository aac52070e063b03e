import type { Config } from '../../config/schema.ts';
import type { Context } from '../../domain/context.ts';
import { IN_APP } from '../../domain/notifications/settings.ts';
import type { Logger } from '../../observability/log.ts';
import type { NotificationSettings } from '../../model/notification.ts';
import type { PluginEnvironment, PluginNotification } from '../api.ts';
import { dryServices } from '../services/dry-services.ts';
import { FilterChain, type PluginFilter } from '../filters/filter-chain.ts';
import { localServices } from '../services/local-services.ts';
import { withDefaults } from '../loading/locate.ts';
import { PluginError } from '../loading/plugin-error.ts';
import { receives } from './action-events.ts';
import { loadEntries } from '../loading/load-entries.ts';
import { settingsIn } from '../loading/settings.ts';
import { workerThreadFilters } from '../filters/worker-thread-filters.ts';
import type { PluginInfo } from '../thread/messages.ts';
import { loadInThread } from '../thread/thread-plugin.ts';

/** What becomes of a notification in one channel. */
export interface DeliveryStep {
  /** `inApp`, or the name of a plugin. */
  readonly channel: string;
  /**
   * `shown`: in the inbox. `passed`: the plugin gets it. `setting`: the user has turned this kind off. `filter`: a
   * filter rejects it. `hidden`: not in the inbox, although settings and filters allow it now. `nothing`: the plugin
   * has nothing to deliver in this environment, such as a webhook without an endpoint. `off`: the plugin is turned off
   * there. `missing`: no plugin of this name is loaded.
   */
  readonly outcome: 'shown' | 'passed' | 'setting' | 'filter' | 'hidden' | 'nothing' | 'off' | 'missing';
  /** The plugin whose filter rejects it; null otherwise. */
  readonly filter: string | null;
}

/** Dependencies of `deliverySteps`. */
export interface DeliveryStepDeps {
  readonly ctx: Context;
  readonly config: Config;
  readonly log: Logger;
}

/** A notification, whether the inbox shows it, and the settings of its user. */
export interface DeliverySubject {
  readonly notification: PluginNotification;
  readonly inApp: boolean;
  readonly settings: NotificationSettings;
}

/**
 * What settings, filters and plugins make of a notification now, for the inbox and for every channel that the settings
 * of its user or the configuration name. Loads the plugins as the background worker does and runs their filters of
 * deliveries; what they write is dropped. A plugin that cannot be loaded is `missing`.
 */
export async function deliverySteps(
  deps: DeliveryStepDeps,
  environment: PluginEnvironment,
  { notification, inApp, settings }: DeliverySubject,
): Promise<readonly DeliveryStep[]> {
  const { plugins, filters, close } = await load(deps);
  const chain = new FilterChain(filters, { clock: deps.ctx.clock, log: deps.log });
  const step = async (channel: string): Promise<DeliveryStep> => {
    const end = (outcome: DeliveryStep['outcome'], filter: string | null = null): DeliveryStep => ({
      channel,
      outcome,
      filter,
    });
    const plugin = plugins.get(channel);
    if (channel === IN_APP && inApp) return end('shown');
    if (channel !== IN_APP && plugin === undefined) return end('missing');
    if (plugin !== undefined && !settingsIn(plugin.settings, environment.slug).enabled) return end('off');
    if (plugin !== undefined && !(await delivers(deps.ctx, plugin, environment))) return end('nothing');
    if (settings[channel]?.[notification.kind] === false) return end('setting');
    const filter = await chain.rejectedBy(environment, 'notification.deliver', { channel, notification });
    if (filter !== null) return end('filter', filter);
    return end(channel === IN_APP ? 'hidden' : 'passed');
  };
  try {
    const channels = [...plugins]
      .filter(([, { hooks }]) => hooks.actions.some(({ type }) => type === '*' || type === EVENT))
      .map(([name]) => name);
    const steps: DeliveryStep[] = [];
    for (const channel of new Set([...Object.keys(settings), ...channels])) steps.push(await step(channel));
    return steps;
  } finally {
    await close();
  }
}

const EVENT = 'notification.created';

/** Whether an action of a plugin gets the event of a notification in an environment. */
async function delivers(ctx: Context, { name, hooks }: PluginInfo, { id }: PluginEnvironment): Promise<boolean> {
  for (const action of hooks.actions) if (await receives(ctx, name, action, id, EVENT)) return true;
  return false;
}

/** The plugins by name, and their filters in the order of the configuration. */
async function load({ ctx, config, log }: DeliveryStepDeps): Promise<{
  plugins: ReadonlyMap<string, PluginInfo>;
  filters: readonly PluginFilter[];
  close: () => Promise<void>;
}> {
  const now = (): number => ctx.clock.now();
  const passes = (): Promise<boolean> => Promise.resolve(true);
  const loaded = await loadEntries(withDefaults(config.plugins), (entry) =>
    loadInThread(entry, {
      publicUrl: config.publicUrl,
      services: (plugin) => dryServices(localServices(plugin, entry, { ctx, config, log, passes }), now),
    }),
  );
  for (const { entry, failure } of loaded) {
    if (failure === null) continue;
    if (!(failure instanceof PluginError)) throw failure;
    log.warn({ plugin: entry.use, reason: failure.message }, 'a plugin could not be loaded');
  }
  const plugins = loaded.flatMap(({ plugin }) => plugin ?? []);
  return {
    plugins: new Map(plugins.map(({ name, info }) => [name, info])),
    filters: plugins.flatMap(({ info, thread }) => workerThreadFilters(info, thread)),
    close: async () => void (await Promise.all(plugins.map((plugin) => plugin.close()))),
  };
}
