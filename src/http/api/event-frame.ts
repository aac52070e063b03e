import { withFileUrls } from '../../domain/files/file-urls.ts';
import type { StoredEvent } from '../../ports/store.ts';

/**
 * An event as a message of server-sent events.
 *
 * @param epoch the epoch of the event's stream
 * @param baseUrl what file URLs begin with, without a slash at its end; '' leaves them as paths
 */
export function eventFrame(epoch: string, { seq, text }: StoredEvent, baseUrl: string): string {
  return `id: ${epoch}:${seq}\ndata: ${withFileUrls(text, baseUrl)}\n\n`;
}
