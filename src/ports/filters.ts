import type { DraftComment, DraftPatch, FilterActor, WriteFilter, WriteFilterTypes } from '../model/filter.ts';
import type { Notification } from '../model/notification.ts';

/** The decision of the filters. */
export type FilterOutcome =
  /** `fields` are those that filters changed. */
  | { readonly outcome: 'pass'; readonly fields: DraftPatch }
  /** `plugin` refuses it, with a message for the client. */
  | { readonly outcome: 'reject'; readonly plugin: string; readonly message: string; readonly status: 400 | 403 }
  /** `plugin` holds it for moderation; only comments and threads. `fields` are those that earlier filters changed. */
  | { readonly outcome: 'hold'; readonly plugin: string; readonly reason: string; readonly fields: DraftPatch };

/** Runs the filters of plugins, each within its deadline. */
export interface Filters {
  /**
   * Whether any plugin filters this in the environment. A process checks it before every write, so it does not wait.
   */
  has(name: WriteFilter, environment: { readonly id: string; readonly slug: string }): boolean;
  /**
   * Runs the filters in order; the first rejection or hold stops. A filter that fails or passes its deadline counts as
   * its `onError` says. Never rejects.
   *
   * @param check throws if a comment with changed fields is not valid; such a change counts as a failure of its filter
   */
  run<N extends WriteFilter>(
    name: N,
    environment: { readonly id: string; readonly slug: string },
    actor: FilterActor,
    payload: WriteFilterTypes[N]['payload'],
    check?: (comment: DraftComment) => void,
  ): Promise<FilterOutcome>;
}

/**
 * Resolves with whether the filters of plugins let the inbox of a user show a notification. It is called before the
 * notification is stored, and again for the same notification if storing it is retried. Never rejects.
 */
export type InboxFilter = (
  environment: { readonly id: string; readonly slug: string },
  notification: Notification,
) => Promise<boolean>;
