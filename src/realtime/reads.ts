import Type, { type TSchema } from 'typebox';
import type { Context, UserActor } from '../domain/context.ts';
import { getRoom } from '../domain/rooms.ts';
import { getThread } from '../domain/threads.ts';
import { InputSchema, validate } from '../domain/validate.ts';
import { CollabError } from '../errors.ts';
import { MAX_ASKED_BYTES } from './line.ts';

/** Reads one thing for a user. Resolves with the JSON text that REST answers the same with. */
export type Read = (ctx: Context, actor: UserActor, data: unknown) => Promise<string>;

const ofRoom = new InputSchema(
  Type.Object({
    roomId: Type.String({ description: 'The room to read.' }),
    includeComments: Type.Optional(Type.Boolean({ description: 'Adds `comments` to each thread.' })),
  }),
);
const ofThread = new InputSchema(Type.Object({ threadId: Type.String({ description: 'The thread to read.' }) }));

/** What browsers may read, by the type of the message: they have no other way, for REST takes secret keys. */
export const reads: ReadonlyMap<string, Read> = new Map<string, Read>([
  [
    'room.get',
    async (ctx, actor, data) => {
      const { roomId, includeComments = false } = read(ofRoom, data);
      return fitting(await getRoom(ctx, actor, roomId, { includeComments }), 'The room', 'leave out includeComments, and get the comments with thread.get');
    },
  ],
  ['thread.get', async (ctx, actor, data) => fitting(await getThread(ctx, actor, read(ofThread, data).threadId), 'The thread', 'read it over REST')],
]);

function read<S extends TSchema>(input: InputSchema<S>, data: unknown) {
  return validate(input, data ?? {}, 'data');
}

function fitting(text: string, what: string, advice: string): string {
  if (Buffer.byteLength(text) < MAX_ASKED_BYTES) return text;
  throw new CollabError('payload_too_large', `${what} is larger than a message may be (${MAX_ASKED_BYTES} bytes): ${advice}`);
}
