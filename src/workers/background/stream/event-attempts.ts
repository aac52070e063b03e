import { setTimeout as delay } from 'node:timers/promises';
import { type ConsumerOutcome, retryDelay } from '../../../domain/events/consumer.ts';
import { isStoreError } from '../../../model/errors.ts';
import type { EventEnvelope } from '../../../model/event.ts';
import type { Logger } from '../../../observability/log.ts';

/** Dependencies of `attempt`. */
export interface AttemptDeps {
  readonly log: Logger;
  /** What lines of the log name. */
  readonly names: object;
  /** Aborted when the process shuts down. */
  readonly signal: AbortSignal;
  /** Called for every outcome of `count` events. */
  readonly onOutcome: (outcome: ConsumerOutcome, count: number) => void;
}

/**
 * Handles events until that succeeds, the attempts are used up, or the process shuts down. An attempt that the store
 * refused does not count.
 *
 * @param handle receives the number of the attempt, from 1
 * @param retryDelaysMs as in `Consumer`
 * @returns `failed` when the attempts are used up, which is logged for a single event: several are tried singly then
 */
export async function attempt(
  { log, names, signal, onOutcome }: AttemptDeps,
  events: readonly EventEnvelope[],
  handle: (attempt: number) => Promise<void>,
  retryDelaysMs: readonly number[] | null,
): Promise<'handled' | 'failed' | 'aborted'> {
  const [first, ...others] = events;
  const isSingle = others.length === 0;
  for (let attempts = 1, storeErrors = 0; !signal.aborted;) {
    try {
      await handle(attempts);
      return 'handled';
    } catch (error) {
      if (signal.aborted) break;
      const isStoreFailure = isStoreError(error);
      const wait = isStoreFailure ? retryDelay(null, ++storeErrors) : retryDelay(retryDelaysMs, attempts);
      const about = { err: error, ...names, seq: first?.seq, eventId: first?.eventId, attempt: attempts };
      if (wait === null) {
        if (isSingle) log.error(about, 'a consumer could not handle an event and skips it');
        return 'failed';
      }
      const what = isSingle ? 'an event; it is' : 'events; they are';
      log.warn({ ...about, waitMs: wait }, `a consumer failed to handle ${what} tried again`);
      onOutcome('retried', events.length);
      if (!isStoreFailure) attempts++;
      await delay(wait, undefined, { signal }).catch(() => undefined);
    }
  }
  return 'aborted';
}
