import Type, { type TSchema } from 'typebox';
import type { Context, UserActor } from '../../domain/context.ts';
import { parseListQuery } from '../../domain/lists/list-query.ts';
import type { TextBound } from '../../domain/lists/paging.ts';
import { getRoom } from '../../domain/rooms/rooms.ts';
import { getThread } from '../../domain/comments/threads.ts';
import { InputSchema, validate } from '../../domain/input/validate.ts';
import { CollabError } from '../../model/errors.ts';
import { MAX_REPLY_BYTES } from '../socket/socket-writer.ts';

/** Reads one thing for a user. Resolves with the JSON text that REST answers the same with. */
export type Read = (ctx: Context, actor: UserActor, data: unknown) => Promise<string>;

const ofRoom = new InputSchema(
  Type.Object({
    roomId: Type.String({ description: 'The room to read.' }),
    includeComments: Type.Optional(Type.Boolean({ description: 'Adds `comments` to each thread.' })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, description: 'At most so many threads, with `nextCursor` where more remain.' })),
    cursor: Type.Optional(Type.String({ description: 'The `nextCursor` of the page before.' })),
  }),
);
const ofThread = new InputSchema(Type.Object({ threadId: Type.String({ description: 'The thread to read.' }) }));

const wholeRoom = bound('The room', 'ask for fewer threads at a time with limit, or leave out includeComments and get the comments with thread.get');
const wholeThread = bound('The thread', 'read it over REST');
const plain = parseListQuery(new URLSearchParams(), 'threads');

/** What browsers may read, by the type of the message: they have no other way, for REST takes secret keys. */
export const reads: ReadonlyMap<string, Read> = new Map<string, Read>([
  [
    'room.get',
    async (ctx, actor, data) => {
      const { roomId, includeComments = false, limit = null, cursor = null } = read(ofRoom, data);
      const { text } = await getRoom(ctx, actor, roomId, { includeComments, query: { ...plain, limit, cursor }, bound: wholeRoom });
      return fitting(text, wholeRoom);
    },
  ],
  ['thread.get', async (ctx, actor, data) => fitting(await getThread(ctx, actor, read(ofThread, data).threadId, wholeThread), wholeThread)],
]);

function read<S extends TSchema>(input: InputSchema<S>, data: unknown) {
  return validate(input, data ?? {}, 'data');
}

function bound(what: string, advice: string): TextBound {
  const tooLong = () => new CollabError('payload_too_large', `${what} is larger than a message may be (${MAX_REPLY_BYTES} bytes): ${advice}`);
  return { most: MAX_REPLY_BYTES, tooLong };
}

/** The text itself. Throws the refusal of the bound when it has more bytes: most are characters of one. */
function fitting(text: string, { most, tooLong }: TextBound): string {
  if (Buffer.byteLength(text) >= most) throw tooLong();
  return text;
}
