import * as Type from 'typebox';
import type { TObject, TSchema } from 'typebox';
import { createComment, deleteComment, editComment } from '../../domain/comments/comments.ts';
import type { UserActor } from '../../domain/access/actor.ts';
import type { Context } from '../../domain/context.ts';
import { addReaction, removeReaction } from '../../domain/comments/reactions.ts';
import { markRead } from '../../domain/notifications/inbox.ts';
import { putNotificationSettings } from '../../domain/notifications/settings.ts';
import { changeSubscription } from '../../domain/notifications/subscriptions.ts';
import { createThread, patchThread, setResolved } from '../../domain/comments/threads.ts';
import { reportComment } from '../../domain/moderation/reports.ts';
import { CommentCreateSchema, CommentPatchSchema } from '../../model/comment.ts';
import { ReportCreateSchema } from '../../model/moderation.ts';
import { NotificationSettingsPutSchema, NotificationsReadSchema } from '../../model/notification.ts';
import { ReactionCreateSchema } from '../../model/reaction.ts';
import { ThreadCreateSchema, ThreadPatchSchema } from '../../model/thread.ts';
import { InputSchema, validate } from '../../domain/input/validate.ts';

/** Handles one kind of write of a user. Resolves with the same JSON text as the REST response. */
export type Write = (ctx: Context, actor: UserActor, data: unknown) => Promise<string>;

const roomInput = new InputSchema(Type.Object({ roomId: Type.String({ description: 'The room of the new thread.' }) }));
const threadInput = new InputSchema(Type.Object({ threadId: Type.String({ description: 'The thread.' }) }));
const reactionInput = new InputSchema(Type.Object({ reactionId: Type.String({ description: 'The reaction.' }) }));
const commentInput = new InputSchema(Type.Object({ commentId: Type.String({ description: 'The comment.' }) }));

/**
 * The writes of browsers (docs/realtime.md, "Writing"), by type of the message. They use the same functions, rules and
 * responses as REST; `data` combines the ids of the path with the body. The author is always the user of the token.
 */
export const writes: ReadonlyMap<string, Write> = new Map<string, Write>([
  [
    'thread.create',
    async (ctx, actor, data) => (await createThread(ctx, actor, read(roomInput, data).roomId, data, null)).body,
  ],
  ['thread.update', (ctx, actor, data) => patchThread(ctx, actor, read(threadInput, data).threadId, data)],
  ['thread.resolve', (ctx, actor, data) => setResolved(ctx, actor, read(threadInput, data).threadId, true)],
  ['thread.reopen', (ctx, actor, data) => setResolved(ctx, actor, read(threadInput, data).threadId, false)],
  [
    'comment.create',
    async (ctx, actor, data) => (await createComment(ctx, actor, read(threadInput, data).threadId, data, null)).body,
  ],
  ['comment.update', (ctx, actor, data) => editComment(ctx, actor, read(commentInput, data).commentId, data)],
  ['comment.delete', (ctx, actor, data) => deleteComment(ctx, actor, read(commentInput, data).commentId)],
  [
    'comment.report',
    async (ctx, actor, data) => (await reportComment(ctx, actor, read(commentInput, data).commentId, data, null)).body,
  ],
  [
    'reaction.add',
    async (ctx, actor, data) => (await addReaction(ctx, actor, read(commentInput, data).commentId, data, null)).body,
  ],
  ['notifications.read', async (ctx, actor, data) => (await markRead(ctx, actor, actor.userId, data ?? {}, null)).body],
  ['notification-settings.put', (ctx, actor, data) => putNotificationSettings(ctx, actor, actor.userId, data ?? {})],
  ...(['subscribe', 'unsubscribe', 'mute'] as const).map((action): [string, Write] => [
    `thread.${action}`,
    async (ctx, actor, data) =>
      (await changeSubscription(ctx, actor, read(threadInput, data).threadId, { action }, null)).body,
  ]),
  ['reaction.remove', (ctx, actor, data) => removeReaction(ctx, actor, read(reactionInput, data).reactionId)],
]);

/** The schema of `data` of each write, by type. */
export const writeSchemas: Readonly<Record<string, TSchema>> = {
  'thread.create': combined(roomInput.schema, ThreadCreateSchema),
  'thread.update': combined(threadInput.schema, ThreadPatchSchema),
  'thread.resolve': threadInput.schema,
  'thread.reopen': threadInput.schema,
  'comment.create': combined(threadInput.schema, CommentCreateSchema),
  'comment.update': combined(commentInput.schema, CommentPatchSchema),
  'comment.delete': commentInput.schema,
  'comment.report': combined(commentInput.schema, ReportCreateSchema),
  'reaction.add': combined(commentInput.schema, ReactionCreateSchema),
  'notifications.read': NotificationsReadSchema,
  'notification-settings.put': NotificationSettingsPutSchema,
  'thread.subscribe': threadInput.schema,
  'thread.unsubscribe': threadInput.schema,
  'thread.mute': threadInput.schema,
  'reaction.remove': reactionInput.schema,
};

/** The ids of the path with the fields of the body, except the author, who is always the user of the token. */
function combined(ids: TObject, body: TObject): TSchema {
  const { userId: _, ...fields } = body.properties;
  return Type.Object({ ...ids.properties, ...fields });
}

function read<S extends TSchema>(input: InputSchema<S>, data: unknown) {
  return validate(input, data ?? {}, 'data');
}
