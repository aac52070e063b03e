import * as Type from 'typebox';
import type { Static } from 'typebox';
import { attachmentIds } from './attachment.ts';
import { type Metadata, MetadataSchema } from './metadata.ts';

/** Where a thread is pinned on a page. */
export const PositionSchema = Type.Object({
  x: Type.Number({ minimum: 0, maximum: 1, description: 'Horizontal position, 0 to 1.' }),
  y: Type.Number({ minimum: 0, maximum: 1, description: 'Vertical position, 0 to 1.' }),
  selector: Type.Optional(
    Type.String({ description: 'CSS selector of the target element; at most 2 048 characters.' }),
  ),
  path: Type.Optional(Type.String({ description: 'DOM path to the target element; at most 2 048 characters.' })),
  quote: Type.Optional(
    Type.String({
      description:
        'Beginning of the text of the target element, to find it by when the selector fails; at most 2 048 characters.',
    }),
  ),
  quotePrefix: Type.Optional(
    Type.String({
      description:
        'Text before the target element, to choose among elements with the same quote; at most 2 048 characters.',
    }),
  ),
  quoteSuffix: Type.Optional(
    Type.String({ description: 'Text behind the target element, for the same purpose; at most 2 048 characters.' }),
  ),
  fingerprint: Type.Optional(
    Type.String({
      description: 'What else tells the target element from others, as the widget writes it; at most 2 048 characters.',
    }),
  ),
  elementOffsetX: Type.Optional(Type.Number({ description: 'Horizontal offset within the target element.' })),
  elementOffsetY: Type.Optional(Type.Number({ description: 'Vertical offset within the target element.' })),
  scrollX: Type.Optional(Type.Number({ description: 'Page scroll X when it was pinned.' })),
  scrollY: Type.Optional(Type.Number({ description: 'Page scroll Y when it was pinned.' })),
});
export type Position = Static<typeof PositionSchema>;

/** A thread as stored: the part that does not change with its comments. */
export interface ThreadRecord {
  readonly id: string;
  readonly roomId: string;
  readonly resolved: boolean;
  readonly position: Position | null;
  readonly metadata: Metadata;
  readonly userId: string;
  readonly createdAt: string;
  /** Time of the last change of the thread itself; `ThreadStats.updatedAt` may be later. */
  readonly updatedAt: string;
  readonly resolvedAt: string | null;
  readonly resolvedBy: string | null;
}

/**
 * The part of a thread that changes with its comments, stored separately so that comments do not conflict with each
 * other. Its size does not depend on the length of the thread; the participants are read from the comments.
 */
export interface ThreadStats {
  readonly commentCount: number;
  readonly updatedAt: string;
}

/** The stored text of thread stats. */
export function renderThreadStats({ commentCount, updatedAt }: ThreadStats): string {
  return `{"commentCount":${commentCount},"updatedAt":"${updatedAt}"}`;
}

/** Parses the text of `renderThreadStats`. Not with `JSON.parse`, because each new comment does this twice. */
export function parseThreadStats(text: string): ThreadStats {
  const comma = text.indexOf(',');
  return {
    commentCount: Number(text.slice('{"commentCount":'.length, comma)),
    updatedAt: text.slice(comma + ',"updatedAt":"'.length, -'"}'.length),
  };
}

/** The public view of a thread. */
export interface Thread {
  readonly id: string;
  readonly roomId: string;
  readonly resolved: boolean;
  readonly positionX: number | null;
  readonly positionY: number | null;
  readonly position: Position | null;
  readonly metadata: Metadata;
  readonly commentCount: number;
  readonly userId: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly resolvedAt: string | null;
  readonly resolvedBy: string | null;
  /** Only in what its author sees: the thread waits for a moderator. */
  readonly status?: 'held';
}

/** The public view of a thread, made of its record and stats. `updatedAt` is the later of their times. */
export function presentThread(record: ThreadRecord, stats: ThreadStats): Thread {
  return {
    id: record.id,
    roomId: record.roomId,
    resolved: record.resolved,
    positionX: record.position?.x ?? null,
    positionY: record.position?.y ?? null,
    position: record.position,
    metadata: record.metadata,
    commentCount: stats.commentCount,
    userId: record.userId,
    createdAt: record.createdAt,
    updatedAt: stats.updatedAt > record.updatedAt ? stats.updatedAt : record.updatedAt,
    resolvedAt: record.resolvedAt,
    resolvedBy: record.resolvedBy,
  };
}

/** An id that a client chooses when it creates a thread or comment. */
export const ClientIdSchema = Type.String({
  pattern: '^[A-Za-z0-9_-]{8,64}$',
  description: 'An id chosen by the client: 8 to 64 of A–Z a–z 0–9 _ -.',
});

/** The user for whom a backend changes something, in the body of its request. */
export const ActsForSchema = Type.Optional(
  Type.String({
    description:
      'The user who makes the change, for events and `resolvedBy`; must be a known user. Without it, the backend itself.',
  }),
);

/** The body of a create-thread request. */
export const ThreadCreateSchema = Type.Object({
  id: Type.Optional(ClientIdSchema),
  userId: Type.String({ description: 'Author; must be a known user.' }),
  body: Type.String({
    description: 'Text of the first comment, 1 to 10 000 characters; may be empty with an attachment.',
  }),
  mentions: Type.Optional(Type.Array(Type.String(), { description: 'User ids to mention, at most 50.' })),
  attachmentIds: attachmentIds('Uploads to link to the first comment, at most 10.'),
  position: Type.Optional(PositionSchema),
  metadata: Type.Optional(MetadataSchema),
});
export type ThreadCreate = Static<typeof ThreadCreateSchema>;

/** The body of a change-thread request. */
export const ThreadPatchSchema = Type.Object({
  userId: ActsForSchema,
  resolved: Type.Optional(
    Type.Boolean({
      description: 'true resolves the thread, false reopens it. Required unless there is metadata or position.',
    }),
  ),
  metadata: Type.Optional(MetadataSchema),
  position: Type.Optional(PositionSchema),
});
export type ThreadPatch = Static<typeof ThreadPatchSchema>;
