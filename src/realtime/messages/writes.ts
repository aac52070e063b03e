import Type, { type TSchema } from 'typebox';
import { createComment, deleteComment, editComment } from '../../domain/comments/comments.ts';
import type { Context, UserActor } from '../../domain/context.ts';
import { addReaction, removeReaction } from '../../domain/comments/reactions.ts';
import { createThread, setResolved } from '../../domain/comments/threads.ts';
import { InputSchema, validate } from '../../domain/input/validate.ts';

/** Does one kind of write for a user. Resolves with the JSON text that REST answers the same with. */
export type Write = (ctx: Context, actor: UserActor, data: unknown) => Promise<string>;

const inRoom = new InputSchema(Type.Object({ roomId: Type.String({ description: 'The room that the thread is for.' }) }));
const ofThread = new InputSchema(Type.Object({ threadId: Type.String({ description: 'The thread that this is about.' }) }));
const ofReaction = new InputSchema(Type.Object({ reactionId: Type.String({ description: 'The reaction that this is about.' }) }));
const ofComment = new InputSchema(Type.Object({ commentId: Type.String({ description: 'The comment that this is about.' }) }));

/**
 * What browsers may write (docs/realtime.md, "Writing"), by the type of the message: the same functions, rules and answers as REST, with
 * the ids of the path and the body together in `data`. The author is always the user of the token.
 */
export const writes: ReadonlyMap<string, Write> = new Map<string, Write>([
  ['thread.create', async (ctx, actor, data) => (await createThread(ctx, actor, read(inRoom, data).roomId, data, null)).body],
  ['thread.resolve', (ctx, actor, data) => setResolved(ctx, actor, read(ofThread, data).threadId, true)],
  ['thread.reopen', (ctx, actor, data) => setResolved(ctx, actor, read(ofThread, data).threadId, false)],
  ['comment.create', async (ctx, actor, data) => (await createComment(ctx, actor, read(ofThread, data).threadId, data, null)).body],
  ['comment.update', (ctx, actor, data) => editComment(ctx, actor, read(ofComment, data).commentId, data)],
  ['comment.delete', (ctx, actor, data) => deleteComment(ctx, actor, read(ofComment, data).commentId)],
  ['reaction.add', async (ctx, actor, data) => (await addReaction(ctx, actor, read(ofComment, data).commentId, data, null)).body],
  ['reaction.remove', (ctx, actor, data) => removeReaction(ctx, actor, read(ofReaction, data).reactionId)],
]);

function read<S extends TSchema>(input: InputSchema<S>, data: unknown) {
  return validate(input, data ?? {}, 'data');
}
