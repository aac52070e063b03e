import type { Context } from '../../domain/context.ts';
import { PluginKv } from '../../domain/plugins/kv.ts';
import type { EventType } from '../../model/event.ts';
import type { PluginInfo } from '../thread/messages.ts';

/** An action of a plugin, without its function. */
export type ActionInfo = PluginInfo['hooks']['actions'][number];

/** Whether an action of a plugin gets events of an environment: one with `whenKv` only while there is such a key. */
export async function isActive(
  ctx: Context,
  plugin: string,
  { whenKv }: ActionInfo,
  environmentId: string,
): Promise<boolean> {
  return whenKv === null || new PluginKv(ctx, environmentId, plugin).hasPrefix(whenKv);
}

/** Whether an action of a plugin gets the events of a type in an environment. */
export async function receives(
  ctx: Context,
  plugin: string,
  action: ActionInfo,
  environmentId: string,
  type: EventType,
): Promise<boolean> {
  if ((action.type !== '*' && action.type !== type) || !(await isActive(ctx, plugin, action, environmentId)))
    return false;
  if (action.whenKv === null || action.typesIn === null) return true;
  const types = await new PluginKv(ctx, environmentId, plugin).listedUnder(action.whenKv, action.typesIn);
  return types === null || types.has(type);
}
