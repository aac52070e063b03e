import * as Type from 'typebox';
import type { TSchema } from 'typebox';
import { type EventType, eventTypes } from '../../model/event.ts';
import { dateTime } from './field-schemas.ts';

/** The schemas of the records in events, as the API returns them. */
export interface EventRecords {
  readonly Thread: TSchema;
  readonly Comment: TSchema;
  readonly Reaction: TSchema;
  readonly User: TSchema;
  readonly Notification: TSchema;
}

const userOrNull = (description: string) => Type.Union([Type.String(), Type.Null()], { description });

/** What all events of the moderation queue contain. */
const notice = {
  itemId: Type.String({ description: 'Item of the moderation queue.' }),
  kind: Type.Union([Type.Literal('comment'), Type.Literal('thread'), Type.Literal('edit'), Type.Literal('report')]),
  roomId: Type.String(),
  threadId: Type.String(),
  commentId: Type.String(),
  userId: Type.String({ description: 'The author, who receives the event, as moderators do.' }),
};

const stateChange = Type.Object({
  roomId: Type.String(),
  version: Type.Integer({ minimum: 0 }),
  sizeBytes: Type.Integer({ minimum: 0, description: '0 after the state was cleared.' }),
  updatedAt: dateTime('Time of the change.'),
  updatedBy: userOrNull('The user who changed the state; null for a backend.'),
});

/**
 * The schema of `data` by type: the record as the API returns it, only ids after a deletion, and no bytes of a shared
 * state.
 */
function dataOf({ Thread, Comment, Reaction, User, Notification }: EventRecords): Readonly<Record<EventType, TSchema>> {
  return {
    'thread.created': Type.Object({ thread: Thread, comment: Comment }),
    'thread.updated': Thread,
    'thread.resolved': Thread,
    'thread.reopened': Thread,
    'thread.deleted': Type.Object({ threadId: Type.String() }),
    'comment.created': Comment,
    'comment.updated': Comment,
    'comment.deleted': Type.Object({
      commentId: Type.String(),
      threadId: Type.String(),
      threadDeleted: Type.Boolean({ description: 'Whether it was the last comment; `thread.deleted` follows then.' }),
    }),
    'reaction.created': Reaction,
    'reaction.deleted': Type.Object({
      reactionId: Type.String(),
      commentId: Type.String(),
      threadId: Type.String(),
      userId: Type.String(),
      emoji: Type.String(),
    }),
    'user.updated': User,
    'p2p.state.updated': stateChange,
    'p2p.state.cleared': stateChange,
    'notification.created': Type.Intersect([
      Notification,
      Type.Object({
        inApp: Type.Boolean({
          description:
            'False if the settings of the user, or a plugin, keep it out of the inbox; then only backends receive the event.',
        }),
      }),
    ]),
    'notification.read': Type.Object({
      userId: Type.String(),
      ids: Type.Array(Type.String(), { description: 'Ids of the notifications.' }),
      readAt: dateTime('When they were marked as read.'),
    }),
    'moderation.held': Type.Object({
      ...notice,
      comment: Comment,
      thread: Type.Union([Thread, Type.Null()], {
        description: 'The held thread of which it is the first comment; null for any other kind.',
      }),
      replaces: Type.Union([Type.String(), Type.Null()], {
        description: 'The item whose place this one takes, because held content was changed; null if there is none.',
      }),
    }),
    'moderation.reported': Type.Object({
      ...notice,
      comment: Comment,
      reportCount: Type.Integer({ minimum: 1, description: 'How many users have reported it.' }),
    }),
    'moderation.approved': Type.Object({ ...notice, decidedAt: dateTime('Time of the decision.') }),
    'moderation.rejected': Type.Object({
      ...notice,
      cause: Type.Union(
        [Type.Literal('moderator'), Type.Literal('withdrawn'), Type.Literal('replaced'), Type.Literal('deleted')],
        {
          description:
            'A moderator rejected it, its author or a backend withdrew it, a later edit was published, or what it belongs to was deleted.',
        },
      ),
      reason: Type.String({
        description:
          'The reason that the moderator gave, or that what it belongs to was deleted; empty for any other cause.',
      }),
      decidedAt: dateTime('Time of the decision.'),
    }),
  };
}

/** The schema of each durable event by its name in the OpenAPI document, such as `ThreadCreatedEvent`. */
export function eventSchemas(records: EventRecords): Readonly<Record<string, TSchema>> {
  const data = dataOf(records);
  return Object.fromEntries(eventTypes.map((type) => [eventName(type), envelope(type, data[type])]));
}

/** The schema of any durable event, with `type` as discriminator. */
export function anyEvent(schemas: Readonly<Record<string, TSchema>>): TSchema {
  const mapping = Object.fromEntries(eventTypes.map((type) => [type, `#/components/schemas/${eventName(type)}`]));
  return Type.Union(Object.values(schemas), { discriminator: { propertyName: 'type', mapping } });
}

/** The name of the schema of an event. */
export function eventName(type: EventType): string {
  const words = type.split('.').map((word) => word.slice(0, 1).toUpperCase() + word.slice(1));
  return `${words.join('')}Event`;
}

function envelope(type: EventType, data: TSchema): TSchema {
  return Type.Object({
    type: Type.Literal(type),
    seq: Type.Integer({ minimum: 1, description: 'Position in the event stream of the environment.' }),
    eventId: Type.String({ description: 'Stays the same if the event is delivered again.' }),
    at: dateTime('Time of the change.'),
    roomId: Type.Optional(Type.String()),
    threadId: Type.Optional(Type.String()),
    userId: Type.Optional(
      Type.String({
        description:
          'Present if only this user, and backends, receive the event; one about moderation also reaches moderators.',
      }),
    ),
    actor: Type.Object({
      userId: userOrNull('The user; null if a backend acted without a user.'),
      via: Type.Union([Type.Literal('rest'), Type.Literal('ws'), Type.Literal('cli')]),
    }),
    data,
  });
}
