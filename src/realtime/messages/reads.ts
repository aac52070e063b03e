import * as Type from 'typebox';
import type { TSchema } from 'typebox';
import type { UserActor } from '../../domain/access/actor.ts';
import type { Context } from '../../domain/context.ts';
import { parseListQuery } from '../../domain/lists/list-query.ts';
import { listNotifications } from '../../domain/notifications/inbox.ts';
import { getNotificationSettings } from '../../domain/notifications/settings.ts';
import { getSubscription } from '../../domain/notifications/subscriptions.ts';
import type { TextBound } from '../../domain/lists/paging.ts';
import { getRoom } from '../../domain/rooms/rooms.ts';
import { getThread } from '../../domain/comments/threads.ts';
import { withUsers } from '../../domain/users/included-users.ts';
import { lookUpUsers } from '../../domain/users/lookup.ts';
import { InputSchema, validate } from '../../domain/input/validate.ts';
import { CollabError } from '../../model/errors.ts';
import { MAX_REPLY_BYTES } from '../socket/socket-writer.ts';

/** Handles one read of a user. Resolves with the same JSON text as the REST response. */
export type Read = (ctx: Context, actor: UserActor, data: unknown) => Promise<string>;

const includeUsers = Type.Optional(
  Type.Boolean({
    description: 'Adds `users`: names and pictures of authors, mentioned users and those who reacted, by id.',
  }),
);
const roomInput = new InputSchema(
  Type.Object({
    roomId: Type.String({ description: 'The room to read.' }),
    includeComments: Type.Optional(Type.Boolean({ description: 'Adds `comments` to each thread.' })),
    includeUsers,
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000,
        description: 'The most threads to return; `nextCursor` is present if more remain.',
      }),
    ),
    cursor: Type.Optional(Type.String({ description: 'The `nextCursor` of the previous page.' })),
  }),
);
const threadInput = new InputSchema(
  Type.Object({ threadId: Type.String({ description: 'The thread to read.' }), includeUsers }),
);
const lookupInput = new InputSchema(
  Type.Object({
    ids: Type.Optional(Type.Array(Type.String(), { description: 'Ids of users, at most 100.' })),
    q: Type.Optional(
      Type.String({
        description:
          'The name, a later word of it, or the id begins with this text, ignoring case, accents and forms of ' +
          'Unicode; an empty one finds all, by name.',
      }),
    ),
    roomId: Type.Optional(
      Type.String({
        description: 'With `q`: only users of this room. Required for a token that is confined to rooms.',
      }),
    ),
    limit: Type.Optional(Type.Integer({ description: 'With `q`: the most users to return, 1 to 100.' })),
  }),
);

const inboxInput = new InputSchema(
  Type.Object({
    unread: Type.Optional(Type.Boolean({ description: 'True: only unread ones; false: only those that were read.' })),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 200,
        description: 'The most notifications to return, 50 by default; `nextCursor` is present if more remain.',
      }),
    ),
    cursor: Type.Optional(Type.String({ description: 'The `nextCursor` of the previous page.' })),
  }),
);

const FEWER = 'ask for fewer threads at a time with limit';
const roomBound = bound('The room', FEWER);
const roomWithCommentsBound = bound(
  'The room',
  `${FEWER}, or leave out includeComments and get the comments with thread.get`,
);
const threadBound = bound('The thread', 'a backend can read it in pages with GET /threads/:threadId/comments');
const defaultQuery = parseListQuery(new URLSearchParams(), 'threads');
const inboxQuery = parseListQuery(new URLSearchParams(), 'notifications');

/**
 * The reads of browsers, by type of the message. Browsers have no other way to read, because REST requires secret keys.
 */
export const reads: ReadonlyMap<string, Read> = new Map<string, Read>([
  [
    'room.get',
    async (ctx, actor, data) => {
      const {
        roomId,
        includeComments = false,
        includeUsers: withNames = false,
        limit = null,
        cursor = null,
      } = read(roomInput, data);
      const tooLong = includeComments ? roomWithCommentsBound : roomBound;
      const room = await getRoom(ctx, actor, roomId, {
        includeComments,
        query: { ...defaultQuery, limit, cursor },
        emptyIfUnused: true,
        bound: tooLong,
      });
      return requireFit(withNames ? await withUsers(ctx, actor, room) : room.text, tooLong);
    },
  ],
  [
    'thread.get',
    async (ctx, actor, data) => {
      const { threadId, includeUsers: withNames = false } = read(threadInput, data);
      const text = await getThread(ctx, actor, threadId, threadBound);
      return requireFit(withNames ? await withUsers(ctx, actor, text) : text, threadBound);
    },
  ],
  ['users.lookup', async (ctx, actor, data) => lookUpUsers(ctx, actor, read(lookupInput, data))],
  [
    'notifications.list',
    async (ctx, actor, data) => {
      const { unread, limit = 50, cursor = null } = read(inboxInput, data);
      const { text } = await listNotifications(ctx, actor, actor.userId, {
        ...inboxQuery,
        limit,
        cursor,
        filters: unread === undefined ? {} : { unread },
      });
      return Buffer.from(text).toString();
    },
  ],
  ['notification-settings.get', (ctx, actor) => getNotificationSettings(ctx, actor, actor.userId)],
  [
    'thread.subscription',
    (ctx, actor, data) => getSubscription(ctx, actor, actor.userId, read(threadInput, data).threadId),
  ],
]);

/** The schema of `data` of each read, by type; null for one without. */
export const readSchemas: Readonly<Record<string, TSchema | null>> = {
  'room.get': roomInput.schema,
  'thread.get': threadInput.schema,
  'users.lookup': lookupInput.schema,
  'notifications.list': inboxInput.schema,
  'notification-settings.get': null,
  'thread.subscription': Type.Object({ threadId: threadInput.schema.properties.threadId }),
};

function read<S extends TSchema>(input: InputSchema<S>, data: unknown) {
  return validate(input, data ?? {}, 'data');
}

function bound(what: string, advice: string): TextBound {
  const tooLong = () =>
    new CollabError(
      'payload_too_large',
      `${what} is larger than a message may be (${MAX_REPLY_BYTES} bytes): ${advice}`,
    );
  return { maxChars: MAX_REPLY_BYTES, tooLong };
}

/**
 * Returns the text. Throws the error of the bound if the text has too many bytes; the domain bounds only its
 * characters.
 */
function requireFit(text: string, { maxChars, tooLong }: TextBound): string {
  if (Buffer.byteLength(text) >= maxChars) throw tooLong();
  return text;
}
