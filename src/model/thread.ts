import Type, { type Static } from 'typebox';
import { attachmentIds } from './attachment.ts';
import { type Metadata, MetadataSchema } from './metadata.ts';

export const PositionSchema = Type.Object({
  x: Type.Number({ minimum: 0, maximum: 1, description: 'Horizontal position, 0 to 1.' }),
  y: Type.Number({ minimum: 0, maximum: 1, description: 'Vertical position, 0 to 1.' }),
  selector: Type.Optional(Type.String({ description: 'CSS selector of the target element; at most 2 048 characters.' })),
  path: Type.Optional(Type.String({ description: 'DOM path to the target element; at most 2 048 characters.' })),
  elementOffsetX: Type.Optional(Type.Number({ description: 'Horizontal offset within the target element.' })),
  elementOffsetY: Type.Optional(Type.Number({ description: 'Vertical offset within the target element.' })),
  scrollX: Type.Optional(Type.Number({ description: 'Page scroll X when it was pinned.' })),
  scrollY: Type.Optional(Type.Number({ description: 'Page scroll Y when it was pinned.' })),
});
export type Position = Static<typeof PositionSchema>;

/** A thread as stored: what does not change with its comments. */
export interface ThreadRecord {
  readonly id: string;
  readonly roomId: string;
  readonly resolved: boolean;
  readonly position: Position | null;
  readonly metadata: Metadata;
  readonly userId: string;
  readonly createdAt: string;
  /** Of the thread itself; `ThreadStats.updatedAt` may be later. */
  readonly updatedAt: string;
  readonly resolvedAt: string | null;
  readonly resolvedBy: string | null;
}

/**
 * What changes with the comments of a thread, kept apart so that writing one does not conflict with another.
 * Of a fixed size, however long the thread grows; who takes part in it is read from the comments.
 */
export interface ThreadStats {
  readonly commentCount: number;
  readonly updatedAt: string;
}

/** Stats as they are stored. */
export function renderThreadStats({ commentCount, updatedAt }: ThreadStats): string {
  return `{"commentCount":${commentCount},"updatedAt":"${updatedAt}"}`;
}

/** Stats from what `renderThreadStats` gave. By hand, because every new comment reads them twice. */
export function parseThreadStats(text: string): ThreadStats {
  const comma = text.indexOf(',');
  return { commentCount: Number(text.slice('{"commentCount":'.length, comma)), updatedAt: text.slice(comma + ',"updatedAt":"'.length, -'"}'.length) };
}

/** A thread in lists and in GET. */
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
}

/** The thread that GET and lists show of a record and its stats. */
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

/** Ids that a client may choose when it creates a thread or comment. */
export const ClientIdSchema = Type.String({
  pattern: '^[A-Za-z0-9_-]{8,64}$',
  description: 'An id of the caller’s choice: 8 to 64 of A–Z a–z 0–9 _ -.',
});

export const ThreadCreateSchema = Type.Object({
  id: Type.Optional(ClientIdSchema),
  userId: Type.String({ description: 'Author; must be a known user.' }),
  body: Type.String({ description: 'Text of the first comment, 1 to 10 000 characters; may be empty with an attachment.' }),
  mentions: Type.Optional(Type.Array(Type.String(), { description: 'User ids to mention, at most 50.' })),
  attachmentIds: attachmentIds('Uploads to link to the first comment, at most 10.'),
  position: Type.Optional(PositionSchema),
  metadata: Type.Optional(MetadataSchema),
});
export type ThreadCreate = Static<typeof ThreadCreateSchema>;

export const ThreadPatchSchema = Type.Object({
  resolved: Type.Optional(Type.Boolean({ description: 'true resolves the thread, false reopens it. Required unless there is metadata.' })),
  metadata: Type.Optional(MetadataSchema),
});
export type ThreadPatch = Static<typeof ThreadPatchSchema>;
