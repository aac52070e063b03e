import * as Type from 'typebox';
import { type Comment, CommentCreateSchema } from '../../model/comment.ts';
import type { Limits } from '../../model/environments/limits.ts';
import type { Metadata } from '../../model/metadata.ts';
import type { Position } from '../../model/thread.ts';
import { checkAttachmentIds } from '../files/attachments.ts';
import { checkBody, checkId, checkMentions, checkMetadata } from '../input/bounds.ts';
import type { Actor } from '../access/actor.ts';
import { InputSchema, validate } from '../input/validate.ts';

const createByBackend = new InputSchema(CommentCreateSchema);
const createByUser = new InputSchema(Type.Omit(CommentCreateSchema, ['userId']));

/** A validated comment that is not written yet. */
export interface CommentDraft {
  /** The id that the client chose, if any. */
  readonly id: string | undefined;
  readonly userId: string;
  readonly body: string;
  readonly mentions: readonly string[];
  /** Uploads to link; undefined if the client gave none. */
  readonly attachmentIds: readonly string[] | undefined;
  readonly metadata: Metadata;
}

/** A validated thread that is not written yet. */
export interface ThreadDraft {
  /** The id that the client chose, if any. */
  readonly id: string | undefined;
  readonly position: Position | null;
  /** The first comment. Its metadata become those of the thread. */
  readonly first: CommentDraft;
}

/**
 * Parses the body of a create-comment request. For a user the author is the user, whatever the input says; a backend
 * names the author. Throws `invalid_request`, `invalid_json`.
 */
export function parseCommentDraft(actor: Actor, input: unknown, limits: Limits): CommentDraft {
  if (actor.kind === 'user')
    return validateCommentDraft({ ...validate(createByUser, input), userId: actor.userId }, limits);
  return validateCommentDraft(validate(createByBackend, input), limits);
}

/** Checks fields that have passed their schema against the limits of the environment. Throws `invalid_request`. */
export function validateCommentDraft(
  fields: Partial<CommentDraft> & Pick<CommentDraft, 'userId' | 'body'>,
  limits: Limits,
): CommentDraft {
  const { id, userId, body, mentions = [], metadata = {} } = fields;
  const attachmentIds =
    fields.attachmentIds === undefined ? undefined : checkAttachmentIds(fields.attachmentIds, limits);
  checkId('userId', userId, limits);
  checkBody(body, limits, attachmentIds?.length);
  checkMetadata(metadata, limits);
  return { id, userId, body, mentions: checkMentions(mentions, limits), attachmentIds, metadata };
}

/** The comment made of a draft, without attachments: these are linked afterwards, which needs the comment's id. */
export function commentOf(draft: CommentDraft, id: string, threadId: string, createdAt: string): Comment {
  return {
    id,
    threadId,
    userId: draft.userId,
    body: draft.body,
    mentions: draft.mentions,
    attachments: [],
    reactions: [],
    metadata: draft.metadata,
    createdAt,
    editedAt: null,
  };
}
