import Type, { type TSchema } from 'typebox';
import { createComment, deleteComment, editComment } from '../../domain/comments/comments.ts';
import type { UserActor } from '../../domain/access/actor.ts';
import type { Context } from '../../domain/context.ts';
import { addReaction, removeReaction } from '../../domain/comments/reactions.ts';
import { createThread, setResolved } from '../../domain/comments/threads.ts';
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
  ['thread.create', async (ctx, actor, data) => (await createThread(ctx, actor, read(roomInput, data).roomId, data, null)).body],
  ['thread.resolve', (ctx, actor, data) => setResolved(ctx, actor, read(threadInput, data).threadId, true)],
  ['thread.reopen', (ctx, actor, data) => setResolved(ctx, actor, read(threadInput, data).threadId, false)],
  ['comment.create', async (ctx, actor, data) => (await createComment(ctx, actor, read(threadInput, data).threadId, data, null)).body],
  ['comment.update', (ctx, actor, data) => editComment(ctx, actor, read(commentInput, data).commentId, data)],
  ['comment.delete', (ctx, actor, data) => deleteComment(ctx, actor, read(commentInput, data).commentId)],
  ['reaction.add', async (ctx, actor, data) => (await addReaction(ctx, actor, read(commentInput, data).commentId, data, null)).body],
  ['reaction.remove', (ctx, actor, data) => removeReaction(ctx, actor, read(reactionInput, data).reactionId)],
]);

function read<S extends TSchema>(input: InputSchema<S>, data: unknown) {
  return validate(input, data ?? {}, 'data');
}
