import Type, { type TSchema } from 'typebox';
import type { UserActor } from '../../domain/access/actor.ts';
import type { Context } from '../../domain/context.ts';
import { parseListQuery } from '../../domain/lists/list-query.ts';
import type { TextBound } from '../../domain/lists/paging.ts';
import { getRoom } from '../../domain/rooms/rooms.ts';
import { getThread } from '../../domain/comments/threads.ts';
import { InputSchema, validate } from '../../domain/input/validate.ts';
import { CollabError } from '../../model/errors.ts';
import { MAX_REPLY_BYTES } from '../socket/socket-writer.ts';

/** Handles one read of a user. Resolves with the same JSON text as the REST response. */
export type Read = (ctx: Context, actor: UserActor, data: unknown) => Promise<string>;

const roomInput = new InputSchema(
  Type.Object({
    roomId: Type.String({ description: 'The room to read.' }),
    includeComments: Type.Optional(Type.Boolean({ description: 'Adds `comments` to each thread.' })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, description: 'The most threads to return; `nextCursor` is present if more remain.' })),
    cursor: Type.Optional(Type.String({ description: 'The `nextCursor` of the previous page.' })),
  }),
);
const threadInput = new InputSchema(Type.Object({ threadId: Type.String({ description: 'The thread to read.' }) }));

const roomBound = bound('The room', 'ask for fewer threads at a time with limit, or leave out includeComments and get the comments with thread.get');
const threadBound = bound('The thread', 'read it over REST');
const defaultQuery = parseListQuery(new URLSearchParams(), 'threads');

/** The reads of browsers, by type of the message. Browsers have no other way to read, because REST requires secret keys. */
export const reads: ReadonlyMap<string, Read> = new Map<string, Read>([
  [
    'room.get',
    async (ctx, actor, data) => {
      const { roomId, includeComments = false, limit = null, cursor = null } = read(roomInput, data);
      const { text } = await getRoom(ctx, actor, roomId, { includeComments, query: { ...defaultQuery, limit, cursor }, bound: roomBound });
      return requireFit(text, roomBound);
    },
  ],
  ['thread.get', async (ctx, actor, data) => requireFit(await getThread(ctx, actor, read(threadInput, data).threadId, threadBound), threadBound)],
]);

function read<S extends TSchema>(input: InputSchema<S>, data: unknown) {
  return validate(input, data ?? {}, 'data');
}

function bound(what: string, advice: string): TextBound {
  const tooLong = () => new CollabError('payload_too_large', `${what} is larger than a message may be (${MAX_REPLY_BYTES} bytes): ${advice}`);
  return { maxChars: MAX_REPLY_BYTES, tooLong };
}

/** Returns the text. Throws the error of the bound if the text has too many bytes; the domain bounds only its characters. */
function requireFit(text: string, { maxChars, tooLong }: TextBound): string {
  if (Buffer.byteLength(text) >= maxChars) throw tooLong();
  return text;
}
