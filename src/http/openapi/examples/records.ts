import type { Attachment } from '../../../model/attachment.ts';
import type { Comment } from '../../../model/comment.ts';
import { defaultSettings, type Environment } from '../../../model/environments/environment.ts';
import type { EventEnvelope } from '../../../model/event.ts';
import type { Notification } from '../../../model/notification.ts';
import type { Reaction } from '../../../model/reaction.ts';
import type { Room } from '../../../model/room.ts';
import type { Position, Thread } from '../../../model/thread.ts';
import type { User } from '../../../model/user.ts';

// The records in the examples of the OpenAPI document: one thread with two comments, and its participants.

const THREAD_ID = 'th_1kdyak3sepgf6w7g09te';
const FIRST_ID = 'cm_1kdyak3sepgf6w7g09te_1kdyak3sepgf69tf';
const REPLY_ID = 'cm_1kdyak3sepgf6w7g09te_1kdyamycem3f18nm';
const ENVIRONMENT_ID = 'env_1kdyaf94gaqnr0s8h2wd';
const STARTED = '2026-01-02T03:04:05.678Z';
const REPLIED = '2026-01-02T03:05:05.812Z';

/** Example values of path parameters, by name. */
export const pathExamples: Readonly<Record<string, string>> = {
  roomId: 'docs-intro',
  threadId: THREAD_ID,
  commentId: REPLY_ID,
  reactionId: `re_1kdyan7w30qzc5rb_${REPLY_ID}`,
  userId: 'ann',
  environmentId: 'staging',
  keyId: 'key_1kdyagm04tn6p3xv85bz',
  fileId: 'file_1kdyaj2xw8rr51qe07mh',
  envId: ENVIRONMENT_ID,
  itemId: 'mod_1kdyan2v7w9x3c5b8q4t',
};

/** Example values of query parameters, by name. A parameter without an entry has no meaningful example. */
export const queryExamples: Readonly<Record<string, unknown>> = {
  limit: 50,
  sort: 'createdAt',
  order: 'desc',
  resolved: false,
  userId: 'ann',
  participantId: 'bob',
  mentions: 'bob',
  createdSince: '2026-01-01T00:00:00.000Z',
  updatedSince: '2026-01-01T00:00:00.000Z',
  seenSince: '2025-12-01T00:00:00.000Z',
  metadata: { 'metadata.ticket': 'DOC-17' },
  prefix: 'docs-',
  q: 'ann',
  unread: true,
  kind: 'user',
  include: 'users',
  roomId: 'docs-intro',
  since: 0,
  state: 'held',
  environment: 'staging',
  ttl: 3600,
  sv: 'AA',
  merge: 'yjs',
};

/** A place on a page. */
export const position: Position = {
  x: 0.42,
  y: 0.18,
  selector: '#setup > p:nth-child(3)',
  elementOffsetX: 12,
  elementOffsetY: 4,
};

/** An image. */
export const attachment: Attachment = {
  id: 'file_1kdyaj2xw8rr51qe07mh',
  type: 'image',
  filename: 'before-after.png',
  mimeType: 'image/png',
  sizeBytes: 48_213,
  url: `https://comments.example.com/files/${ENVIRONMENT_ID}/file_1kdyaj2xw8rr51qe07mh`,
  thumbnailUrl: `https://comments.example.com/files/${ENVIRONMENT_ID}/file_1kdyaj2xw8rr51qe07mh?thumb=1`,
  width: 1280,
  height: 720,
};

/** A reaction to `reply`. */
export const reaction: Reaction = {
  id: `re_1kdyan7w30qzc5rb_${REPLY_ID}`,
  reactionId: `re_1kdyan7w30qzc5rb_${REPLY_ID}`,
  commentId: REPLY_ID,
  threadId: THREAD_ID,
  userId: 'ann',
  emoji: '👍',
  createdAt: '2026-01-02T03:05:16.550Z',
};

/** The first comment of `thread`. */
export const firstComment: Comment = {
  id: FIRST_ID,
  threadId: THREAD_ID,
  userId: 'ann',
  body: 'This step fails on a fresh machine. @bob, can you have a look?',
  mentions: ['bob'],
  attachments: [],
  reactions: [],
  metadata: {},
  createdAt: STARTED,
  editedAt: null,
};

/** The second comment of `thread`. */
export const reply: Comment = {
  id: REPLY_ID,
  threadId: THREAD_ID,
  userId: 'bob',
  body: 'It needs Node 20: I add that to the list.',
  mentions: [],
  attachments: [],
  reactions: [],
  metadata: {},
  createdAt: REPLIED,
  editedAt: null,
};

/** `reply` after an edit. */
export const editedReply: Comment = {
  ...reply,
  body: 'It needs Node 20.12: I have added that to the list.',
  editedAt: '2026-01-02T03:07:41.020Z',
};

/** The thread. */
export const thread: Thread = {
  id: THREAD_ID,
  roomId: 'docs-intro',
  resolved: false,
  positionX: 0.42,
  positionY: 0.18,
  position,
  metadata: { ticket: 'DOC-17' },
  commentCount: 2,
  userId: 'ann',
  createdAt: STARTED,
  updatedAt: REPLIED,
  resolvedAt: null,
  resolvedBy: null,
};

/** The room of `thread`. */
export const room: Room = {
  id: 'docs-intro',
  roomId: 'docs-intro',
  threadCount: 1,
  openThreadCount: 1,
  metadata: { title: 'Introduction' },
  createdAt: STARTED,
  updatedAt: REPLIED,
  lastActivityAt: REPLIED,
};

