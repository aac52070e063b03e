import * as Type from 'typebox';
import type { ListKind } from '../../domain/lists/list-query.ts';
import type { Parameter } from '../api/route.ts';
import { dateTime } from './field-schemas.ts';

const text = (description: string) => Type.String({ minLength: 1, maxLength: 256, description });

const common: readonly Parameter[] = [
  {
    name: 'limit',
    schema: Type.Integer({
      minimum: 1,
      maximum: 1000,
      description: 'The most items to return. Without it, the whole list is returned, up to 10 000 items.',
    }),
  },
  {
    name: 'cursor',
    schema: Type.String({ description: 'The `nextCursor` of the previous page, with the same filters and order.' }),
  },
  {
    name: 'sort',
    schema: Type.Union([Type.Literal('createdAt'), Type.Literal('updatedAt')], {
      default: 'createdAt',
      description: 'Pages ordered by updatedAt may repeat items.',
    }),
  },
  {
    name: 'order',
    schema: Type.Union([Type.Literal('asc'), Type.Literal('desc')], {
      description: 'When absent: asc for comments and moderation, otherwise desc.',
    }),
  },
];

/** Sent as `metadata.<key>=<value>`, for one key or several. */
const metadata: Parameter = {
  name: 'metadata',
  schema: Type.Record(Type.String({ pattern: '^metadata\\..+$' }), Type.String({ maxLength: 256 }), {
    description: 'Items whose metadata has this value under this key: `metadata.<key>=<value>`.',
  }),
};

const own: Readonly<Record<ListKind, readonly Parameter[]>> = {
  threads: [
    {
      name: 'resolved',
      schema: Type.Boolean({ description: 'True: only resolved threads; false: only open threads.' }),
    },
    { name: 'userId', schema: text('Author of the first comment.') },
    { name: 'participantId', schema: text('A user who commented.') },
    { name: 'mentions', schema: text('A user who is mentioned.') },
    { name: 'createdSince', schema: dateTime('Created at this time or later.') },
    { name: 'updatedSince', schema: dateTime('Changed at this time or later.') },
    metadata,
  ],
  comments: [
    { name: 'userId', schema: text('Author.') },
    { name: 'mentions', schema: text('A user who is mentioned.') },
    { name: 'createdSince', schema: dateTime('Written at this time or later.') },
    {
      name: 'updatedSince',
      schema: dateTime(
        'Written or edited at this time or later. A change of the metadata alone is no edit: `GET /events` has it.',
      ),
    },
    metadata,
  ],
  rooms: [
    { name: 'updatedSince', schema: dateTime('Changed at this time or later.') },
    { name: 'prefix', schema: text('The room id starts with this.') },
    metadata,
  ],
  users: [
    { name: 'q', schema: text('The id or the name contains this text, ignoring case, accents and forms of Unicode.') },
    { name: 'seenSince', schema: dateTime('Connected at this time or later.') },
    {
      name: 'kind',
      schema: Type.Union([Type.Literal('user'), Type.Literal('bot')], {
        description: '`user`: people; `bot`: programs.',
      }),
    },
    metadata,
  ],
  moderation: [
    {
      name: 'state',
      schema: Type.Union([Type.Literal('held'), Type.Literal('reported'), Type.Literal('decided')], {
        default: 'held',
        description:
          '`held`: content that waits for approval; `reported`: comments that users reported; `decided`: what was decided within 30 days.',
      }),
    },
    { name: 'userId', schema: text('Author of the content.') },
    { name: 'roomId', schema: Type.String({ minLength: 1, maxLength: 512, description: 'The room of the content.' }) },
  ],
  notifications: [
    {
      name: 'unread',
      schema: Type.Boolean({ description: 'True: only unread notifications; false: only those that were read.' }),
    },
  ],
};

/** The query parameters of a list. */
export function listParameters(list: ListKind): readonly Parameter[] {
  // An inbox has one order, since the other would need all of it in memory.
  return [...(list === 'notifications' ? common.filter(({ name }) => name !== 'sort') : common), ...own[list]];
}
