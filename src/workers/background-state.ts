import type { ProcessChannel } from '../cluster/channel.ts';

/**
 * Returns whether the background worker cannot start, as the primary says: it has ended three times or more without
 * having been ready.
 */
export function watchBackgroundWorker(channel: Pick<ProcessChannel, 'onMessage'>): () => boolean {
  let isFailing = false;
  channel.onMessage((message) => {
    if (message.type === 'background') isFailing = message.data.isFailing;
  });
  return () => isFailing;
}