/** The author of `firstComment`. */
export const user: User & { readonly online: boolean } = {
  id: 'ann',
  userId: 'ann',
  name: 'Ann Example',
  avatarUrl: 'https://app.example.com/avatars/ann.png',
  email: 'ann@example.com',
  kind: 'user',
  metadata: { team: 'docs' },
  createdAt: '2025-12-11T08:00:00.000Z',
  updatedAt: '2025-12-11T08:00:00.000Z',
  firstSeenAt: null,
  lastSeenAt: null,
  online: false,
};

/** A shared state: a small Yjs document as base64. */
export const STATE = 'AQEHAAQBBGJvZHkFSGVsbG8A';

const KNOWN = '2025-12-11T08:00:00.000Z';
const backend = { userId: null, via: 'rest' } as const;
const { email: _hidden, ...shownUser } = user;

/** All events of the environment. */
export const events: readonly EventEnvelope[] = [
  { type: 'user.updated', seq: 1, eventId: 'evt_1kdyah4p0aegk7e2w40s', at: KNOWN, actor: backend, data: shownUser },
  {
    type: 'user.updated',
    seq: 2,
    eventId: 'evt_1kdyah4r8aegk7e2w40t',
    at: KNOWN,
    actor: backend,
    data: { ...shownUser, id: 'bob', userId: 'bob', name: 'Bob', avatarUrl: null, metadata: {} },
  },
  {
    type: 'thread.created',
    seq: 3,
    eventId: 'evt_1kdyak3sepgf6w7g09tg',
    at: STARTED,
    roomId: 'docs-intro',
    threadId: THREAD_ID,
    actor: { userId: 'ann', via: 'rest' },
    data: { thread: { ...thread, commentCount: 1, updatedAt: STARTED }, comment: firstComment },
  },
  {
    type: 'comment.created',
    seq: 4,
    eventId: 'evt_1kdyamycem3f18nm0a2p',
    at: REPLIED,
    roomId: 'docs-intro',
    threadId: THREAD_ID,
    actor: { userId: 'bob', via: 'ws' },
    data: reply,
  },
];

/** The environment of all records. */
export const environment: Environment = {
  id: ENVIRONMENT_ID,
  streamId: '4c1f0e9a7b3d5268',
  slug: 'staging',
  name: 'Staging',
  disabled: false,
  settings: defaultSettings,
  createdAt: '2025-12-11T07:45:00.000Z',
  updatedAt: '2025-12-11T07:45:00.000Z',
};

/** An admin. */
export const admin = {
  id: 'admin_1kdya9e7jmm0c4gt61sf',
  email: 'ops@example.com',
  role: 'admin',
  createdAt: '2025-12-11T07:30:00.000Z',
} as const;

const keyHead = { id: 'key_1kdyagm04tn6p3xv85bz', kind: 'secret' } as const;
const keyRights = { scope: 'read', rooms: 'docs-*', rateLimit: null } as const;
const keyDates = { createdAt: '2025-12-11T07:50:00.000Z', expiresAt: '2026-03-11T07:50:00.000Z' } as const;

/** A key, as it is listed. */
export const listedKey = {
  ...keyHead,
  name: 'ci',
  preview: 'sk_staging_xmpl…',
  ...keyRights,
  state: 'active',
  ...keyDates,
  revokedAt: null,
  lastUsedAt: null,
} as const;

/** A key, as it is returned when it is created. */
export const newKey = {
  ...keyHead,
  secretKey: 'sk_staging_xmplExampleExampleExampleExampleExampleExam',
  environmentId: ENVIRONMENT_ID,
  name: 'ci',
  ...keyDates,
  ...keyRights,
} as const;

/** A record of the audit log. */
export const auditRecord = {
  action: 'admin.create',
  actor: { id: 'root', kind: 'cli' },
  at: STARTED,
  details: {},
  hash: '5d4b7ac2c8d4a9a1d1c6a7a0d7f1b6a94f3a8f1a4f2e1d6c3b5a79880716253f',
  prev: 'a1d1c6a7a0d7f1b6a94f3a8f1a4f2e1d6c3b5a79880716253f5d4b7ac2c8d4a9',
  seq: 1,
  target: { id: 'admin_1kdyae3m2c8tvq5w70ph', kind: 'admin' },
};

/** A report of a comment. */
export const report = {
  commentId: REPLY_ID,
  userId: 'ann',
  reason: 'This is advertising.',
  createdAt: '2026-01-02T03:06:00.000Z',
};

/** Held content as its author sees it. */
export const heldContent = {
  id: 'mod_1kdyan2v7w9x3c5b8q4t',
  kind: 'comment',
  state: 'held',
  roomId: 'docs-intro',
  threadId: THREAD_ID,
  commentId: REPLY_ID,
  comment: reply,
  createdAt: REPLIED,
  decidedAt: null,
  rejection: null,
};

/** The same as moderators see it. */
export const heldItem = {
  id: heldContent.id,
  kind: 'comment',
  state: 'held',
  roomId: 'docs-intro',
  threadId: THREAD_ID,
  commentId: REPLY_ID,
  userId: reply.userId,
  plugin: 'moderation-rules',
  reason: 'contains 3 links',
  comment: reply,
  current: null,
  before: null,
  thread: null,
  reportCount: 0,
  reports: [],
  createdAt: REPLIED,
  decidedAt: null,
  decidedBy: null,
  rejection: null,
};

/** A notification of bob, whom the first comment mentions. */
export const notification: Notification = {
  id: 'nt_1kdyak3sefd7e3a0c9b41f28',
  userId: 'bob',
  kind: 'mention',
  roomId: 'docs-intro',
  threadId: THREAD_ID,
  commentId: firstComment.id,
  actorId: 'ann',
  readAt: null,
  createdAt: STARTED,
  updatedAt: STARTED,
};
