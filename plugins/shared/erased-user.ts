import type { PluginEvent } from '../../src/plugins/api.ts';

/** The id of the user whom the event `user.updated` says to be erased; null if it is about another change. */
export function erasedUserOf({ data }: PluginEvent): string | null {
  const { userId, erased } = data as { readonly userId: string; readonly erased?: true };
  return erased === true ? userId : null;
}
