import Type from 'typebox';
import { type Comment, CommentCreateSchema } from '../../model/comment.ts';
import type { Limits } from '../../model/limits.ts';
import type { Metadata } from '../../model/metadata.ts';
import { checkAttachmentIds } from '../files/attachments.ts';
import { checkBody, checkId, checkMentions, checkMetadata } from '../input/bounds.ts';
import type { Actor } from '../access/actor.ts';
import { InputSchema, validate } from '../input/validate.ts';

const createByBackend = new InputSchema(CommentCreateSchema);
const createByUser = new InputSchema(Type.Omit(CommentCreateSchema, ['userId']));

/** A comment that somebody wants to write, checked against every bound. */
export interface CommentDraft {
  /** The id that the client chose, if it did. */
  readonly id: string | undefined;
  readonly userId: string;
  readonly body: string;
  readonly mentions: readonly string[];
  /** Uploads to link; undefined for none. */
  readonly attachmentIds: readonly string[] | undefined;
  readonly metadata: Metadata;
}

/**
 * Reads the body of a create-comment request. The author is the user of the token whatever the input says; a backend
 * names one. Throws `invalid_request`, `invalid_json`.
 */
export function parseCommentDraft(actor: Actor, input: unknown, limits: Limits): CommentDraft {
  if (actor.kind === 'user') return validateCommentDraft({ ...validate(createByUser, input), userId: actor.userId }, limits);
  return validateCommentDraft(validate(createByBackend, input), limits);
}

/** The draft in fields that have passed their schema. Throws `invalid_request` for a bound of the environment. */
export function validateCommentDraft(fields: Partial<CommentDraft> & Pick<CommentDraft, 'userId' | 'body'>, limits: Limits): CommentDraft {
  const { id, userId, body, mentions = [], metadata = {} } = fields;
  const attachmentIds = fields.attachmentIds === undefined ? undefined : checkAttachmentIds(fields.attachmentIds, limits);
  checkId('userId', userId, limits);
  checkBody(body, limits, attachmentIds?.length);
  checkMetadata(metadata, limits);
  return { id, userId, body, mentions: checkMentions(mentions, limits), attachmentIds, metadata };
}

/** The comment that a draft becomes at a time; its attachments are linked after, since they need its id. */
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
