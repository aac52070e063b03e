import type { FilterOutcome, Filters } from '../../src/ports/filters.ts';

/** The text that `holdingFilters` hold. */
export const HELD_TEXT = 'hold me 4711';

/** Filters that hold comments and threads whose text contains `HELD_TEXT`. */
export const holdingFilters: Filters = {
  has: (name) => name === 'comment.create' || name === 'comment.update' || name === 'thread.create',
  run: (_name, _environment, _actor, payload) => {
    const { comment } = payload as { comment?: { body: string } };
    const outcome: FilterOutcome =
      comment?.body.includes(HELD_TEXT) === true
        ? { outcome: 'hold', plugin: 'rules', reason: 'it says so', fields: {} }
        : { outcome: 'pass', fields: {} };
    return Promise.resolve(outcome);
  },
};
