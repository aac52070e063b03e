import { CollabError } from '../model/errors.ts';
import type { DraftComment, DraftPatch, FilterActor, WriteFilter, WriteFilterTypes } from '../model/filter.ts';
import type { Filters } from '../ports/filters.ts';
import type { Actor } from './access/actor.ts';
import type { Context } from './context.ts';

/** The plugin that holds a write for moderation, and why. */
export interface Hold {
  readonly plugin: string;
  /** Shown to moderators only. */
  readonly reason: string;
}

/** The result of filtering a comment or thread. */
export interface Filtered {
  /** The fields that they changed; valid together with the rest of the comment. */
  readonly fields: DraftPatch;
  /** Null if nothing holds it. */
  readonly hold: Hold | null;
}

/**
 * The filters of a context, if any of them filters this in the environment of the actor; otherwise undefined, so that a
 * write without filters does nothing else. Filters run outside of transactions: the transaction after them checks its
 * preconditions again.
 */
export function filtersFor(ctx: Context, actor: Actor, name: WriteFilter): Filters | undefined {
  const { filters } = ctx;
  return filters?.has(name, actor.environment) === true ? filters : undefined;
}

/**
 * Runs the filters of a comment or thread. Throws `content_rejected` or `invalid_request` if one rejects it.
 *
 * @param check throws if a changed comment is not valid
 */
export async function filterContent<N extends 'comment.create' | 'comment.update' | 'thread.create'>(
  filters: Filters,
  name: N,
  actor: Actor,
  payload: WriteFilterTypes[N]['payload'],
  check: (comment: DraftComment) => void,
): Promise<Filtered> {
  const decided = await filters.run(name, actor.environment, filterActor(actor), payload, check);
  if (decided.outcome === 'reject') throw rejection(decided);
  return {
    fields: decided.fields,
    hold: decided.outcome === 'hold' ? { plugin: decided.plugin, reason: decided.reason } : null,
  };
}

/**
 * Runs the filters of what cannot be changed or held, if there are any. Throws `content_rejected` or `invalid_request`
 * if one rejects it.
 */
export async function requirePassing<N extends WriteFilter>(
  ctx: Context,
  actor: Actor,
  name: N,
  payload: WriteFilterTypes[N]['payload'],
): Promise<void> {
  const decided = await filtersFor(ctx, actor, name)?.run(name, actor.environment, filterActor(actor), payload);
  if (decided?.outcome === 'reject') throw rejection(decided);
}

function filterActor(actor: Actor): FilterActor {
  return actor.kind === 'user'
    ? { kind: 'user', userId: actor.userId, role: actor.role }
    : { kind: 'backend', userId: null, role: null };
}

function rejection({ message, status }: { message: string; status: 400 | 403 }): CollabError {
  return new CollabError(status === 400 ? 'invalid_request' : 'content_rejected', message);
}
