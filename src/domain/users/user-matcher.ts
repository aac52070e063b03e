import { foldText } from '../../lib/fold-text.ts';
import { hasMetadata } from '../../model/metadata.ts';
import type { User } from '../../model/user.ts';
import type { Filters } from '../lists/list-query.ts';

/**
 * Whether a user passes the filters of a list. `q` is compared as `foldText` folds texts, which is done once for the
 * list.
 */
export function userMatcher({ q, seenSince, kind, metadata }: Readonly<Filters>): (user: User) => boolean {
  const text = q === undefined ? undefined : foldText(q);
  return (user) => {
    if (!hasMetadata(user.metadata, metadata)) return false;
    if (kind !== undefined && user.kind !== kind) return false;
    if (seenSince !== undefined && (user.lastSeenAt === null || user.lastSeenAt < seenSince)) return false;
    return (
      text === undefined ||
      foldText(user.userId).includes(text) ||
      (user.name !== null && foldText(user.name).includes(text))
    );
  };
}
