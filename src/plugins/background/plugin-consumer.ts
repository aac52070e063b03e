import type { Context } from '../../domain/context.ts';
import { environmentById } from '../../domain/environments/environments.ts';
import type { EventEnvelope } from '../../model/event.ts';
import type { HookMeter } from '../thread/hook-meter.ts';
import type { PluginThread } from '../thread/plugin-thread.ts';
import { settingsIn } from '../loading/settings.ts';
import type { PluginInfo } from '../thread/messages.ts';
import type { Consumer } from '../../domain/events/consumer.ts';
import { isActive, receives } from './action-events.ts';

/** Events of one environment that a plugin handles at once. */
const CONCURRENCY = 16;
const RETRY_DELAYS_MS = [1_000, 10_000, 60_000];

/** The consumer that gives events to the actions of a plugin, which run in its thread. Null if it has no actions. */
export function pluginConsumer(
  ctx: Context,
  info: PluginInfo,
  thread: PluginThread,
  meter: HookMeter,
): Consumer | null {
  const { name, settings, hooks } = info;
  if (hooks.actions.length === 0) return null;
  const handle = async (event: EventEnvelope, environmentId: string, attempt: number): Promise<void> => {
    const { id, slug } = await environmentById(ctx, environmentId);
    const { enabled, config } = settingsIn(settings, slug);
    if (!enabled) return;
    for (const [index, action] of hooks.actions.entries()) {
      if (!(await receives(ctx, name, action, id, event.type))) continue;
      const context = { environment: { id, slug }, config, attempt };
      await meter.measure(`action ${action.type}`, () =>
        thread.run({ kind: 'action', index }, event, context, action.timeoutMs),
      );
    }
  };

  return {
    name: `plugin-${name}`,
    plugin: name,
    concurrency: CONCURRENCY,
    ordered: hooks.actions.some(({ ordered }) => ordered),
    retryDelaysMs: RETRY_DELAYS_MS,
    wants: async (environment) => {
      if (!settingsIn(settings, environment.slug).enabled) return false;
      for (const action of hooks.actions) if (await isActive(ctx, name, action, environment.id)) return true;
      return false;
    },
    handle: ({ environmentId, event }, _signal, attempt) => handle(event, environmentId, attempt),
  };
}
