import type { ProcessChannel } from '../cluster/channel.ts';

/**
 * Counts the plugins that the server runs without: those that this web worker could not load, and those that the
 * background worker reports. One that both lack counts once.
 *
 * @param own the `use` of the entries that this worker could not load
 */
export function countMissingPlugins(own: readonly string[], channel: Pick<ProcessChannel, 'onMessage'>): () => number {
  let missing = new Set(own);
  channel.onMessage((message) => {
    if (message.type === 'missingPlugins') missing = new Set([...own, ...message.data.uses]);
  });
  return () => missing.size;
}
