import type { Data, PluginEnvironment } from '../../src/plugins/api.ts';

/** The text in at most `max` UTF-16 units. A cut one ends with `…`, and never in the middle of a character. */
export function excerpt(text: string, max: number): string {
  if (text.length <= max) return text;
  return `${text.slice(0, max - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

/** How a message names a user: by name, or by id if there is none. */
export async function displayName(data: Data, environment: PluginEnvironment, userId: string): Promise<string> {
  const user = await data.user(environment, userId);
  return user?.name ?? userId;
}
